"""The command line: `navarch`."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Runs the command line, and ends the process with its exit code."""
    try:
        import rich  # noqa: F401, PLC0415 - an extra
        import typer  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        sys.exit(f"navarch: the command line needs {error.name}, which is not installed: pip install 'navarch[cli]'")
    from navarch.cli.app import run  # noqa: PLC0415 - it needs the extra

    sys.exit(run())
