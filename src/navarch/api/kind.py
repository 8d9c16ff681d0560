"""Kinds, the keys of their objects, and objects without a class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from navarch.api.codec import decode
from navarch.api.markers import masked_json
from navarch.errors import DecodeError, InvalidValueError


class Dynamic(dict[str, Any]):
    """An object as a dict with wire names, for kinds without a class.

    >>> found = Dynamic({"kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 3}})
    >>> found.name, found["spec"]["replicas"]
    ('w', 3)
    """

    __slots__ = ()

    @property
    def api_version(self) -> str:
        """The apiVersion as a manifest has it: `apps/v1`."""
        return str(self.get("apiVersion", ""))

    @property
    def kind(self) -> str:
        """The name of the kind."""
        return str(self.get("kind", ""))

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata as a dict, added if it is missing."""
        return _made(self, "metadata")

    @property
    def name(self) -> str:
        """`metadata.name`, empty if unset."""
        return self._looked_up("name")

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, empty if unset."""
        return self._looked_up("namespace")

    @property
    def labels(self) -> dict[str, str]:
        """`metadata.labels`, added if they are missing."""
        return _made(self.metadata, "labels")

    @property
    def annotations(self) -> dict[str, str]:
        """`metadata.annotations`, added if they are missing."""
        return _made(self.metadata, "annotations")

    def __repr__(self) -> str:
        """Returns the dict's repr; that of a Secret masks its values."""
        if (self.api_version, self.kind) != ("v1", "Secret"):
            return super().__repr__()
        return repr(masked_json(dict(self), ("data", "stringData")))

    def _looked_up(self, field: str) -> str:
        """Reads a field of the metadata without adding the metadata."""
        return str((self.get("metadata") or {}).get(field) or "")


def _made(parent: dict[str, Any], field: str) -> dict[str, Any]:
    """Returns the dict in that field; adds an empty one if the field is missing or null."""
    if parent.get(field) is None:
        parent[field] = {}
    found: dict[str, Any] = parent[field]
    return found


class Key(NamedTuple):
    """The namespace and name of an object; the namespace is empty for cluster-scoped kinds.

    >>> str(Key("default", "web")), str(Key("", "node-1"))
    ('default/web', 'node-1')
    """

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Kind:
    """A group, version and kind, and the resource (plural, scope) that serves it.

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
        """The apiVersion as a manifest has it: `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The resource as RBAC and messages name it: `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Returns the URL path of one object, of a namespace's objects, or of all objects (neither given).

        Raises `InvalidValueError` for a namespace on a cluster-scoped kind, and for a name that would change the path.
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
        """Decodes an object of this kind that has no class. Items of a list lack apiVersion and kind; this adds them.

        Raises `DecodeError` if `data` is no object, or one of another kind.
        """
        found = Dynamic({"apiVersion": self.api_version, "kind": self.kind} | decode(dict[str, Any], data))
        if found.kind != self.kind:
            raise DecodeError(f"expected a {self}, got a {found.kind} ({found.api_version})")
        return found

    def __str__(self) -> str:
        return f"{self.kind} ({self.api_version})"


def _segment(name: str) -> str:
    """Returns one path segment; refuses a name that would reach another resource instead of escaping it."""
    if not name or name in {".", ".."} or "/" in name or "%" in name or not name.isprintable():
        raise InvalidValueError(
            f"expected the name of an object, got {name!r}: it must not be empty, '.', '..' or hold '/', '%' or what "
            f"cannot be printed"
        )
    return quote(name, safe=":@!$&'()*+,;=~")
