"""The pytest plugin of `python -m shake`: the weather in the processes of the tests, and its name at the end."""

import os

import pytest

from shake.reach import AGAIN, change_all

change_all()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how to have the same delays again."""
    terminalreporter.write_line(os.environ[AGAIN])
