"""Generated stand-ins, which need no network."""
