"""What is measured of records (metrics) and what is said of measurements (statistics). Knows tables only."""
