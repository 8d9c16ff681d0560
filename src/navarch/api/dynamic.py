"""Objects without a class: JSON as it came, with the shortcuts that every object has."""

from __future__ import annotations

from typing import Any

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
        metadata: dict[str, Any] = self.setdefault("metadata", {})
        return metadata

    @property
    def name(self) -> str:
        """`metadata.name`, empty if unset."""
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, empty if unset."""
        return str(self.metadata.get("namespace") or "")

    @property
    def labels(self) -> dict[str, str]:
        """`metadata.labels`, made if they were not there."""
        labels: dict[str, str] = self.metadata.setdefault("labels", {})
        return labels

    @property
    def annotations(self) -> dict[str, str]:
        """`metadata.annotations`, made if they were not there."""
        annotations: dict[str, str] = self.metadata.setdefault("annotations", {})
        return annotations
