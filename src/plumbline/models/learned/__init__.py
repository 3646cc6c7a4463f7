"""Trained networks, evaluated grids of hyperparameters, and their files."""
