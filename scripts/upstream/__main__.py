"""`python -m upstream`."""

import sys

from upstream.cli import main

sys.exit(main())
