"""Methods with exact Gaussian processes; BOWH in docstrings are the slides of Paulson (2024)."""
