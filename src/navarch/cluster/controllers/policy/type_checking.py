"""Checks the expressions of a policy against the schemas of its kinds. Apart from its controller, since it imports CEL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final, NamedTuple

from navarch._base.clock import SystemClock
from navarch.api import Kind
from navarch.client import Client
from navarch.errors import NotFound
from navarch.k8s.admissionregistration.v1 import (
    ExpressionWarning,
    NamedRuleWithOperations,
    ValidatingAdmissionPolicy,
    Variable,
)
from navarch.schema import cel
from navarch.schema.cel.admission_types import NAMESPACE, REQUEST_VARIABLES
from navarch.schema.cel.types import object_of

_REFERENCE: Final = "#/components/schemas/"
_KINDS: Final = "x-kubernetes-group-version-kind"

Schemas = Mapping[str, dict[str, Any]]


def resolved(schemas: Schemas, api_version: str, kind: str) -> dict[str, Any] | None:
    """The schema of a kind, with those that it refers to in their places; None if it is not there. One that contains
    itself ends where it would begin again.
    """
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind}
    for name, schema in schemas.items():
        if wanted in (schema.get(_KINDS) or ()):
            return _whole(schema, schemas, (name,))
    return None


def _whole(schema: dict[str, Any], schemas: Schemas, above: tuple[str, ...]) -> dict[str, Any]:
    name = _referred(schema)
    if name:
        return {} if name in above or name not in schemas else _whole(schemas[name], schemas, (*above, name))
    made = {**schema}
    if isinstance(schema.get("properties"), dict):
        made["properties"] = {key: _whole(each, schemas, above) for key, each in schema["properties"].items()}
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            made[part] = _whole(schema[part], schemas, above)
    return made


def _referred(schema: dict[str, Any]) -> str:
    """The schema that this one stands for."""
    parts = schema.get("allOf") or [schema]
    reference = parts[0].get("$ref", "") if len(parts) == 1 else ""
    return str(reference).removeprefix(_REFERENCE)


_MOST_KINDS: Final = 10
_FAILED: Final = "compilation failed: "


class _Typed(NamedTuple):
    """A kind that the policy matches, with the types of its CEL variables."""

    named: str
    environment: Mapping[str, Any]


async def warnings(policy: ValidatingAdmissionPolicy, client: Client) -> list[ExpressionWarning]:
    """What is wrong with the expressions of a policy for some of the kinds that it names."""
    return [each async for each in _warnings(policy, await _types(policy, client))]


async def _warnings(policy: ValidatingAdmissionPolicy, types: list[_Typed]) -> AsyncIterator[ExpressionWarning]:
    """Others have their turn between expressions, since each of them takes a while."""
    for index, validation in enumerate(policy.spec.validations or ()):
        path = f"spec.validations[{index}]"
        texts = {"expression": validation.expression, "messageExpression": validation.message_expression}
        for field, text in texts.items():
            await SystemClock().sleep(0)
            said = "\n".join(each for typed in types if (each := _said(text, typed))) if text else ""
            if said:
                yield ExpressionWarning(field_ref=f"{path}.{field}", warning=said)


def _said(text: str, typed: _Typed) -> str:
    try:
        cel.compile(text, typed.environment)
    except cel.CelError as error:
        return f"{typed.named}: {error.told.removeprefix(_FAILED)}\n"
    return ""


async def _types(policy: ValidatingAdmissionPolicy, client: Client) -> list[_Typed]:
    """One for each kind that the policy names; one that is not served, or has no schema, is left out."""
    given = policy.spec.param_kind
    params: Any = None
    if given is not None:
        params = await _type_of(client, given.api_version or "", given.kind or "")
    found: list[_Typed] = []
    for kind in await _kinds(policy, client):
        own = await _type_of(client, kind.api_version, kind.kind)
        if own is not None:
            environment = _environment(own, params, has_params=given is not None)
            named = f"{kind.api_version}, Kind={kind.kind}"
            found.append(
                _Typed(named if kind.group else f"/{named}", _knowing(environment, policy.spec.variables or ()))
            )
    return found


def _environment(own: Any, params: Any, *, has_params: bool) -> dict[str, Any]:
    known = {**REQUEST_VARIABLES, "object": own, "oldObject": own, "namespaceObject": NAMESPACE}
    return {**known, "params": params or cel.DYN} if has_params else known


def _knowing(environment: dict[str, Any], variables: list[Variable] | tuple[()]) -> dict[str, Any]:
    """The same with the policy's own variables, of which each knows those before it."""
    known: dict[str, Any] = {}
    for each in variables:
        so_far = {**environment, "variables": object_of("kubernetes.variables", dict(known))}
        try:
            known[each.name] = cel.compile(each.expression, so_far).result_type
        except cel.CelError:
            known[each.name] = cel.DYN
    return {**environment, "variables": object_of("kubernetes.variables", known)}


async def _kinds(policy: ValidatingAdmissionPolicy, client: Client) -> list[Kind]:
    """At most ten, sorted; a rule with a wildcard among its groups or versions names none."""
    constraints = policy.spec.match_constraints
    wanted = {each for rule in (constraints.resource_rules if constraints else None) or () for each in _named(rule)}
    served = await client.discovery.all() if wanted else ()
    kinds = {each.kind for each in served if (each.kind.group, each.kind.version, each.kind.plural) in wanted}
    return sorted(kinds, key=lambda each: (each.group, each.version, each.kind))[:_MOST_KINDS]


def _named(rule: NamedRuleWithOperations) -> Iterator[tuple[str, str, str]]:
    groups, versions = rule.api_groups or [], rule.api_versions or []
    if "*" in "".join((*groups, *versions)):
        return
    for group in groups:
        for version in versions:
            yield from ((group, version, each) for each in rule.resources or () if not {"*", "/"} & {*each})


async def _type_of(client: Client, api_version: str, kind: str) -> Any:
    """The type of a kind, as its schema has it; None if there is none."""
    try:
        schema = resolved(await client.discovery.schemas(api_version), api_version, kind)
    except NotFound:
        return None
    return None if schema is None else cel.type_of_schema(schema, resource=True, name=kind)
