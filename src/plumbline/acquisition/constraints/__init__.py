"""Constrained acquisition functions and recommendations."""
