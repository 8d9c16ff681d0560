"""`python -m judge`."""

from __future__ import annotations

import sys

from judge.cli import main

sys.exit(main())
