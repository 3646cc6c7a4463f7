"""The knowledge gradient: discrete, one-shot and stochastic."""
