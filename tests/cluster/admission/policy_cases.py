"""One policy with one binding for each case: only objects labelled with its name are judged by it."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from cluster.admission.engines import Answered, Engine, until_known
from cluster.admission.webhook_cases import CONFIGMAPS, ROOT

Json = dict[str, Any]
_WRONG = "object.data.a == 'x'"
_PARAMS: Json = {"apiVersion": "v1", "kind": "ConfigMap"}


class Case(NamedTuple):
    """The spec of the policy, and what is unusual about the binding."""

    spec: Json
    binding: Json = {}


def _rule(expression: str = _WRONG, **more: Any) -> Case:
    return Case({"validations": [{"expression": expression, **more}]})


def _params(expression: str, reference: Json | None, **more: Any) -> Case:
    spec = {"paramKind": _PARAMS, "validations": [{"expression": expression, **more}]}
    return Case(spec, {"paramRef": reference} if reference else {})


CASES: dict[str, Case] = {
    "plain": _rule(),
    "holds": _rule("object.data.a == 'b'"),
    "message": _rule(message="must be x"),
    "message-expression": _rule(message="must be x", messageExpression="'is ' + object.data.a"),
    "message-error": _rule(message="must be x", messageExpression="string(object.data.zz)"),
    "message-empty": _rule(message="must be x", messageExpression="'  '"),
    "message-lines": _rule(messageExpression="'a\\nb'"),
    "reason-forbidden": _rule(reason="Forbidden"),
    "reason-too-large": _rule(reason="RequestEntityTooLarge"),
    "two": Case({"validations": [{"expression": "false", "message": "1"}, {"expression": "false", "message": "2"}]}),
    "error": _rule("object.data.nope == 'x'"),
    "error-ignored": Case({"failurePolicy": "Ignore", "validations": [{"expression": "object.data.nope == 'x'"}]}),
    "lines": _rule("false &&\n true"),
    "variables": Case(
        {
            "variables": [
                {"name": "v", "expression": "object.data.a + '!'"},
                {"name": "w", "expression": "variables.v + '?'"},
            ],
            "validations": [{"expression": "variables.w == 'b!'", "messageExpression": "'w is ' + variables.w"}],
        }
    ),
    "variable-error": Case(
        {
            "variables": [{"name": "v", "expression": "object.data.nope"}],
            "validations": [{"expression": "variables.v == 'b!'"}],
        }
    ),
    "condition-false": Case(
        {"matchConditions": [{"name": "m", "expression": "false"}], "validations": [{"expression": "false"}]}
    ),
    "condition-error": Case(
        {
            "matchConditions": [{"name": "m", "expression": "object.data.nope == ''"}],
            "validations": [{"expression": "false"}],
        }
    ),
    "namespace": _rule(
        "namespaceObject.metadata.name == 'x'",
        messageExpression="namespaceObject.metadata.name + ' ' + string(has(namespaceObject.metadata.labels))",
    ),
    "authorizer": _rule("!authorizer.requestResource.check('create').allowed()"),
    "authorizer-account": _rule(
        "authorizer.serviceAccount('default', 'default').group('').resource('pods').namespace('default')"
        ".check('create').allowed()"
    ),
    "authorizer-path": _rule("!authorizer.path('/metrics').check('get').allowed()"),
    "old-object": _rule("oldObject != null", message="old is null"),
    "old-object-field": _rule("oldObject.data.a == 'b'"),
    "request": _rule(
        "request.operation == 'X'",
        messageExpression="request.operation + request.kind.kind + request.resource.resource + request.name"
        " + request.namespace + string(request.dryRun) + request.options.kind + request.userInfo.username",
    ),
    "warns": Case(
        {"validations": [{"expression": "false", "message": "careful"}]}, {"validationActions": ["Warn", "Audit"]}
    ),
    "warns-error": Case({"validations": [{"expression": "object.data.nope == 'x'"}]}, {"validationActions": ["Warn"]}),
    "excluded": Case(
        {"validations": [{"expression": "false"}]},
        {"matchResources": {"namespaceSelector": {"matchLabels": {"no": "such"}}}},
    ),
    "annotation": Case(
        {
            "auditAnnotations": [{"key": "k", "valueExpression": "'v'"}],
            "validations": [{"expression": "false", "message": "anyway"}],
        }
    ),
    "params-missing": _params("true", {"name": "nope", "namespace": "default", "parameterNotFoundAction": "Deny"}),
    "params-missing-allowed": _params(
        "false", {"name": "nope", "namespace": "default", "parameterNotFoundAction": "Allow"}
    ),
    "params-named": _params(
        "params.data.p == 'x'",
        {"name": "settings", "parameterNotFoundAction": "Deny"},
        messageExpression="'it is ' + params.data.p",
    ),
    "params-selected": _params(
        "params.data.p == 'x'",
        {"selector": {"matchLabels": {"settings": "1"}}, "parameterNotFoundAction": "Deny"},
        messageExpression="'it is ' + params.data.p",
    ),
    "params-not-referenced": _params("params.data.p == 'x'", None),
    "params-unknown-kind": Case(
        {"paramKind": {"apiVersion": "foo.example.com/v1", "kind": "Foo"}, "validations": [{"expression": "true"}]},
        {"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}},
    ),
}


async def install(engine: Engine) -> None:
    """Writes the policies, bindings and parameters; returns when they count."""
    metadata = {"name": "settings", "labels": {"settings": "1"}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"p": "q"}}
    await _make(engine, CONFIGMAPS, settings)
    for name, case in CASES.items():
        await _make(engine, f"{ROOT}/validatingadmissionpolicies", _policy(name, case))
        await _make(engine, f"{ROOT}/validatingadmissionpolicybindings", _binding(name, case))
    last = [*CASES][-1]
    await until_known(f"the policy {last}, and with it those before", partial(_is_refused, engine, last))


async def _is_refused(engine: Engine, name: str) -> bool:
    return (await engine.ask("POST", CONFIGMAPS, _judged(name), dryRun="All")).code >= 400


async def remove(engine: Engine) -> None:
    """Deletes the policies, the bindings and what was made."""
    for name in CASES:
        await engine.ask("DELETE", f"{ROOT}/validatingadmissionpolicies/{name}")
        await engine.ask("DELETE", f"{ROOT}/validatingadmissionpolicybindings/of-{name}")
        await engine.ask("DELETE", f"{CONFIGMAPS}/judged-{name}")
    await engine.ask("DELETE", f"{CONFIGMAPS}/settings")


async def _make(engine: Engine, path: str, value: Json) -> None:
    answer = await engine.ask("POST", path, value)
    assert answer.code == 201, answer.body


def _policy(name: str, case: Case) -> Json:
    rule = {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    constraints = {"resourceRules": [rule], "objectSelector": {"matchLabels": {"policy": name}}}
    spec = {"failurePolicy": "Fail", "matchConstraints": constraints, **case.spec}
    return _object("ValidatingAdmissionPolicy", name, spec)


def _binding(name: str, case: Case) -> Json:
    spec = {"policyName": name, "validationActions": ["Deny"], **case.binding}
    return _object("ValidatingAdmissionPolicyBinding", f"of-{name}", spec)


def _object(kind: str, name: str, spec: Json) -> Json:
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
    return {**head, "spec": spec}


async def ask(engine: Engine, name: str) -> Answered:
    """Sends the request of a case."""
    return await engine.ask("POST", CONFIGMAPS, _judged(name))


def _judged(name: str) -> Json:
    metadata = {"name": f"judged-{name}", "labels": {"policy": name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
