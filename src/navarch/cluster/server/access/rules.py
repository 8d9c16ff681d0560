"""One rule of a role: which requests it allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from navarch.cluster.server.request import Json

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

    def parts(self) -> list[Self]:
        """The same as rules of one verb, one resource, one name each, in the order in which Kubernetes lists them."""
        kind = type(self)
        names: tuple[tuple[str, ...], ...] = tuple((name,) for name in self.names) or ((),)
        resources = [
            kind((verb,), (group,), (resource,), name)
            for group in self.groups
            for resource in self.resources
            for verb in self.verbs
            for name in names
        ]
        return resources + [kind((verb,), urls=(url,)) for url in self.urls for verb in self.verbs]

    def covers(self, part: Rule) -> bool:
        """Whether whoever has this rule has that one too; `part` is one of `parts()`."""
        return (
            ("*" in self.verbs or _has_all(self.verbs, part.verbs))
            and ("*" in self.groups or _has_all(self.groups, part.groups))
            and all(self._covers_kind(resource) for resource in part.resources)
            and (not self.names or (bool(part.names) and _has_all(self.names, part.names)))
            and all(any(_url_covers(url, wanted) for url in self.urls) for wanted in part.urls)
        )

    def _covers_kind(self, resource: str) -> bool:
        if "*" in self.resources or resource in self.resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self.resources

    def to_json(self) -> Json:
        """As reviews show it; what is empty is left out, but not the verbs."""
        fields: Json = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {"verbs": list(self.verbs)} | {key: list(value) for key, value in fields.items() if value}


def _has_all(owned: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return all(each in owned for each in wanted)


def _url_covers(url: str, path: str) -> bool:
    return url == path or (url.endswith("*") and path.startswith(url.rstrip("*")))
