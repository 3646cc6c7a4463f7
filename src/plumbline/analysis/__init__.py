"""From records to tables, figures and verdicts. Knows records only: no torch, no method, no problem."""
