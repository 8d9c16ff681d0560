"""`python -m navarch`."""

from navarch.cli import main

main()
