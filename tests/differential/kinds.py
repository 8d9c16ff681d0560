"""What sequences know of a kind: an object of it that is right, and what may be made of that, right or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from differential.steps import Json

Edits = Mapping[str, Sequence[Any]]
"""Values for a place in an object, by its path."""


class _Gone(Enum):
    GONE = "gone"


GONE: Final = _Gone.GONE
"""The value of what is to be left out."""


@dataclass(frozen=True)
class Kind:
    """One kind; cluster-wide objects have the namespace's name in theirs, and as a label."""

    kind: str
    plural: str
    base: Json
    edits: Edits
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True
    status: Edits = field(default_factory=dict)
    scales: bool = False
    fields: tuple[str, ...] = ("metadata.name=a",)

    def collection(self, version: str = "") -> str:
        """Where its objects are served."""
        version = version or self.versions[0]
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        return f"{root}/namespaces/$ns/{self.plural}" if self.namespaced else f"{root}/{self.plural}"

    def api_version(self, version: str = "") -> str:
        """`apps/v1`, or `v1`."""
        version = version or self.versions[0]
        return f"{self.group}/{version}" if self.group else version

    def name(self, short: str) -> str:
        """The name of an object of a sequence."""
        return short if self.namespaced else f"$ns-{short}"


LONG = "x" * 64
METADATA: Edits = {
    "metadata.labels": [
        {"a": "1"},
        {"a": "2", "b": ""},
        {"a": "not valid!"},
        {"/": "x"},
        {"x.io/a": "1"},
        None,
        {},
        {"a": 1},
    ],
    "metadata.annotations": [
        {"a": "1"},
        {"x.io/A_b": "é<"},
        {"-": "x"},
        {"a": None},
        {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    ],
    "metadata.finalizers": [
        ["x.io/a"],
        ["x.io/a", "x.io/b"],
        ["a"],
        ["foregroundDeletion"],
        ["orphan", "foregroundDeletion"],
        [],
        ["bad finalizer"],
    ],
    "metadata.ownerReferences": [
        [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}],
        [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "o",
                "uid": "u-1",
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
        [{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}],
        [{"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "u-1"}],
        [
            {"apiVersion": "v1", "kind": "A", "name": "o", "uid": "u-1", "controller": True},
            {"apiVersion": "v1", "kind": "B", "name": "p", "uid": "u-2", "controller": True},
        ],
    ],
    "metadata.namespace": ["$ns", "default", "", "Bad"],
    "metadata.uid": ["$uid", "nobody", ""],
    "metadata.generation": [7, 0, -1],
    "metadata.creationTimestamp": [None, "2020-01-01T00:00:00Z", "yesterday"],
    "metadata.deletionTimestamp": ["2020-01-01T00:00:00Z"],
    "metadata.selfLink": ["/x"],
    "metadata.unheardOf": [1],
    "metadata.managedFields": [[], None],
    "metadata": [None, "x"],
}
