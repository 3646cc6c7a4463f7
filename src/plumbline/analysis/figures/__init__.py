"""Kinds of figures, entered by name with one decorator: (evidence, options) in, a figure out."""
