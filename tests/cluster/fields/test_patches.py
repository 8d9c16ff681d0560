"""Patches: what they make of an object, and what is said of those that make nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cluster.fields.conversation import Patch, patches
from cluster.fields.record import DATA
from cluster.fields.replay import Json, compared_patch, resource
from navarch.api import apply_json_patch
from navarch.cluster.server.objects import fields
from navarch.cluster.server.wire.status_errors import StatusError

_RECORDED: Json = msgspec.json.decode((DATA / "patches.json").read_bytes())
_CASES = list(zip(patches(), _RECORDED["answers"], strict=True))


def _outcome(patch: Patch) -> tuple[int, Json]:
    live = _RECORDED["objects"][patch.plural]
    kind = resource(patch.plural, "v1")
    try:
        body = patch.body.encode()
        return 200, fields.patched(live, body, patch.media_type, kind, field_validation=patch.field_validation)
    except StatusError as refusal:
        return refusal.code, refusal.status()


@pytest.mark.parametrize(("patch", "answer"), _CASES, ids=[f"{n}" for n in range(len(_CASES))])
def test_a_patch_has_the_recorded_outcome(patch: Patch, answer: tuple[int, Any]) -> None:
    """The object or the refusal is that of the real server."""
    code, theirs = answer
    ours = _outcome(patch)
    if code < 300:
        assert ours[0] == 200, ours
        expected = apply_json_patch(theirs, _RECORDED["objects"][patch.plural])
        assert not list(compared_patch(patch.plural, ours[1], expected))
    elif "patch" in theirs["message"][:30] or ours[0] != 200:
        assert ours == (code, theirs)


def test_a_patch_leaves_the_live_object_as_it_is() -> None:
    """The live object is compared with the result later on."""
    before = msgspec.json.encode(_RECORDED["objects"])
    for patch in patches():
        _outcome(patch)
    assert msgspec.json.encode(_RECORDED["objects"]) == before
