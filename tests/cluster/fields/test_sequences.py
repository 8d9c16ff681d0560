"""Who owns what after a write, and what an apply makes: the same as on a real server."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

import rig
from cluster.fields.acting import performed
from cluster.fields.record import DATA, unpacked
from cluster.fields.replay import Step, differences
from cluster.fields.scripts import scripts
from cluster.fields.sequences import Sequence, Server


def _recorded(name: str) -> list[Any]:
    found: list[Any] = msgspec.json.decode((DATA / name).read_bytes())
    return found


def _complaints(number: int, step: Step) -> list[str]:
    where = f"{step.plural} step {number}: {step.operation} by {step.manager}"
    return [f"{where}: {difference}" for difference in differences(step)]


@pytest.mark.parametrize("name", ["scripts.json", "sequences.json"])
def test_recorded_writes_have_the_recorded_outcome(name: str) -> None:
    """Managed fields, merged objects and refusals are those of the real server, request by request."""
    sequences = [list(enumerate(unpacked(told))) for told in _recorded(name)]
    assert sum(map(len, sequences)) > 100
    wrong = [text for sequence in sequences for number, step in sequence for text in _complaints(number, step)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("plural", ["widgets", "configmaps", "services", "pods", "deployments"])
def test_new_sequences_of_writes_end_as_on_the_real_server(rig_cluster: rig.Cluster, plural: str) -> None:
    """Hundreds of random sequences by several managers make no difference."""
    server = Server(rig_cluster)
    server.install_widgets()
    wrong = [
        text
        for seed in range(1000, 1060)
        for number, step in enumerate(Sequence(server, plural, f"new-{seed}", random.Random(seed)).steps(8))
        for text in _complaints(number, step)
    ]
    server.close()
    assert not wrong, "\n".join(wrong[:3])


@pytest.mark.real
@pytest.mark.timeout(600)
def test_scripts_end_as_on_the_real_server(rig_cluster: rig.Cluster) -> None:
    """What was recorded is still what the real server does."""
    server = Server(rig_cluster)
    server.install_widgets()
    wrong = [
        text
        for script in scripts()
        for number, step in enumerate(performed(server, script))
        for text in _complaints(number, step)
    ]
    server.close()
    assert not wrong, "\n".join(wrong[:3])
