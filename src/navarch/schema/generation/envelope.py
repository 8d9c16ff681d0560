"""What is around the schema of a CRD and can be refused for itself: its labels, its annotations, its size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from navarch.api.codec import encode
from navarch.api.names import LABEL_KEY, LABEL_VALUE
from navarch.schema.inspection.faults import DefinitionFault, unexpected

__all__ = ["envelope_faults"]

_LARGEST = 1536 * 1024
"""What etcd takes in one request, if nobody has configured it otherwise."""


def envelope_faults(manifest: dict[str, Any]) -> Iterator[DefinitionFault]:
    """Everything about a CRD but its spec for which it would not be stored."""
    metadata = manifest["metadata"]
    for field in ("labels", "annotations"):
        for key in metadata.get(field, {}):
            if not LABEL_KEY.allows(key):
                yield unexpected(
                    f"metadata.{field}", LABEL_KEY.description, repr(key), f"write another key in {field}="
                )
    for key, value in metadata.get("labels", {}).items():
        if not isinstance(value, str) or not LABEL_VALUE.allows(value):
            yield unexpected(f"metadata.labels[{key}]", LABEL_VALUE.description, repr(value), "write another value")
    size = len(encode(manifest))
    if size > _LARGEST:
        remedy = "shorten its descriptions with crd(..., description_limit=200), or split the kind"
        yield unexpected("spec", f"a CRD of at most {_LARGEST:,} bytes, which is what etcd takes", f"{size:,}", remedy)
