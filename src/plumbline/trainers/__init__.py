"""Trainers of the models that problems and methods read from files."""
