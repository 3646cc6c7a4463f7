"""From test results to verdicts on claims."""
