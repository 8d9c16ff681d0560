"""Asks on the terminal, where a flag is missing."""

from __future__ import annotations

import sys

import typer

from navarch.errors import ConfigError


def ask(question: str, flags: str) -> bool:
    """Asks until the answer is yes or no. Raises `ConfigError`, which names the flags, if there is no terminal."""
    if not sys.stdin.isatty():
        raise ConfigError(f"{question}: expected an answer, but there is no terminal to ask on; add {flags}")
    while True:
        typer.echo(question, err=True)
        answer = sys.stdin.readline()
        if not answer:
            raise ConfigError(f"{question}: expected an answer, got the end of the input; add {flags}")
        if answer.strip().lower() in {"y", "yes"}:
            return True
        if answer.strip().lower() in {"n", "no"}:
            return False
