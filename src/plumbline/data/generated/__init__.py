"""Generated stand-ins for real data sets, which need no network."""
