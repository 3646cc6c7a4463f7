"""Kinds of tables, entered by name with one decorator: (evidence, options, study) in, a frame out."""
