"""A kind: what an API server needs to know to find its objects."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any
from urllib.parse import quote

from navarch.api.codec import decode
from navarch.api.dynamic import Dynamic
from navarch.errors import DecodeError, InvalidValueError

__all__ = ["Kind"]


@dataclass(frozen=True, slots=True)
class Kind:
    """Group, version and kind, and the resource (plural, scope) they are served as.

    >>> Kind("apps", "v1", "Deployment", plural="deployments").path(namespace="default", name="web")
    '/apis/apps/v1/namespaces/default/deployments/web'
    """

    group: str
    version: str
    kind: str
    _: KW_ONLY
    plural: str
    namespaced: bool = True
    has_status: bool = True

    def __hash__(self) -> int:
        return hash(self.kind)  # kinds are looked up with every object; few have a name in common

    @property
    def api_version(self) -> str:
        """As it stands in a manifest: `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """As RBAC and messages name it: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of one object, of a namespace's objects, or of all objects (neither given).

        Raises `InvalidValueError` for a namespace on a cluster-scoped kind, and for names that lead elsewhere.
        """
        if namespace and not self.namespaced:
            raise InvalidValueError(
                f"{self.resource} is cluster-scoped: expected no namespace, got {namespace!r}; leave it out"
            )
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment(name))
        if subresource is not None:
            parts += map(_segment, subresource.split("/"))
        return "/".join(parts)

    def from_json(self, data: bytes) -> Dynamic:
        """An object of this kind that has no class. Items of a list come without their type; they get it here.

        Raises `DecodeError` if it is no object, or one of another kind.
        """
        found = Dynamic({"apiVersion": self.api_version, "kind": self.kind} | decode(dict[str, Any], data))
        if found.kind != self.kind:
            raise DecodeError(f"expected a {self}, got a {found.kind} ({found.api_version})")
        return found

    def __str__(self) -> str:
        return f"{self.kind} ({self.api_version})"


def _segment(name: str) -> str:
    """One path segment; a name that would reach another resource is refused, not escaped into something else."""
    if not name or name in {".", ".."} or "/" in name or "%" in name or not name.isprintable():
        raise InvalidValueError(
            f"expected the name of an object, got {name!r}: it must not be empty, '.', '..' or hold '/', '%' or what "
            f"cannot be printed"
        )
    return quote(name, safe=":@!$&'()*+,;=~")
