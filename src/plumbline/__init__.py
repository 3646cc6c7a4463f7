"""Plumbline: a reproducibility study of Bayesian optimisation under imperfect models."""
