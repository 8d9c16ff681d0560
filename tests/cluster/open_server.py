"""What a server of tests has in the place of access, audit and admission: everybody may do everything."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.wire.request import ApiRequest, Json, User

__all__ = ["Anybody", "NoAdmission", "request"]


class Anybody:
    """Authenticates, authorizes and audits: nobody is refused, nothing is written down."""

    async def authenticate(self, _request: ApiRequest) -> User:
        return User("admin")

    def acting_user(self, _request: ApiRequest, user: User) -> User:
        return user

    async def refresh(self) -> None: ...

    def why_not(self, *_: Any) -> None:
        return None

    def started(self, *_: Any, **__: Any) -> None: ...

    def completed(self, *_: Any, **__: Any) -> None: ...


class NoAdmission:
    """Changes nothing and refuses nothing."""

    async def mutate(self, attributes: Attributes, _warnings: Warnings) -> Json | None:
        return attributes.value

    async def validate(self, *_: Any) -> None: ...


def request(method: str, path: str, body: Any, **headers: str) -> ApiRequest:
    """A request with its query in the path, and its body as a value; header names with underscores."""
    parts = urlsplit(path)
    return ApiRequest(
        method=method,
        path=parts.path,
        query=parse_qs(parts.query, keep_blank_values=True),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
        body=b"" if body is None else json.dumps(body).encode(),
    )
