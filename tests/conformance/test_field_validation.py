"""Field validation: what is unknown, and what comes twice, in the order in which the server comes upon it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from navarch.client import Client, Config

Ask = Callable[..., dict[str, Any]]
UNREAD = "cannot be handled as a ConfigMap: strict decoding error: "


@pytest.fixture
def ask(config: Config) -> Iterator[Ask]:
    """Sends one body, and reads what the server says of it."""
    connection = HTTPSConnection(urlsplit(config.server).netloc, timeout=30, context=config.ssl_context())

    def asked(method: str, path: str, body: str, media_type: str, accept: str = "application/json") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {config.token}", "Content-Type": media_type, "Accept": accept}
        connection.request(method, path, body.encode(), headers)
        answer = connection.getresponse()
        said = answer.headers.get_all("Warning") or []
        return {**json.loads(answer.read()), "warnings": [each.removeprefix("299 - ").strip() for each in said]}

    yield asked
    connection.close()


JSON = """{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","q":1,"name":"c"},"a":1,
"data":{"x":"1","x":"2"},"z":{"x":1,"x":2},"a":2}"""
YAML = """apiVersion: v1
kind: ConfigMap
metadata:
  name: a
unknown: 1
data:
  x: "1"
  x: "2"
  y:
    "1"
  y: "3"
"""


async def test_json_is_told_of_as_it_is_read(client: Client, ask: Ask) -> None:
    """What is unknown and what comes twice, one after the other; nobody looks into what is unknown."""
    path = f"/api/v1/namespaces/{client.options.namespace}/configmaps"
    said = ask("POST", f"{path}?fieldValidation=Strict", JSON, "application/json")["message"]
    assert said.endswith(
        f'{UNREAD}unknown field "metadata.q", duplicate field "metadata.name", unknown field "a", '
        'duplicate field "data.x", unknown field "z"'
    )


async def test_yaml_is_told_of_line_by_line(client: Client, ask: Ask) -> None:
    """All at once in a refusal, and one by one as warnings."""
    path = f"/api/v1/namespaces/{client.options.namespace}/configmaps"
    lines = ['line 8: key "x" already set in map', "line 11: key true already set in map"]
    told = "yaml: unmarshal errors:" + "".join(f"\n  {line}" for line in lines)
    said = ask("POST", f"{path}?fieldValidation=Strict", YAML, "application/yaml")["message"]
    assert said.endswith(f'{UNREAD}{told}, unknown field "unknown"')
    escaped = [json.dumps(each) for each in (*lines, 'unknown field "unknown"')]
    assert ask("POST", path, YAML, "application/yaml")["warnings"] == escaped


async def test_what_is_applied_twice_is_refused(client: Client, ask: Ask) -> None:
    """With the line, also in YAML."""
    path = f"/api/v1/namespaces/{client.options.namespace}/configmaps/a?fieldManager=me&fieldValidation=Strict"
    body = YAML.replace("unknown: 1\n", "")
    said = ask("PATCH", path, body, "application/apply-patch+yaml")["message"]
    lines = '\n  line 7: key "x" already set in map\n  line 10: key true already set in map'
    assert said == f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{lines}"


async def test_what_is_never_listed_has_no_table(client: Client, ask: Ask) -> None:
    """406, as for every form that cannot be given."""
    review = '{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}'
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = ask("POST", path, review, "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io")
    types = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    assert (answer["code"], answer["message"]) == (406, f"only the following media types are accepted: {types}")
