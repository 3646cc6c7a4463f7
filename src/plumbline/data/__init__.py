"""Data sets: their list, their download, and their tables of features. No module imports torch."""
