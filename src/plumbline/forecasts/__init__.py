"""Predictive distributions of observations and their scores."""
