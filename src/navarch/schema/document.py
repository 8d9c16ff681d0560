"""A structural schema as it stands in a CustomResourceDefinition: a plain JSON document."""

from __future__ import annotations

from typing import Any

__all__ = ["TYPE_FIELDS", "JsonSchema"]

JsonSchema = dict[str, Any]

TYPE_FIELDS = ("apiVersion", "kind", "metadata")
"""What every whole object has, whatever its schema says."""
