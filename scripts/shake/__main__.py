"""`python -m shake`."""

import sys

from shake.cli import main

sys.exit(main())
