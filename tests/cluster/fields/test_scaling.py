"""The scale subresource: whoever writes it owns the replicas of the object."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import rig
from cluster.fields.record import DATA
from cluster.fields.replay import Json
from cluster.fields.scales import WRITES, ScaleWrite, body_of, performed_scales
from cluster.fields.sequences import Server
from navarch.cluster.server.objects import fields
from navarch.cluster.server.pipeline.subresources.scaling import entries_from_scale, entries_of_scale
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.k8s.published import published

_PATHS = {"apps/v1": ("f:spec", "f:replicas")}
_SHAPE = fields.builtin_shape("autoscaling", "v1", "Scale", published().schema("io.k8s.api.autoscaling.v1.Scale"))


def _outcome(write: ScaleWrite, told: Json) -> Any:
    """The entries of the object after a write to its scale, or what is said against it."""
    live = {**told["scale"], "metadata": {**told["scale"]["metadata"]}}
    live["metadata"]["managedFields"] = entries_of_scale(told["before"], _PATHS)
    more: Json = {"manager": write.manager, "subresource": "scale", "api_version": "autoscaling/v1", "now": "now"}
    if write.operation == "apply":
        try:
            new = fields.applied(live, body_of(write), _SHAPE, force=write.force, **more)
        except StatusError as refusal:
            return refusal.status()
        managed = new["metadata"]["managedFields"]
    else:
        spec = {"replicas": write.replicas} if write.replicas else {}
        managed = fields.updated(live, {**live, "spec": spec}, _SHAPE, **more)
    return entries_from_scale(told["before"], managed, _PATHS, "apps/v1")


def _wrong(told: list[Json]) -> list[str]:
    wrong = []
    for number, (write, each) in enumerate(zip(WRITES, told, strict=True)):
        if not write.subresource:
            continue
        expected = each["after"] if each["code"] < 300 else each["answer"]
        if (ours := _outcome(write, each)) != expected:
            wrong.append(f"{number}: ours {ours}\n theirs {expected}")
    return wrong


def test_recorded_writes_to_a_scale_have_the_recorded_owners() -> None:
    """The replicas change hands as on the real server."""
    told = msgspec.json.decode((DATA / "scales.json").read_bytes())
    assert not _wrong(told), "\n".join(_wrong(told))


@pytest.mark.real
def test_writes_to_a_scale_have_the_owners_of_the_real_server(rig_cluster: rig.Cluster) -> None:
    """What was recorded is still so."""
    server = Server(rig_cluster)
    wrong = _wrong(performed_scales(server))
    server.close()
    assert not wrong, "\n".join(wrong)
