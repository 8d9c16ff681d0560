"""One webhook for each case: only objects labelled with its name get to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from cluster.admission.engines import Answered, Engine, until_known
from cluster.admission.hooks import Answering, HookServer, http, patching, patching_with, replying, saying, silent

Json = dict[str, Any]
ROOT = "/apis/admissionregistration.k8s.io/v1"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
_REVIEW: Json = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
_RULE: Json = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


class Case(NamedTuple):
    """`hook` gives what is unusual about the webhook, for a server."""

    answer: Answering | None = None
    is_mutating: bool = False
    hook: Callable[[HookServer], Json] = lambda _: {}
    query: dict[str, str] = {}


def _at(url: str) -> Callable[[HookServer], Json]:
    return lambda server: {"clientConfig": {"url": url, "caBundle": server.bundle}}


def _service(**more: Any) -> Callable[[HookServer], Json]:
    service = {"name": "no-such", "namespace": "default", **more}
    return lambda server: {"clientConfig": {"service": service, "caBundle": server.bundle}}


def _condition(*expressions: str, **more: Any) -> Callable[[HookServer], Json]:
    conditions = [{"name": f"c{place}", "expression": each} for place, each in enumerate(expressions)]
    return lambda _: {"matchConditions": conditions, **more}


CASES: dict[str, Case] = {
    "allows": Case(saying()),
    "denies": Case(saying(False)),
    "denies-message": Case(saying(False, status={"message": "no way"})),
    "denies-reason": Case(saying(False, status={"reason": "TooBad"})),
    "denies-code": Case(
        saying(
            False,
            status={
                "message": "no",
                "code": 418,
                "reason": "Teapot",
                "details": {"causes": [{"reason": "a", "message": "b", "field": "c"}]},
            },
        )
    ),
    "denies-success": Case(saying(False, status={"message": "no", "code": 200, "status": "Success"})),
    "denies-warns": Case(saying(False, status={"message": "no"}, warnings=["one", 'two "quoted"'])),
    "warns": Case(saying(warnings=["one", "bad\nline"], auditAnnotations={"a": "b"})),
    "status-ignored": Case(saying(status={"message": "ignored"})),
    "wrong-uid": Case(replying({**_REVIEW, "response": {"uid": "1", "allowed": True}})),
    "no-uid": Case(replying({**_REVIEW, "response": {"allowed": True}})),
    "no-response": Case(replying(_REVIEW)),
    "no-kind": Case(replying({"response": {"allowed": True}})),
    "list": Case(replying([1])),
    "bad-json": Case(http(text="{bad", content_type="application/json")),
    "text": Case(http(text="hello")),
    "empty": Case(http()),
    "allowed-text": Case(saying("yes")),  # type: ignore[arg-type]  # what the case is about
    "status-500": Case(http(500, "oh no")),
    "status-400": Case(http(400, "oh no")),
    "status-401": Case(http(401, "x")),
    "status-403": Case(http(403, "x")),
    "status-404": Case(http(404, "x")),
    "status-429": Case(http(429, "x")),
    "status-503": Case(http(503, "x")),
    "status-object": Case(
        http(400, '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"mmm"}', "application/json")
    ),
    "validating-patch": Case(patching()),
    "time-out": Case(silent, hook=lambda _: {"timeoutSeconds": 1}),
    "time-out-ignored": Case(silent, hook=lambda _: {"timeoutSeconds": 1, "failurePolicy": "Ignore"}),
    "refused": Case(hook=_at("https://127.0.0.1:1/x")),
    "refused-ignored": Case(hook=lambda server: {**_at("https://127.0.0.1:1/x")(server), "failurePolicy": "Ignore"}),
    "unknown-authority": Case(hook=lambda server: {"clientConfig": {"url": f"{server.url}/x"}}),
    "bad-bundle": Case(hook=lambda server: {"clientConfig": {"url": f"{server.url}/x", "caBundle": "eHg="}}),
    "service-missing": Case(hook=_service(path="/p", port=8443)),
    "condition-true": Case(saying(False), hook=_condition("request.userInfo.username == 'rig-admin'")),
    "condition-false": Case(saying(False), hook=_condition("object.metadata.name == 'other'")),
    "condition-error": Case(saying(False), hook=_condition("object.no.x == 1")),
    "condition-errors": Case(saying(False), hook=_condition("object.no.x == 1", "object.na.x == 1")),
    "condition-error-false": Case(saying(False), hook=_condition("object.no.x == 1", "false")),
    "condition-ignored": Case(saying(False), hook=_condition("object.no.x == 1", failurePolicy="Ignore")),
    "condition-authorizer": Case(
        saying(False), hook=_condition("authorizer.group('').resource('pods').check('get').allowed()")
    ),
    "dry-run": Case(saying(False, status={"message": "asked"}), query={"dryRun": "All"}),
    "mutates": Case(patching({"op": "add", "path": "/data/k", "value": "v"}), is_mutating=True),
    "mutates-unknown": Case(patching({"op": "add", "path": "/foo", "value": 1}), is_mutating=True),
    "mutates-labels": Case(
        patching({"op": "add", "path": "/metadata/annotations", "value": {"a b": "c"}}), is_mutating=True
    ),
    "mutates-wrongly": Case(patching({"op": "add", "path": "/data/k", "value": 1}), is_mutating=True),
    "mutates-nothing": Case(patching(), is_mutating=True),
    "mutating-denies": Case(saying(False, status={"message": "no way"}), is_mutating=True),
    "patch-object": Case(patching_with(b'{"a":1}'), is_mutating=True),
    "patch-rubbish": Case(patching_with(b"zz"), is_mutating=True),
    "patch-no-base64": Case(saying(patchType="JSONPatch", patch="%%"), is_mutating=True),
    "patch-no-type": Case(saying(patch="W10="), is_mutating=True),
    "patch-type-alone": Case(saying(patchType="JSONPatch"), is_mutating=True),
    "patch-of-other-type": Case(saying(patchType="Merge", patch="W10="), is_mutating=True),
}


def answers() -> dict[str, Answering]:
    """What the webhook server answers, by path."""
    return {name: case.answer for name, case in CASES.items() if case.answer is not None}


async def install(engine: Engine, server: HookServer) -> None:
    """Writes the configurations; returns when they count."""
    for is_mutating, kind in ((True, "MutatingWebhookConfiguration"), (False, "ValidatingWebhookConfiguration")):
        hooks = [_hook(name, case, server) for name, case in CASES.items() if case.is_mutating == is_mutating]
        value = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "cases"}}
        answer = await engine.ask("POST", f"{ROOT}/{kind.lower()}s", {**value, "webhooks": hooks})
        assert answer.code == 201, answer.body
    for name in ("mutating-denies", "denies"):
        await until_known(f"the webhook {name}", partial(_is_refused, engine, name))


async def _is_refused(engine: Engine, name: str) -> bool:
    return (await engine.ask("POST", CONFIGMAPS, _judged(name), dryRun="All")).code >= 400


async def remove(engine: Engine) -> None:
    """Deletes the configurations and what was made."""
    for kind in ("mutating", "validating"):
        await engine.ask("DELETE", f"{ROOT}/{kind}webhookconfigurations/cases")
    for name in CASES:
        await engine.ask("DELETE", f"{CONFIGMAPS}/{name}")


def _hook(name: str, case: Case, server: HookServer) -> Json:
    return {
        "name": f"{name}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "clientConfig": {"url": f"{server.url}/{name}", "caBundle": server.bundle},
        "rules": [_RULE],
        "objectSelector": {"matchLabels": {"case": name}},
        **case.hook(server),
    }


async def ask(engine: Engine, name: str) -> Answered:
    """Sends the request of a case."""
    return await engine.ask("POST", CONFIGMAPS, _judged(name), **CASES[name].query)


def _judged(name: str) -> Json:
    metadata = {"name": name, "labels": {"case": name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


_VARYING = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"127\.0\.0\.1:\d{4,}"), "SERVER"),
)


def compared(answer: Answered) -> list[Any]:
    """What of an answer is the same in every run."""
    return [answer.code, _said(answer.body), answer.warnings]


def _said(body: Json) -> Json:
    if body["kind"] != "Status":
        return {key: value for key, value in body.items() if key != "metadata"}
    return {key: _steady(body[key]) for key in ("message", "reason", "details") if key in body}


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_steady(each) for each in value]
    for pattern, stands_for in _VARYING:
        value = pattern.sub(stands_for, value) if isinstance(value, str) else value
    return value
