"""Whether Gaussian forecasts of a surrogate model tell the truth, and what recalibration would have done."""
