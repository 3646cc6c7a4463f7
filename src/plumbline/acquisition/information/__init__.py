"""Entropy searches."""
