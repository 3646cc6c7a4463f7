"""Plumbline's methods beside public libraries of Bayesian optimisation: `python -m peers`, or `make peers`.

All get the same problems, initial designs and budgets, on one thread. Nothing is imported here, so that the command can
set the number of threads before any library reads it.
"""
