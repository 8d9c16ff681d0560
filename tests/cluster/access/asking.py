"""Requests that are sent to the real server and to the miniature alike, and what of their answers is compared."""

from __future__ import annotations

import base64
import copy
import json
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from navarch.cluster.server.pipeline.authentication.signing import SigningKey, decode_part

Json = dict[str, Any]
Answer = tuple[int, Any]
Headers = tuple[tuple[str, str], ...]

_SECRETS = {
    re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"): "<uid>",
    re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"): "<time>",
    re.compile(r"eyJ[\w-]+\.[\w-]*\.[\w-]*"): "<token>",
    re.compile(r'(, ?|,)?\\?"managedFields\\?": ?\[\{.*?\}\]'): "",
}


@dataclass(frozen=True)
class Step:
    """One request. `$name` in a body or as `token` is a token that an earlier step kept under that name."""

    name: str
    method: str
    path: str
    body: Json | None = None
    headers: Headers = ()
    token: str = "$admin"
    keeps: str = ""
    claims: Json | None = None
    """For a TokenReview: the claims of the kept token "robot" with these changes (None: left out), signed anew."""
    head: Json | None = None
    """The head of that token, if another than the key's own."""


class Server(Protocol):
    """Something that answers."""

    key: SigningKey
    tokens: dict[str, str]

    async def ask(self, step: Step, body: Json | None, token: str) -> Answer:
        """The code and the body of the answer."""
        ...


@dataclass
class Conversation:
    """Steps one after another with one server."""

    server: Server
    answers: dict[str, Answer] = field(default_factory=dict)

    async def take(self, step: Step) -> Answer:
        """The answer, normalised."""
        body = json.loads(json.dumps(step.body))
        if step.claims is not None:
            body["spec"]["token"] = self._forged(step)
        elif body and str(body.get("spec", {}).get("token", "")).startswith("$"):
            body["spec"]["token"] = self.server.tokens[body["spec"]["token"]]
        code, answer = await self.server.ask(step, body, self.server.tokens.get(step.token, step.token))
        if step.keeps:
            self.server.tokens[f"${step.keeps}"] = answer["status"]["token"]
        self.answers[step.name] = code, normalised(answer)
        return self.answers[step.name]

    def _forged(self, step: Step) -> str:
        claims = {**_part(self.server.tokens["$robot"], 1), **(step.claims or {})}
        own = {**_part(self.server.tokens["$robot"], 1)["kubernetes.io"], **((step.claims or {}).get("own") or {})}
        claims |= {"kubernetes.io": own} if claims.get("kubernetes.io", own) is not None else {}
        claims = {key: value for key, value in claims.items() if value is not None and key != "own"}
        for key in ("exp", "nbf", "iat"):
            if isinstance(claims.get(key), str) and claims[key].startswith("now"):
                claims[key] = _part(self.server.tokens["$robot"], 1)["iat"] + int(claims[key].removeprefix("now"))
        return self.server.key.sign(claims) if step.head is None else with_head(self.server.key, claims, step.head)


def with_head(key: SigningKey, claims: Json, head: Json) -> str:
    """A token that the key signed, whose head says something else."""
    other = copy.copy(key)
    other._head = base64.urlsafe_b64encode(json.dumps(head).encode()).rstrip(b"=").decode()
    return other.sign(claims)


def _part(token: str, index: int) -> Json:
    return decode_part(token.split(".")[index])


def normalised(value: Any) -> Any:
    """Without ids, times, tokens and managed fields."""
    if isinstance(value, dict):
        return {key: normalised(each) for key, each in value.items() if key != "managedFields"}
    if isinstance(value, list):
        return [normalised(each) for each in value]
    if isinstance(value, str):
        for pattern, stand_in in _SECRETS.items():
            value = pattern.sub(stand_in, value)
    return value


def compared(step: Step, answer: Answer) -> Answer:
    """What of an answer both servers must agree on: all of a refusal, a review and a TokenRequest, else the code."""
    code, body = answer
    if step.method == "GET" and code in {200, 404}:
        return 200, None
    if code == 201 and step.path.endswith("selfsubjectrulesreviews"):
        for rules in ("resourceRules", "nonResourceRules"):  # in no order at all
            body["status"][rules].sort(key=json.dumps)
    return (code, body) if code >= 400 or "review" in step.path or step.path.endswith("/token") else (code, None)
