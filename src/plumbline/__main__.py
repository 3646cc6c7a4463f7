"""`python -m plumbline`."""

from plumbline.cli import main

main()
