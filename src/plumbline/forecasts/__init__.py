"""Uncertainty that means what it says: predictive distributions, recalibration, and how to check them."""
