"""Checks of pods, and what may change of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from navarch.cluster.server.kinds.builtin.checks.pod_spec import check_pod_spec
from navarch.cluster.server.wire.causes import forbidden, invalid, required
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause

__all__ = ["check_pod", "check_pod_update", "removal_faults", "resize_faults"]

_CONTAINER_LISTS: Final = ("containers", "initContainers")
_UPDATES: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_pod(pod: Json) -> Iterator[Cause]:
    """A pod, new or changed."""
    yield from check_pod_spec(pod["spec"], "spec")
    yield from _check_images(pod["spec"])
    if pod["spec"].get("ephemeralContainers") and not pod["metadata"].get("resourceVersion"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")


def _check_images(spec: Json) -> Iterator[Cause]:
    """What templates may have, and no pod."""
    for name in (*_CONTAINER_LISTS, "ephemeralContainers"):
        for index, container in enumerate(spec.get(name) or ()):
            image = container.get("image", "")
            if image != image.strip():
                yield invalid(f"spec.{name}[{index}].image", image, "must not have leading or trailing whitespace")


def check_pod_update(pod: Json, old: Json) -> Iterator[Cause]:
    """Only a few fields of a pod's spec change, and some only in one direction."""
    spec, before = pod["spec"], old["spec"]
    counts = [(len(spec.get(name) or ()), len(before.get(name) or ())) for name in _CONTAINER_LISTS]
    for name, (now, then) in zip(_CONTAINER_LISTS, counts, strict=True):
        if now != then:
            yield forbidden(f"spec.{name}", "pod updates may not add or remove containers")
            return
    for index, container in enumerate(spec.get("containers") or ()):
        if not container.get("image"):
            yield required(f"spec.containers[{index}].image")
    yield from _check_deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    yield from _check_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [])
    if _fixed(spec, before) != _fixed(before, before):
        yield forbidden("spec", _UPDATES)


def resize_faults(spec: Json, before: Json, path: str) -> Iterator[Cause]:
    """Other containers than before, or in another order, which no resize can make."""
    for kind in _CONTAINER_LISTS:
        now, then = ([each["name"] for each in of.get(kind) or ()] for of in (spec, before))
        if len(now) != len(then):
            yield forbidden(f"{path}.{kind}", f"{kind} may not be added or removed on resize")
            continue
        for index, (name, known) in enumerate(zip(now, then, strict=True)):
            if name != known:
                said = f"{kind} may not be renamed or reordered on resize"
                yield forbidden(f"{path}.{kind}[{index}].name", said)


def removal_faults(spec: Json, before: Json, path: str) -> Iterator[Cause]:
    """Resources that a container had, and has no more."""
    pairs = zip(spec.get("containers") or (), before.get("containers") or (), strict=True)
    for index, (now, then) in enumerate(pairs):
        for kind in ("requests", "limits"):
            left, had = ((each.get("resources") or {}).get(kind) or {} for each in (now, then))
            if had.keys() - left.keys():
                field = f"{path}.containers[{index}].resources.{kind}"
                yield forbidden(field, f"resource {kind} cannot be removed")


def _check_deadline(now: int | None, then: int | None) -> Iterator[Cause]:
    if now is None and then is not None:
        yield invalid("spec.activeDeadlineSeconds", now, "must not update from a positive integer to nil value")
    elif now is not None and then is not None and now > then:
        yield invalid("spec.activeDeadlineSeconds", now, "must be less than or equal to previous value")


def _check_tolerations(now: list[Json], then: list[Json]) -> Iterator[Cause]:
    kept = {_toleration(each) for each in now}
    if any(_toleration(each) not in kept for each in then):
        said = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", said)


def _toleration(toleration: Json) -> bytes:
    return _canonical({name: value for name, value in toleration.items() if name != "tolerationSeconds"})


def _canonical(value: Json) -> bytes:
    """The same bytes for equal values, to look them up by: a pod may have thousands."""
    return msgspec.json.encode(value, order="deterministic")


def _fixed(spec: Json, before: Json) -> Json:
    """What may not change of a spec: the rest is taken from the old one."""
    fixed: Json = {**spec}
    for name in _CONTAINER_LISTS:
        fixed[name] = [{**each, "image": ""} for each in spec.get(name) or ()]
    for name in ("activeDeadlineSeconds", "tolerations"):
        fixed.pop(name, None)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        fixed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if before.get("schedulingGates"):
        _allow_gates(fixed, before)
    return fixed


def _allow_gates(fixed: Json, before: Json) -> None:
    """A pod that waits at a gate may lose gates and be steered to nodes."""
    known = {_canonical(gate) for gate in before["schedulingGates"]}
    if all(_canonical(gate) in known for gate in fixed.get("schedulingGates") or ()):
        for name in ("schedulingGates", "nodeSelector", "affinity"):
            fixed.pop(name, None)
