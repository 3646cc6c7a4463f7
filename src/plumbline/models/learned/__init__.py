"""Trained networks, evaluated grids, and their files."""
