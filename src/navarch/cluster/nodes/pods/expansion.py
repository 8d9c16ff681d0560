"""`$(NAME)` in commands, arguments and values, as Kubernetes replaces it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["expanded"]

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expanded(text: str, values: Mapping[str, str]) -> str:
    """The text with its references replaced; `$$` is one `$`, and what is not known stays as it is written.

    >>> expanded("$(HOST):$(PORT) $$(HOST) $(NOBODY)", {"HOST": "db", "PORT": "80"})
    'db:80 $(HOST) $(NOBODY)'
    """

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return values.get(found[1], found[0])

    # No reference ends behind the last parenthesis; looking for its end from each place would take time by the square.
    last = text.rfind(")") + 1
    return _REFERENCE.sub(value, text[:last]) + text[last:].replace("$$", "$")
