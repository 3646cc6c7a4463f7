"""Acquisition functions with hand-written gradients."""
