"""Approximation-aware Bayesian optimisation (Maus et al.)."""
