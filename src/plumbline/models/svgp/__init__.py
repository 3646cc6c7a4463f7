"""Sparse variational Gaussian processes."""
