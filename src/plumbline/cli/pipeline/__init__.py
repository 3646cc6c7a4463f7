"""Commands that the rules of the workflow call, a module each, in the order of the help: that of the stages."""

# ruff: isort: off
from plumbline.cli.pipeline import fetch, features, model  # noqa: F401 - commands
from plumbline.cli.pipeline import trials, collect, illustrate  # noqa: F401 - commands
from plumbline.cli.pipeline import figure, table, outputs  # noqa: F401 - commands
from plumbline.cli.pipeline import claims, report, reference, redraw, pages, track  # noqa: F401 - commands
