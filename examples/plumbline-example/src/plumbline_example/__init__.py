"""Methods and a problem for plumbline."""
