"""Workloads as tests make them."""

from __future__ import annotations

from typing import Any

from navarch.api import ObjectMeta
from navarch.k8s.core.v1 import Container, PodSpec, PodTemplateSpec
from navarch.k8s.meta.v1 import LabelSelector

LABELS = {"app": "web"}
SELECTOR = LabelSelector(match_labels=LABELS)


def template(image: str = "first", labels: dict[str, str] | None = None, **spec: Any) -> PodTemplateSpec:
    """A pod with one container that stops at once when it is told to."""
    return PodTemplateSpec(
        metadata=ObjectMeta(labels=labels or LABELS),
        spec=PodSpec(
            **{"containers": [Container(name="main", image=image)], "termination_grace_period_seconds": 0, **spec}
        ),
    )
