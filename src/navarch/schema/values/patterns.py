"""Regular expressions in RE2's syntax, as the API server reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from navarch.errors import DefinitionError

__all__ = ["matcher", "pattern_error"]


def pattern_error(pattern: str) -> str | None:
    """Why RE2 does not take the pattern; None if it does.

    >>> pattern_error("^a+$") is None, pattern_error("(?=a)") is None
    (True, False)
    """
    re2, options = _re2()
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return None


_MOST_MEMORY = 1 << 20
"""What RE2 may take for one pattern; Go's limit is larger."""


@lru_cache(maxsize=512)
def matcher(pattern: str) -> Callable[[str], Any]:
    """Finds the pattern anywhere in a text; the pattern has been checked before."""
    re2, options = _re2()
    search: Callable[[str], Any] = re2.compile(pattern, options).search
    return search


@lru_cache(maxsize=1)
def _re2() -> tuple[Any, Any]:
    try:
        import re2  # noqa: PLC0415 - only patterns need it, and it is an extra
    except ImportError as error:
        raise DefinitionError(
            "expected google-re2 to be installed, since a schema has patterns and Kubernetes reads them as RE2; "
            "install navarch[schema]"
        ) from error
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # groups are not asked for, and following thousands of them takes long
    options.max_mem = _MOST_MEMORY
    return re2, options
