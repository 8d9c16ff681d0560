"""Error text without the values that the server quotes back.

A server that refuses a patch quotes the whole patched object, and with a Secret its data. Scalars are kept, since they
tell the reader what was wrong; objects, lists and differences between objects are left out, and of Secrets every value.
"""

from __future__ import annotations

import re

__all__ = ["is_secret", "without_echoes"]

_LEFT_OUT = "(left out)"
_MARK = re.compile(r"\b(?:(?:Invalid|Unsupported|Duplicate) value|Not found|Too long|Too many): |\bgot (?=&)")
_STRUCTURE = re.compile(r'"?(?:[{\[&]|(?:[\w.*]|\[\])*map\[|(?:[\w.*]|\[\])+\{)')
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*("|$)', re.DOTALL)
_SCALAR = re.compile(r"[^\s:,\]]+(?=[:,\]]|$)")
_DIFFERENCE = re.compile(r"\n@@.*?(?=\n[^-+ @]|\Z)", re.DOTALL)
_SECRETS = re.compile(r"^/api/v1/(?:namespaces/[^/]+/)?secrets(?:/|$)")
_BRACKETS = {"{": 1, "[": 1, "}": -1, "]": -1}


def is_secret(path: str) -> bool:
    """Whether a request to `path` is about Secrets."""
    return _SECRETS.match(path) is not None


def without_echoes(text: str, *, secret: bool) -> str:
    """`text` with each object that it quotes left out; with `secret`, each value.

    >>> without_echoes('spec: Invalid value: {"a":1}: expected a list', secret=False)
    'spec: Invalid value: (left out): expected a list'
    """
    text = _DIFFERENCE.sub(f" {_LEFT_OUT}", text)
    parts, end = [], 0
    for mark in _MARK.finditer(text):
        if mark.start() >= end and (value_end := _value_end(text, mark.end(), secret=secret)) > mark.end():
            parts += [text[end : mark.end()], _LEFT_OUT]
            end = value_end
    return "".join([*parts, text[end:]])


def _value_end(text: str, start: int, *, secret: bool) -> int:
    """Where the value that begins at `start` ends; `start` itself if it is to be kept."""
    structured = _STRUCTURE.match(text, start)
    if not structured and not secret:
        return start
    if text.startswith("&", start):
        return len(text)  # printed without quotes: nothing tells its end from what follows
    if quoted := _QUOTED.match(text, start):
        return quoted.end()
    if structured:
        return _balanced_end(text, start)
    scalar = _SCALAR.match(text, start)
    return scalar.end() if scalar else start


def _balanced_end(text: str, start: int) -> int:
    """Where what begins at `start` is over: a colon, comma or closing bracket outside of its own brackets."""
    depth, place = 0, start
    while place < len(text):
        if quoted := _QUOTED.match(text, place):
            place = quoted.end()
            continue
        depth += _BRACKETS.get(text[place], 0)
        if depth < 0 or (depth == 0 and text.startswith((": ", ", "), place)):
            break
        place += 1
    return place
