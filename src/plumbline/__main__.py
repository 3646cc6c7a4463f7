"""`python -m plumbline`."""

from plumbline.cli.main import main

main()
