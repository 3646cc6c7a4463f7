"""Hypervolume improvement of several outcomes."""
