"""Gaussian processes, sparse variational Gaussian processes and learned models."""
