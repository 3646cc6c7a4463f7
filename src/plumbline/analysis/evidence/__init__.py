"""The records of an experiment, as analysis reads them."""
