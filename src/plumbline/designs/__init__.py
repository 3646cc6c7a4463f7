"""Initial designs of trials."""
