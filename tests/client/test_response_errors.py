"""The server's refusals as errors of our tree, and what is left out of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch import errors
from navarch.api import Kind
from navarch.client import MergePatch
from navarch.client.response_errors import is_secret, without_echoes
from scripted import Scripted, refusal, scripted

CONFIG_MAP = Kind("", "v1", "ConfigMap", plural="configmaps")
SECRET = Kind("", "v1", "Secret", plural="secrets")

CLASSES = [
    (400, "BadRequest", errors.BadRequest),
    (401, "Unauthorized", errors.Unauthorized),
    (403, "Forbidden", errors.Forbidden),
    (404, "NotFound", errors.NotFound),
    (405, "MethodNotAllowed", errors.MethodNotAllowed),
    (406, "NotAcceptable", errors.NotAcceptable),
    (409, "Conflict", errors.Conflict),
    (409, "AlreadyExists", errors.AlreadyExists),
    (410, "Expired", errors.Gone),
    (410, "Gone", errors.Gone),
    (413, "RequestEntityTooLarge", errors.TooLarge),
    (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
    (422, "Invalid", errors.Invalid),
    (500, "InternalError", errors.ServerError),
    (418, "", errors.ApiError),
]


@pytest.mark.parametrize(("code", "reason", "expected"), CLASSES)
async def test_refusal_becomes_the_error_of_its_reason(code: int, reason: str, expected: type[errors.ApiError]) -> None:
    """Exactly that class, with code, reason, message, and the call it answers."""
    client, _ = scripted(refusal(code, reason, "because"))
    with pytest.raises(errors.ApiError) as caught:
        await client.get(CONFIG_MAP, "a")
    assert type(caught.value) is expected
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert caught.value.message == "get configmaps default/a: because"
    assert str(caught.value).startswith(caught.value.message)


async def test_refused_credential_is_named_by_its_origin() -> None:
    """So that the user knows which one to renew."""
    client, _ = scripted(refusal(401, "Unauthorized", "Unauthorized"))
    with pytest.raises(errors.Unauthorized, match="does not take the credential of a script; renew it"):
        await client.get(CONFIG_MAP, "a")


async def test_invalid_carries_every_cause() -> None:
    """Field by field, in the server's order."""
    causes = [{"field": "spec.a", "reason": "FieldValueInvalid", "message": "bad"}, {"field": None, "message": "worse"}]
    client, _ = scripted(refusal(422, "Invalid", causes=causes))
    with pytest.raises(errors.Invalid) as caught:
        await client.patch(CONFIG_MAP, "a", MergePatch({}))
    assert [str(cause) for cause in caught.value.causes] == ["spec.a: bad", "worse"]


async def test_conflict_names_the_managers_and_their_fields() -> None:
    """Each once, with the remedy."""
    causes = [
        {"reason": "FieldManagerConflict", "field": field, "message": f'conflict with "{manager}" using v1'}
        for manager, field in [("kubectl", ".data.a"), ("hpa", ".data.b"), ("kubectl", ".data.c")]
    ]
    client, _ = scripted(refusal(409, "Conflict", "Apply failed", causes=causes))
    with pytest.raises(errors.Conflict) as caught:
        await client.patch(CONFIG_MAP, "a", MergePatch({}))
    assert caught.value.managers == ("kubectl", "hpa")
    for part in ("kubectl owns .data.a, .data.c", "hpa owns .data.b", "force=True"):
        assert part in str(caught.value)


@pytest.mark.parametrize("status", [200, 201, 404, 500, 502])
async def test_html_is_not_taken_for_an_answer(status: int) -> None:
    """Whatever its status, the error says what came from where, and what to look at."""
    page = Scripted(status, [b"<html>secret page</html>"], {"Content-Type": "text/html"})
    client, _ = scripted(*[page] * 8)
    with pytest.raises((errors.BadAnswerError, errors.ApiError)) as caught:
        await client.get(CONFIG_MAP, "a")
    assert isinstance(caught.value, errors.BadAnswerError) == (status < 300)
    text = str(caught.value)
    expected = f"24 bytes of text/html with status {status}"
    assert expected in text
    assert "GET /api/v1/namespaces/default/configmaps/a" in text
    assert "check that the address is an API server's" in text
    assert "secret page" not in text


async def test_group_that_is_not_served_is_told_as_such() -> None:
    """The server has no Status for it; what is missing is most often a CRD."""
    client, _ = scripted(Scripted(404, [b"404 page not found\n"], {"Content-Type": "text/plain"}))
    with pytest.raises(errors.NotFound, match=r"does not serve /apis/x\.example/v1/.*is the CRD installed"):
        await client.get(Kind("x.example", "v1", "X", plural="xs"), "a")


NOT_KUBERNETES: list[bytes] = [b"", b"[]", b"1", b'"ok"', b"null", b"{}", b'{"error":"down"}', b'{"kind":""}', b'{"kind":7}',
                               b'{"kind":"ConfigMap"', b"\xff", b"[" * 100_000, b'{"kind":"\xff"}', b'{"kind":7, "x']  # fmt: skip


