"""Objects without a class: JSON as it came, with the shortcuts that every object has."""

from __future__ import annotations

from typing import Any

from navarch.api.sensitive import masked_json

__all__ = ["Dynamic"]


class Dynamic(dict[str, Any]):
    """An object as a dict in the wire's own names, for kinds that have no class here.

    >>> found = Dynamic({"kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 3}})
    >>> found.name, found["spec"]["replicas"]
    ('w', 3)
    """

    __slots__ = ()

    @property
    def api_version(self) -> str:
        """As it stands in a manifest: `apps/v1`."""
        return str(self.get("apiVersion", ""))

    @property
    def kind(self) -> str:
        """The kind's name."""
        return str(self.get("kind", ""))

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata, as a dict; made if it was not there."""
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
        """`metadata.labels`, made if they were not there."""
        return _made(self.metadata, "labels")

    @property
    def annotations(self) -> dict[str, str]:
        """`metadata.annotations`, made if they were not there."""
        return _made(self.metadata, "annotations")

    def __repr__(self) -> str:
        """The dict as it is; a Secret without its values."""
        if (self.api_version, self.kind) != ("v1", "Secret"):
            return super().__repr__()
        return repr(masked_json(dict(self), ("data", "stringData")))

    def _looked_up(self, field: str) -> str:
        """Looking must not change what is written."""
        return str((self.get("metadata") or {}).get(field) or "")


def _made(parent: dict[str, Any], field: str) -> dict[str, Any]:
    """What stands there; an empty dict in its place where nothing does, or null."""
    if parent.get(field) is None:
        parent[field] = {}
    found: dict[str, Any] = parent[field]
    return found
