"""Datasets: what there is, how it is fetched, how it becomes features. No torch."""
