"""What can go wrong in the rig, as far as its user can do something about it.

RigError
├── MissingToolError   a program the rig needs is not installed; the text says how to install it
├── BuildError         `go build` of a program failed; the text ends with its output
└── WaitError          something awaited did not come; the text ends with the log that should explain it
"""

from __future__ import annotations


class RigError(Exception):
    """The rig cannot do what was asked; the text says what, where, and what to do."""


class MissingToolError(RigError):
    """A program that the rig needs is missing or too old."""

    def __init__(self, tool: str, problem: str, remedy: str) -> None:
        super().__init__(f"{tool} {problem}; install it with:\n  {remedy}")
        self.tool = tool
        self.remedy = remedy


class BuildError(RigError):
    """Compiling one of the rig's programs failed."""


class WaitError(RigError):
    """A bounded wait ended without what it waited for, or its process ended first."""
