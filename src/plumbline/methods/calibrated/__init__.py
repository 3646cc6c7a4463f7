"""Calibrated Bayesian optimisation (Deshpande and Kuleshov)."""
