"""Writes down what a real API server answers: `python -m cluster.custom.record` with `tests` and `scripts` on the path."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path

import rig
from cluster.custom.asking import held
from cluster.custom.real import Real
from cluster.custom.script import CONVERSATIONS

DATA = Path(__file__).parent / "data"


async def _record(cluster: rig.Cluster) -> None:
    DATA.mkdir(exist_ok=True)
    for name, steps in CONVERSATIONS.items():
        with closing(Real(cluster)) as ask:
            answers = await held(ask, steps)
        lines = (f"{json.dumps(step)}: {json.dumps(answer, sort_keys=True)}" for step, answer in answers.items())
        (DATA / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    with rig.running() as running:
        asyncio.run(_record(running))
