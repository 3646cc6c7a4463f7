"""Gaussian processes (GPs), conditioned exactly on all data."""
