"""Comparisons of methods: effects, ranks, pairs."""
