"""Protobuf is read and not written."""

from __future__ import annotations

import subprocess
import sys

import pytest

from navarch.cluster.server.negotiation import asked_form
from navarch.cluster.server.refusal import Refusal

PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.mark.parametrize(
    "accept", [f"{PROTOBUF},application/json", f"{PROTOBUF}, */*", f"{PROTOBUF};q=1,application/*"]
)
def test_who_takes_json_too_gets_json(accept: str) -> None:
    """As every Go client does."""
    assert asked_form(accept).media_type == "application/json"


def test_who_takes_protobuf_alone_is_refused() -> None:
    """406, with what there is."""
    with pytest.raises(Refusal) as refused:
        asked_form(PROTOBUF)
    assert refused.value.code == 406


def test_a_server_starts_without_it() -> None:
    """Nobody waits for what Go clients alone need."""
    code = "import sys, navarch.cluster.embedded.cluster; print('navarch.cluster.server.protobuf' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
