"""How Kubernetes turns a property's name into a CEL identifier."""

from __future__ import annotations

import re

from navarch.schema.cel.lexer import RESERVED

_ACCESSIBLE = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*\Z")
_ESCAPED = re.compile(r"__|[./-]")
_NAMES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escape(name: str) -> str | None:
    """The identifier for a property, or None if rules cannot reach it.

    >>> escape("foo-bar"), escape("namespace"), escape("1st")
    ('foo__dash__bar', '__namespace__', None)
    """
    if name in RESERVED:
        return f"__{name}__"
    if _ACCESSIBLE.match(name) is None:
        return None
    return _ESCAPED.sub(lambda match: _NAMES[match.group()], name)
