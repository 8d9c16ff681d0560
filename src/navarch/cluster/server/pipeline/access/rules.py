"""One rule of a role: which requests it allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Self

import msgspec

from navarch.cluster.server.wire.request import Json

__all__ = ["Rule"]


class Rule(msgspec.Struct, frozen=True):
    """A PolicyRule. `names` is empty where every name is meant."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @classmethod
    def of(cls, rule: Mapping[str, Any]) -> Self:
        """The rule that JSON says."""
        fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
        return cls(*(tuple(rule.get(field) or ()) for field in fields))

    def allows_resource(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether it covers a resource, as far as names do not matter.

        >>> Rule(("get",), ("apps",), ("*/scale",)).allows_resource("get", "apps", "deployments", "scale")
        True
        """
        return (
            ("*" in self.verbs or verb in self.verbs)
            and ("*" in self.groups or group in self.groups)
            and self._allows_kind(resource, subresource)
        )

    def _allows_kind(self, resource: str, subresource: str) -> bool:
        if "*" in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources

    def allows_path(self, verb: str, path: str) -> bool:
        """Whether it covers a path that is no resource.

        >>> Rule(("get",), urls=("/healthz/*",)).allows_path("get", "/healthz/etcd")
        True
        """
        return ("*" in self.verbs or verb in self.verbs) and any(_url_covers(url, path) for url in self.urls)

    @property
    def entry_count(self) -> int:
        """How many verbs, groups, resources, names and paths it lists."""
        return len(self.verbs) + len(self.groups) + len(self.resources) + len(self.names) + len(self.urls)

    @property
    def part_count(self) -> int:
        """How many `parts` it has: a small rule may have millions."""
        resources = len(self.groups) * len(self.resources) * max(1, len(self.names))
        return len(self.verbs) * (resources + len(self.urls))

    def parts(self) -> Iterator[Self]:
        """The same as rules of one verb, one resource, one name each, in the order in which Kubernetes lists them."""
        kind = type(self)
        names: tuple[tuple[str, ...], ...] = tuple((name,) for name in self.names) or ((),)
        for group, resource, verb, name in product(self.groups, self.resources, self.verbs, names):
            yield kind((verb,), (group,), (resource,), name)
        for url, verb in product(self.urls, self.verbs):
            yield kind((verb,), urls=(url,))

    def to_json(self) -> Json:
        """As reviews show it; what is empty is left out, but not the verbs."""
        fields: Json = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {"verbs": list(self.verbs)} | {key: list(value) for key, value in fields.items() if value}


def _url_covers(url: str, path: str) -> bool:
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))
