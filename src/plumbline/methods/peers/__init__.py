"""Public libraries of optimisation as methods, each with its own defaults."""
