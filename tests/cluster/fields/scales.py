"""Writes to the scale of a Deployment, sent to a real API server."""

from __future__ import annotations

from typing import Any, NamedTuple

from cluster.fields.replay import Json
from cluster.fields.sequences import Server, object_path, send

NAME = "scaled"
CONTROLLER = "kube-controller-manager"


class ScaleWrite(NamedTuple):
    """A request, to the scale or to the Deployment itself."""

    operation: str
    manager: str
    replicas: int
    force: bool = False
    subresource: str = "scale"


WRITES = (
    ScaleWrite("merge", "bob", 1),
    ScaleWrite("apply", "cid", 2),
    ScaleWrite("apply", "cid", 2, force=True),
    ScaleWrite("apply", "cid", 3),
    ScaleWrite("merge", "ann", 3),
    ScaleWrite("merge", "bob", 4),
    ScaleWrite("merge", "bob", 5),
    ScaleWrite("merge", "ann", 6, subresource=""),
    ScaleWrite("merge", "dan", 6),
    ScaleWrite("merge", "ann", 0),
)


def body_of(write: ScaleWrite) -> Json:
    """What is sent."""
    spec = {"spec": {"replicas": write.replicas}}
    names = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": NAME, "namespace": "default"}}
    return {**names, **spec} if write.operation == "apply" else spec


def performed_scales(server: Server) -> list[Json]:
    """For each write: the entries of the Deployment and its Scale before, the answer, and the entries after."""
    path = object_path("deployments", "v1", NAME)
    container = {"name": "a", "image": "1"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"paused": True, "replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME}, "spec": spec}
    send(server, path, "create", "ann", body)
    told = []
    for write in WRITES:
        before, scale = _entries(server, path), server.ask("GET", f"{path}/scale")[1]
        place = f"{path}/scale" if write.subresource else path
        code, answer = send(server, place, write.operation, write.manager, body_of(write), force=write.force)
        told.append({"before": before, "scale": scale, "code": code, "answer": answer, "after": _entries(server, path)})
    server.ask("DELETE", f"{path}?gracePeriodSeconds=0")
    return told


def _entries(server: Server, path: str) -> list[Any]:
    """Without those of the controller, which writes whenever it likes."""
    entries = server.ask("GET", path)[1]["metadata"]["managedFields"]
    return [entry for entry in entries if entry["manager"] != CONTROLLER]
