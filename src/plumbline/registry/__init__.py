"""Registered names, their options, and the source that they rest on."""
