"""Kinds of figures and tables, how they are drawn and styled."""
