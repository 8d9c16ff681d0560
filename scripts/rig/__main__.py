"""Make `python -m rig` the command line."""

from __future__ import annotations

import sys

from rig.cli import main

sys.exit(main())
