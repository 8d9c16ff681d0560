"""One sequence on one server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from differential.engines import Answer, Engine
from differential.normal import Normal
from differential.steps import Difference, Json, Step, differences, filled

_NOBODY = "00000000-0000-4000-8000-000000000000"
_PATIENCE = 60.0
_SUBRESOURCES = frozenset({"status", "scale", "eviction", "binding", "ephemeralcontainers", "resize", "token"})


class Performance:
    """What a server was asked in a namespace of its own, and what it said."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self.outcomes: list[Json] = []
        self._engine = engine
        self._namespace = namespace
        self._normal = Normal()
        self._versions: dict[str, list[str]] = {}
        self._uids: dict[str, str] = {}
        self._since = ""
        self._listed = {"$continue": "rubbish"}

    async def prepare(self) -> str:
        """Makes the namespace as controllers would; the version from which on everything is this sequence's."""
        await self._engine.ask(_made("/api/v1/namespaces", "Namespace", self._namespace))
        accounts = f"/api/v1/namespaces/{self._namespace}/serviceaccounts"
        answer = await self._engine.ask(_made(accounts, "ServiceAccount", "default"))
        self._since = str(answer.body["metadata"]["resourceVersion"])
        self._normal.begin(self._since)
        return self._since

    async def perform(self, steps: Iterable[Step]) -> None:
        """Asks one after the other."""
        for step in steps:
            self.outcomes.append(self._normal.answer(await self._ask(step)))

    async def perform_together(self, steps: Sequence[Step]) -> None:
        """Asks all at once."""
        self.outcomes += [self._normal.answer(answer) for answer in await asyncio.gather(*map(self._ask, steps))]

    async def give_back(self) -> None:
        """Lets go of the addresses of Services, of which there are few."""
        await self._engine.ask(Step("DELETE", f"/api/v1/namespaces/{self._namespace}/services"))

    async def _ask(self, step: Step) -> Answer:
        known = self._known(step.path)
        asked = replace(
            step,
            path=filled(step.path, known),
            query=tuple((name, filled(value, known)) for name, value in step.query),
            raw=filled(step.text, known),
            impersonating=tuple((name, filled(value, known)) for name, value in step.impersonating),
            body=None,
        )
        async with asyncio.timeout(_PATIENCE):
            answer = await self._engine.ask(asked)
        self._remember(step, answer.body)
        return answer

    def _known(self, path: str) -> dict[str, str]:
        versions = self._versions.get(_object_path(path), [])
        return {
            "$ns": self._namespace,
            "$rv": versions[-1] if versions else self._since,
            "$old": versions[-2] if len(versions) > 1 else self._since,
            "$listed": self._since,
            "$uid": self._uids.get(_object_path(path), _NOBODY),
            **self._listed,
        }

    def _remember(self, step: Step, body: Any) -> None:
        if not isinstance(body, dict) or body.get("kind") == "Status":
            return
        metadata = body.get("metadata") or {}
        if "items" in body or body.get("kind") == "Table":
            self._listed = {
                "$listed": metadata.get("resourceVersion", self._since),
                "$continue": metadata.get("continue") or self._listed["$continue"],
            }
            return
        path = _object_path(step.path)
        if step.method == "POST":
            path = f"{step.path}/{metadata.get('name', '').replace(self._namespace, '$ns')}"
        if "uid" in metadata:
            self._uids[path] = metadata["uid"]
        versions = self._versions.setdefault(path, [])
        if (version := metadata.get("resourceVersion")) and version not in versions[-1:]:
            versions.append(version)


def _made(path: str, kind: str, name: str) -> Step:
    return Step("POST", path, body={"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})


def _object_path(path: str) -> str:
    """The path without its subresource and version: all versions are of one object."""
    head, _, subresource = path.rpartition("/")
    path = head if subresource in _SUBRESOURCES else path
    return path.replace("/v1beta1/", "/v1/")


def differences_between(embedded: Sequence[Json], real: Sequence[Json]) -> Iterable[Difference]:
    """Every difference, in order; of answers with another code only what both say."""
    for index, (one, other) in enumerate(zip(embedded, real, strict=True)):
        if one["status"] != other["status"]:
            yield Difference(index, "status", _said(one), _said(other))
            continue
        for where, mine, theirs in differences(one, other):
            yield Difference(index, where, mine, theirs)


def _said(outcome: Json) -> str:
    body = outcome["body"]
    return f"{outcome['status']} {body.get('message', '') if isinstance(body, dict) else body}"
