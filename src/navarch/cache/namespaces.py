"""Which namespaces are meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase

from navarch.errors import InvalidValueError

__all__ = ["Namespaces"]

_MAGIC = set("*?[")


class Namespaces:
    """Names and patterns of namespaces; none means all of them. They may be changed while everything runs.

    A pattern has `*` and `?`; one that begins with `!` takes out again what it matches.

    >>> team = Namespaces("team-*", "!team-x")
    >>> team.match("team-a"), team.match("team-x"), team.match("default")
    (True, False, False)
    >>> Namespaces().match("anything")
    True
    """

    def __init__(self, *patterns: str) -> None:
        self._patterns = _checked(patterns)
        self._listeners: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"Namespaces({', '.join(map(repr, self._patterns))})"

    @property
    def patterns(self) -> tuple[str, ...]:
        """The names and patterns as they were given."""
        return self._patterns

    @property
    def all(self) -> bool:
        """Whether every namespace is meant, so that one watch serves all."""
        return not self._patterns

    @property
    def names(self) -> frozenset[str] | None:
        """The namespaces, if they can be told without asking the cluster which there are."""
        if self.all or any(pattern.startswith("!") or _MAGIC & set(pattern) for pattern in self._patterns):
            return None
        return frozenset(self._patterns)

    def match(self, namespace: str) -> bool:
        """Whether this namespace is meant."""
        wanted = [pattern for pattern in self._patterns if not pattern.startswith("!")]
        unwanted = [pattern[1:] for pattern in self._patterns if pattern.startswith("!")]
        return (not wanted or _any_match(namespace, wanted)) and not _any_match(namespace, unwanted)

    def change(self, *patterns: str) -> None:
        """Means other namespaces from now on: watches of those that are new begin, of those that are gone end."""
        self._patterns = _checked(patterns)
        for listener in list(self._listeners):
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls `listener` after every change."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        """Calls it no more."""
        self._listeners.remove(listener)


def _any_match(namespace: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(namespace, pattern) for pattern in patterns)


def _checked(patterns: tuple[str, ...]) -> tuple[str, ...]:
    for pattern in patterns:
        if not pattern.strip("!"):
            raise InvalidValueError(
                f"expected the name or pattern of namespaces, got {pattern!r}; leave it out for all"
            )
    return tuple(dict.fromkeys(patterns))
