"""What every other folder may use."""
