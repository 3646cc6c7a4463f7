"""Kinds of tables, entered by name with one decorator: (evidence, options) in, a frame out."""
