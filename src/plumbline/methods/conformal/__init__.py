"""Bayesian optimisation with conformal prediction sets: Stanton, Maddox and Wilson (2023), CBO in docstrings."""
