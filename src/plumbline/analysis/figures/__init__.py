"""Kinds of figures, entered by name with one decorator: a function of (evidence, options) that returns a figure."""
