"""The configuration: experiments, claims, methods, tasks and the plan of a run."""
