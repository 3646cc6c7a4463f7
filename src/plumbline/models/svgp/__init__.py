"""Sparse variational Gaussian processes (SVGPs)."""
