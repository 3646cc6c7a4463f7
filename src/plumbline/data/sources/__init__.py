"""Readers of real datasets."""
