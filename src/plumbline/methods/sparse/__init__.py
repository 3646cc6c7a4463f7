"""Approximation-aware Bayesian optimisation: Maus et al. (2024), AABO in docstrings."""
