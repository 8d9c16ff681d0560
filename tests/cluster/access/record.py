"""Asks a fresh real server everything and writes its answers down: `python -m cluster.access.record`, with `tests` and
`scripts` on the path.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import rig
from cluster.access.asking import Conversation, Json, Step, compared
from cluster.access.matrix import OTHER, TEAM, USERS, Question, creation, objects, questions
from cluster.access.real import RealServer
from cluster.access.script import steps
from navarch._base.clock import SystemClock

DATA = Path(__file__).parent / "data"
_SETTLING = 1.0
"""Seconds in which the server's own caches learn of a new role or binding, or of a deletion."""


async def answers(server: RealServer) -> dict[str, Any]:
    """What the real server says to each step of the script."""
    conversation = Conversation(server)
    for step in steps():
        await conversation.take(step)
        is_rbac = "rbac" in step.path and step.method != "GET"
        if (is_rbac or step.method == "DELETE") and conversation.answers[step.name][0] < 300:
            await SystemClock().sleep(_SETTLING)
    return {step.name: compared(step, conversation.answers[step.name]) for step in steps()}


def prepare(server: RealServer) -> None:
    """Makes what the matrix asks about."""
    for namespace in (TEAM, OTHER):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        server.asked(Step("namespace", "POST", "/api/v1/namespaces"), body, server.tokens["$admin"])
    for value in objects():
        code, answer = server.asked(creation(value), value, server.tokens["$admin"])
        assert code in {201, 409}, f"expected {value['metadata']['name']} to be made, got {answer}"


def decisions(server: RealServer, every: int = 1) -> dict[str, str]:
    """By user, one character for each question, or for every seventh: 1 if it is allowed."""
    with ThreadPoolExecutor(8) as pool:
        asked = {user: list(questions(user))[::every] for user in USERS}
        return {user: "".join(pool.map(server_decision(server), some)) for user, some in asked.items()}


def server_decision(server: RealServer) -> Callable[[Question], str]:
    """A function from a question to 1 or 0."""

    def decide(question: Question) -> str:
        step = question.step()
        code, answer = server.asked(step, step.body, server.tokens["$admin"])
        assert code == 201, f"expected a review, got {answer}"
        return str(int(answer["status"]["allowed"]))

    return decide


def _write(name: str, value: Json) -> None:
    (DATA / name).write_text(f"{json.dumps(value, indent=1, ensure_ascii=False)}\n", encoding="utf-8")


def main() -> None:
    """Write both files."""
    with rig.running() as cluster, contextlib.closing(RealServer(cluster)) as server:
        _write("answers.json", asyncio.run(answers(server)))
        prepare(server)
        asyncio.run(SystemClock().sleep(_SETTLING))
        _write("decisions.json", decisions(server))


if __name__ == "__main__":
    main()
