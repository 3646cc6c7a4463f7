"""Calibrated Bayesian optimisation: Deshpande and Kuleshov (2021), CAL in docstrings."""
