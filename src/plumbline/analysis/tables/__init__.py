"""Kinds of tables, entered by name with one decorator: a function of (evidence, options, study) that returns a frame."""
