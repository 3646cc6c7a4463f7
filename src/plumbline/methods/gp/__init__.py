"""Methods with exact Gaussian processes."""
