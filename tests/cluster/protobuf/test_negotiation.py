"""Protobuf is written only for those who take nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

from navarch.cluster.server.objects.response_bodies import ResponseForm, asked_form
from navarch.cluster.server.wire.status_errors import StatusError

PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    "accept", [f"{PROTOBUF},application/json", f"{PROTOBUF}, */*", f"{PROTOBUF};q=1,application/*"]
)
def test_who_takes_json_too_gets_json(accept: str) -> None:
    """As every Go client does."""
    assert asked_form(accept).media_type == "application/json"


def test_who_takes_protobuf_alone_gets_it_where_there_is_some() -> None:
    """Custom kinds have none, and tables neither: 406, with what there is."""
    assert asked_form(PROTOBUF, has_protobuf=True).media_type == PROTOBUF
    for accept, has_protobuf in ((PROTOBUF, False), (f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1", True)):
        with pytest.raises(StatusError) as refused:
            asked_form(accept, has_protobuf=has_protobuf)
        assert refused.value.code == 406


def test_a_server_starts_without_it() -> None:
    """Nobody waits for what Go clients alone need."""
    code = "import sys, navarch.cluster.embedded.cluster; print('navarch.cluster.server.wire.protobuf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"


def test_metadata_is_given_in_protobuf_to_whoever_asks_for_that_first() -> None:
    """As clients of Go do that watch everything; they mistake JSON for another answer."""
    partial = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    accept = f"{PROTOBUF};{partial},application/json;{partial},application/json"
    assert asked_form(accept) == ResponseForm(PROTOBUF, "PartialObjectMetadata", "v1")
    assert asked_form(f"application/json;{partial},{PROTOBUF};{partial}").media_type == "application/json"
