"""Utilities, and how their maximiser is found."""
