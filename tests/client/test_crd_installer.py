"""Bringing a custom kind to a cluster, played from a script."""

from __future__ import annotations

from typing import Any

import pytest

from navarch import errors
from navarch.api import Resource, Spec, Status
from navarch.schema import crd
from scripted import LeapingClock, Scripted, ScriptedTransport, answer, refusal, scripted


class Boat(Resource[Spec, Status], group="boats.example.com", version="v1"): ...


RESOURCE = {"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "namespaced": False, "verbs": []}
DISCOVERED = answer(
    {"kind": "APIResourceList", "groupVersion": "apiextensions.k8s.io/v1", "resources": [RESOURCE]},
)
TAKEN = [
    {"type": "NamesAccepted", "status": "False", "message": '"BoatList" is already in use'},
    {"type": "Established", "status": "False", "message": "not all names are accepted"},
]


class NeverServed(ScriptedTransport):
    """Whatever comes after its script: the kind is not there, and the last answer is about its definition."""

    def __init__(self, definition: Scripted, *script: Scripted | BaseException) -> None:
        super().__init__(*script)
        self._definition = definition

    async def send(self, request: Any) -> Any:
        if not self.script:
            about_itself = request.path.endswith("/boats.boats.example.com")
            self.script.append(self._definition if about_itself else refusal(404, "NotFound"))
        return await super().send(request)


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        (TAKEN, 'NamesAccepted is False: "BoatList" is already in use; Established is False: not all names'),
        ([], "`kubectl describe crd boats.boats.example.com` shows its conditions"),
    ],
)
async def test_kind_that_is_not_served_in_time_is_told_with_the_reason(conditions: Any, reason: str) -> None:
    """The definition itself says why, if it says anything."""
    definition = answer({**crd(Boat), "status": {"conditions": conditions}})
    client, _ = scripted(clock=LeapingClock())
    client = client.through(lambda _: NeverServed(definition, DISCOVERED, answer(crd(Boat))))
    with pytest.raises(errors.DeadlineError, match=r"expected the server to serve Boat .* within 30 s") as caught:
        await client.install(crd(Boat))
    assert reason in str(caught.value)


async def test_dry_run_waits_for_nothing() -> None:
    """The kind will not be there."""
    client, transport = scripted(DISCOVERED, answer(crd(Boat)), dry_run=True)
    await client.install(crd(Boat))
    assert [(request.method, request.query.get("dryRun")) for request in transport.requests] == [
        ("GET", None),
        ("PATCH", "All"),
    ]
