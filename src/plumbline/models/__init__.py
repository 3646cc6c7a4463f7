"""Probabilistic models of the objective."""
