"""Localised online conformal Bayesian optimisation: Kim et al. (2025), LOCBO in docstrings."""
