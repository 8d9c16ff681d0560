"""What the controls share: the parts of a pod they look at, and how they tell what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from navarch.cluster.server.wire.request import Json
from navarch.schema.values.violations import go_quoted

__all__ = [
    "Setters",
    "Violation",
    "annotations_of",
    "containers_of",
    "listed",
    "named",
    "security_contexts",
    "security_of",
    "told",
]

_FIELDS = ("initContainers", "containers", "ephemeralContainers")


class Violation(NamedTuple):
    """A control that a pod does not meet: `reason` names the control, `detail` the fields and who has set them."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


def told(violations: Iterable[Violation]) -> str:
    """All violations of a pod in one line."""
    return ", ".join(map(str, violations))


def annotations_of(pod: Json) -> dict[str, str]:
    """The annotations; a pod template may even have no metadata."""
    return (pod.get("metadata") or {}).get("annotations") or {}


def containers_of(pod: Json) -> Iterator[Json]:
    """All containers of a pod, of every kind."""
    for field in _FIELDS:
        yield from pod["spec"].get(field) or ()


def security_of(spec: Json) -> Json:
    """The security context of the spec of a pod, or of a container; empty if there is none."""
    return spec.get("securityContext") or {}


def security_contexts(pod: Json) -> Iterator[tuple[Json | None, Json]]:
    """The security context of the pod itself, with None, and those of its containers."""
    yield None, security_of(pod["spec"])
    for container in containers_of(pod):
        yield container, security_of(container)


def listed(values: Iterable[str]) -> str:
    """Values in quotes; control characters in them are escaped."""
    return ", ".join(map(go_quoted, values))


def named(what: str, names: list[str]) -> str:
    """Things of one kind by their names.

    >>> print(named("container", ["a", "b"]))
    containers "a", "b"
    """
    return f"{what}{'' if len(names) == 1 else 's'} {listed(names)}"


class Setters:
    """Whose security context has a forbidden value: the pod's own, and those of its containers, with these values."""

    def __init__(self) -> None:
        self.has_pod = False
        self.containers: list[str] = []
        self.values: set[str] = set()

    def __bool__(self) -> bool:
        return self.has_pod or bool(self.containers)

    def __str__(self) -> str:
        pod = ["pod"] if self.has_pod else []
        return " and ".join([*pod, *([named("container", self.containers)] if self.containers else [])])

    def add(self, container: Json | None, *values: str) -> None:
        """A container, or the pod itself for None."""
        if container is None:
            self.has_pod = True
        else:
            self.containers.append(container["name"])
        self.values.update(values)
