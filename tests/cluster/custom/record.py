"""What a real API server answers about custom resources: `make judge NAME=custom`."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import rig
from cluster.custom.asking import held
from cluster.custom.real import Real
from cluster.custom.script import CONVERSATIONS
from judge import KUBE_APISERVER, Recording, Verdicts

DATA = Path(__file__).parent / "data"


def ask(cluster: rig.Cluster) -> Verdicts:
    """Holds every conversation."""
    found = {}
    for name, steps in CONVERSATIONS.items():
        with closing(Real(cluster)) as server:
            found[f"{name}.json"] = asyncio.run(held(server, steps))
    return found


def steady(name: str, verdicts: Any) -> Any:
    """Which conditions a CRD has just then depends on how fast the real controllers are: its life is compared without."""
    if name != "life.json":
        return verdicts
    return {step: _without_conditions(answer) for step, answer in verdicts.items()}


def _without_conditions(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_conditions(item) for key, item in value.items() if key != "conditions"}
    return [_without_conditions(item) for item in value] if isinstance(value, list) else value


RECORDING = Recording("custom", KUBE_APISERVER, DATA, tuple(f"{name}.json" for name in CONVERSATIONS), ask, steady)
