"""Acquisition functions under constraints, and what to recommend."""
