"""Whether whoever has some rules has another one too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from navarch.cluster.server.pipeline.access.rules import Rule
from navarch.cluster.server.wire.budget import current_budget

__all__ = ["lacking_parts"]

_COMPARED_PER_NODE = 10
"""How many comparisons of two rules cost as much as a value of a body."""


def lacking_parts(rules: Iterable[Rule], owned: Iterable[Rule]) -> Iterator[Rule]:
    """Yields the parts of the rules that none of the owned ones covers.

    A rule that one of them covers as a whole, as the rule of an administrator does, is not taken apart. The others are
    charged to the request before they are, since a small rule may have millions of parts; refuses with 413.
    """
    budget = current_budget()
    covering = [_Covering(rule) for rule in owned]
    compared = sum(each.cost for each in covering) // _COMPARED_PER_NODE
    for rule in rules:
        budget.charge_nodes(rule.entry_count * compared)
        if not rule.part_count or any(each.covers(rule) for each in covering):
            continue
        budget.charge_nodes(rule.part_count * (1 + compared))
        yield from (part for part in rule.parts() if not any(each.covers(part) for each in covering))


class _Covering:
    """An owned rule, with sets of what it names."""

    def __init__(self, rule: Rule) -> None:
        self._verbs = frozenset(rule.verbs)
        self._groups = frozenset(rule.groups)
        self._resources = frozenset(rule.resources)
        self._names = frozenset(rule.names)
        self._urls = frozenset(rule.urls)
        self._prefixes = tuple(url.rstrip("*") for url in rule.urls if url.endswith("*"))

    @property
    def cost(self) -> int:
        """What it costs to compare another rule with this one."""
        return 1 + len(self._prefixes)

    def covers(self, rule: Rule) -> bool:
        """Whether it covers each part of the rule."""
        return (
            ("*" in self._verbs or self._verbs.issuperset(rule.verbs))
            and ("*" in self._groups or self._groups.issuperset(rule.groups))
            and all(self._covers_kind(resource) for resource in rule.resources)
            and (not self._names or (bool(rule.names) and self._names.issuperset(rule.names)))
            and all(url in self._urls or url.startswith(self._prefixes) for url in rule.urls)
        )

    def _covers_kind(self, resource: str) -> bool:
        if "*" in self._resources or resource in self._resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self._resources
