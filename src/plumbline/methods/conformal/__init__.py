"""Bayesian optimisation with conformal prediction sets (Stanton et al.)."""
