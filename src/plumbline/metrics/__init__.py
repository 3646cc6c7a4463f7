"""Metrics of records: tables only, no torch. Each module enters its metrics in the registry."""

from plumbline.metrics import coverage, forecast_scores, regret, searches, seconds  # noqa: F401
