"""What was written down of a real API server is still what it says."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

import rig
from cluster.custom.asking import held
from cluster.custom.real import Real
from cluster.custom.script import CONVERSATIONS

pytestmark = pytest.mark.real
DATA = Path(__file__).parent / "data"


# "life" is not among them: which conditions a definition has just then depends on how fast the real controllers are.
@pytest.mark.parametrize("name", ["objects", "changes"])
async def test_real_server_still_answers_so(name: str, rig_cluster: rig.Cluster) -> None:
    """The recorded answers are those of the real server."""
    with closing(Real(rig_cluster)) as ask:
        answers = json.loads(json.dumps(await held(ask, CONVERSATIONS[name])))
    assert answers == json.loads((DATA / f"{name}.json").read_text())
