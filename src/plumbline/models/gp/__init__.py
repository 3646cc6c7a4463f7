"""Exact Gaussian processes."""
