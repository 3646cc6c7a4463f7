"""Localised online conformal Bayesian optimisation (Kim et al.)."""
