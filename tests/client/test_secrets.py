"""No Secret's data in any error, repr or log, whatever the server does with it."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from navarch.api import Dynamic
from navarch.client import Client, MergePatch
from navarch.client.call import ApiAnswer
from navarch.errors import NavarchError
from navarch.k8s.core.v1 import Secret
from scripted import Scripted, answer, event, page, refusal, scripted

PLAIN, CODED = "hunter2hunter2", "aHVudGVyMmh1bnRlcjI="
WIRE = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"p": CODED}}
QUOTED = json.dumps(json.dumps(WIRE))


def exposures(error: BaseException) -> Iterator[str]:
    """Everything that a traceback would print of an error and what led to it, and what hangs on it."""
    seen: BaseException | None = error
    while seen is not None:
        yield from (str(seen), repr(seen), repr(vars(seen)))
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


async def get(client: Client) -> Any:
    return await client.get(Secret, "s")


async def listed(client: Client) -> Any:
    return list(await client.list(Secret))


async def watched(client: Client) -> Any:
    return (await anext(client.watch(Secret, resource_version="1"))).object


async def create(client: Client) -> Any:
    return await client.create(Secret(name="s", data={"p": PLAIN.encode()}))


async def patch(client: Client) -> Any:
    return await client.patch(Secret, "s", MergePatch({"stringData": {"p": PLAIN}}))


async def apply(client: Client) -> Any:
    return await client.apply(Secret(name="s", string_data={"p": PLAIN}))


BAD_BODIES: list[bytes] = [
    json.dumps({**WIRE, "data": {"p": PLAIN + "!"}}).encode(),
    json.dumps({**WIRE, "data": CODED}).encode(),
    json.dumps({**WIRE, "data": {"p": {"q": PLAIN}}}).encode(),
    json.dumps({**WIRE, "stringData": {"p": 7, "q": PLAIN}}).encode(),
    json.dumps(WIRE).encode()[:-3],
    json.dumps(WIRE).encode().replace(b'"s"', b'"s\xff"'),
    json.dumps({**WIRE, "type": "\xff"}, ensure_ascii=False).encode("latin-1"),
]
REFUSALS: list[str] = [
    f'"" is invalid: patch: Invalid value: {QUOTED}: strict decoding error: unknown field "foo"',
    f'Secret "s" is invalid: type: Invalid value: "{PLAIN}": field is immutable',
    f"failed to create typed patch object: .data: expected map, got &{{{PLAIN}}}",
    f".data.p: expected string, got &value.valueUnstructured{{Value:{CODED}}}",
    f'patch: Invalid value: "map[stringData:map[p:{PLAIN}]]": cannot restore map from string',
]


async def fails_in_silence(work: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(NavarchError) as caught:
        await work
    for text in (*exposures(caught.value), caplog.text):
        assert PLAIN not in text
        assert CODED not in text


@pytest.mark.parametrize("verb", [get, create, patch, apply])
@pytest.mark.parametrize("body", BAD_BODIES, ids=range(len(BAD_BODIES)))
async def test_secret_that_cannot_be_read_is_not_shown(verb: Any, body: bytes, caplog: Any) -> None:
    """Neither one that does not fit, nor half of one."""
    client, _ = scripted(Scripted(200, [body]))
    await fails_in_silence(verb(client), caplog)


@pytest.mark.parametrize("body", BAD_BODIES[:4], ids=range(4))
async def test_secret_in_a_list_or_watch_that_cannot_be_read_is_not_shown(body: bytes, caplog: Any) -> None:
    """Nor the line or the page it came in."""
    client, _ = scripted(page(json.loads(body)))
    await fails_in_silence(listed(client), caplog)
    client, _ = scripted(Scripted(200, [event("ADDED", json.loads(body))]))
    await fails_in_silence(watched(client), caplog)


@pytest.mark.parametrize("verb", [create, patch, apply])
@pytest.mark.parametrize("message", REFUSALS, ids=range(len(REFUSALS)))
@pytest.mark.parametrize("code", [400, 409, 422, 500])
async def test_refusal_that_quotes_a_secret_is_told_without_it(verb: Any, message: str, code: int, caplog: Any) -> None:
    """Whatever the code, in the message and in the causes."""
    causes = [{"reason": "FieldValueInvalid", "field": "data", "message": message}]
    client, _ = scripted(refusal(code, "", message, causes=causes))
    await fails_in_silence(verb(client), caplog)


async def test_requests_and_answers_do_not_print_what_they_carry() -> None:
    """As local variables of a traceback that shows them."""
    client, transport = scripted(answer(WIRE))
    await create(client)
    [sent] = transport.requests
    assert sent.body is not None
    assert CODED in sent.body.decode()
    assert CODED not in repr(sent)
    assert CODED not in repr(ApiAnswer(sent, 200, {}, sent.body))
    assert Dynamic(WIRE)["data"] == {"p": CODED}
