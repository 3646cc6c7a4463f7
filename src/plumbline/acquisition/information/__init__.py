"""Entropy search and Thompson sampling."""
