"""From records to tables, figures and verdicts. Knows tables only: no torch, no method, no problem."""