@pytest.mark.parametrize("body", NOT_KUBERNETES, ids=range(len(NOT_KUBERNETES)))
@pytest.mark.parametrize("verb", ["get", "list", "delete", "delete_all", "patch", "evict", "watch", "version", "find"])
async def test_answer_that_is_not_kubernetes_is_refused_by_every_verb(verb: str, body: bytes) -> None:
    """JSON of somebody else is no empty object, no empty list and no success."""
    client, _ = scripted(*[Scripted(200, [body])] * 2)
    calls: dict[str, Any] = {
        "get": lambda: client.get(CONFIG_MAP, "a"),
        "list": lambda: client.list(CONFIG_MAP),
        "delete": lambda: client.delete(CONFIG_MAP, "a"),
        "delete_all": lambda: client.delete_all(CONFIG_MAP),
        "patch": lambda: client.patch(CONFIG_MAP, "a", MergePatch({})),
        "evict": lambda: client.evict("a"),
        "watch": lambda: anext(client.watch(CONFIG_MAP)),
        "version": client.discovery.version,
        "find": lambda: client.discovery.find("pods"),
    }
    with pytest.raises((errors.BadAnswerError, errors.DecodeError)):
        await calls[verb]()


async def test_object_of_another_kind_is_refused() -> None:
    """A Status or a Pod in the place of a ConfigMap is a fault, with a class and without."""
    client, _ = scripted(Scripted(200, [b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}']))
    with pytest.raises(errors.DecodeError, match=r"ConfigMap.*Pod"):
        await client.get(CONFIG_MAP, "a")


QUOTED = json.dumps(json.dumps({"data": {"a": 'hun"ter\\2'}, "list": ["]"]}))
ECHOES = [
    (f'patch: Invalid value: {QUOTED}: unknown field "foo"', 'patch: Invalid value: (left out): unknown field "foo"'),
    ('patch: Invalid value: "map[data:x]": cannot restore', "patch: Invalid value: (left out): cannot restore"),
    (".data.a: expected string, got &value.valueUnstructured{Value:12}", ".data.a: expected string, got (left out)"),
    (".data: expected map, got &{hun}ter: 2}", ".data: expected map, got (left out)"),
    ('[a: Invalid value: {"x":"}: "}: no, b: Invalid value: [1]: no]', "[a: Invalid value: (left out): no, b: Invalid value: (left out): no]"),
    ('x: Invalid value: map[string]string{"a":"b: c"}: no', "x: Invalid value: (left out): no"),
    ('x: Invalid value: []v1.Port{v1.Port{Name:"b"}}: no', "x: Invalid value: (left out): no"),
    ('spec: Forbidden: no\n@@ -1 +1 @@\n   "Env": [\n-"a"\n+"b"\nend', "spec: Forbidden: no (left out)\nend"),
    ('a: Invalid value: {"never closed', "a: Invalid value: (left out)"),
    ("a: Invalid value: failed rule: self.a < 2", "a: Invalid value: failed rule: self.a < 2"),
    ('type: Invalid value: "hunter2": immutable', 'type: Invalid value: "hunter2": immutable'),
    ("n: Invalid value: 5: too large", "n: Invalid value: 5: too large"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "shown"), ECHOES)
def test_objects_that_the_server_quotes_are_left_out(text: str, shown: str) -> None:
    """For every kind; scalars and the reason stay."""
    assert without_echoes(text, secret=False) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('type: Invalid value: "hunter2": immutable', "type: Invalid value: (left out): immutable"),
        ("n: Invalid value: 5: too large", "n: Invalid value: (left out): too large"),
        ('[x: Duplicate value: "hunter2", y: Not found: "z"]', "[x: Duplicate value: (left out), y: Not found: (left out)]"),
    ],
)  # fmt: skip
def test_every_value_of_a_secret_is_left_out(text: str, shown: str) -> None:
    """Also scalars."""
    assert without_echoes(text, secret=True) == shown


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_no_json_object_survives_whatever_is_in_it(value: Any) -> None:
    """As Go quotes it, and as it is."""
    text = json.dumps({"hunter2": value}, ensure_ascii=False)
    for quoted in (text, json.dumps(text)):
        assert without_echoes(f"x: Invalid value: {quoted}: no", secret=False) == "x: Invalid value: (left out): no"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/namespaces/default/secrets/a", True),
        ("/api/v1/secrets", True),
        ("/api/v1/namespaces/secrets/pods/secrets", False),
        ("/apis/example.com/v1/namespaces/a/secrets/b", False),
    ],
)
def test_secrets_are_known_by_their_path(path: str, expected: bool) -> None:
    """A pod that is called secrets is none."""
    assert is_secret(path) is expected


async def test_error_about_a_secret_shows_no_value_anywhere() -> None:
    """Neither in the message nor in the causes."""
    message = ' "" is invalid: patch: Invalid value: "{\\"data\\":{\\"p\\":\\"aHVudGVyMg==\\"}}": unknown field "x"'
    causes = [{"field": "type", "message": 'Invalid value: "hunter2": field is immutable'}]
    client, _ = scripted(refusal(422, "Invalid", message, causes=causes))
    with pytest.raises(errors.Invalid) as caught:
        await client.patch(SECRET, "a", MergePatch({"type": "hunter2"}))
    shown = f"{caught.value} {caught.value!r} {caught.value.message} {caught.value.causes}"
    assert "aHVudGVyMg" not in shown
    assert "hunter2" not in shown
    assert 'unknown field "x"' in shown
    assert "field is immutable" in shown
