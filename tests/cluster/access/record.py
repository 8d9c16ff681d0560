"""What a fresh real server answers to the script, and whom it allows what: `make judge NAME=access`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import rig
from cluster.access.asking import Conversation, Step, compared
from cluster.access.matrix import OTHER, TEAM, USERS, Question, creation, objects, questions
from cluster.access.real import RealServer
from cluster.access.script import steps
from judge import KUBE_APISERVER, Recording, Verdicts
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


def decisions(server: RealServer) -> dict[str, str]:
    """By user, one character for each question: 1 if it is allowed."""
    with ThreadPoolExecutor(8) as pool:
        asked = {user: list(questions(user)) for user in USERS}
        return {user: "".join(pool.map(server_decision(server), some)) for user, some in asked.items()}


def server_decision(server: RealServer) -> Callable[[Question], str]:
    """A function from a question to 1 or 0."""

    def decide(question: Question) -> str:
        step = question.step()
        code, answer = server.asked(step, step.body, server.tokens["$admin"])
        assert code == 201, f"expected a review, got {answer}"
        return str(int(answer["status"]["allowed"]))

    return decide


def ask(cluster: rig.Cluster) -> Verdicts:
    """Puts every question."""
    with contextlib.closing(RealServer(cluster)) as server:
        found = asyncio.run(answers(server))
        prepare(server)
        asyncio.run(SystemClock().sleep(_SETTLING))
        return {"answers.json": found, "decisions.json": decisions(server)}


RECORDING = Recording("access", KUBE_APISERVER, DATA, ("answers.json", "decisions.json"), ask)
