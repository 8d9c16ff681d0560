"""Checks of the CEL expressions in webhook configurations and admission policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import invalid
from navarch.errors import Cause

if TYPE_CHECKING:
    from navarch.schema.cel import CelType


def condition_faults(conditions: Iterable[Json], path: str) -> Iterator[Cause]:
    """Checks the `matchConditions` of a webhook."""
    if given := [*conditions]:
        from navarch.schema.cel.schema_types import REQUEST_VARIABLES  # noqa: PLC0415 - few have them

        yield from _conditions(given, path, REQUEST_VARIABLES)


def validating_policy_faults(spec: Json) -> Iterator[Cause]:
    """Checks all expressions of a ValidatingAdmissionPolicy."""
    from navarch.schema import cel  # noqa: PLC0415 - few have policies
    from navarch.schema.cel.types import NULL  # noqa: PLC0415

    environment, faults = _variables(spec, builds=False)
    yield from faults
    for index, each in enumerate(spec.get("validations") or ()):
        path = f"spec.validations[{index}]"
        yield from _faults(each.get("expression"), f"{path}.expression", environment, cel.BOOL)
        yield from _faults(each.get("messageExpression"), f"{path}.messageExpression", environment, cel.STRING)
    for index, each in enumerate(spec.get("auditAnnotations") or ()):
        field = f"spec.auditAnnotations[{index}].valueExpression"
        yield from _faults(each.get("valueExpression"), field, environment, cel.STRING, NULL)


def mutating_policy_faults(spec: Json) -> Iterator[Cause]:
    """Checks all expressions of a MutatingAdmissionPolicy."""
    from navarch.schema.cel.types import list_of, opaque  # noqa: PLC0415 - few have policies

    environment, faults = _variables(spec, builds=True)
    yield from faults
    wanted = {"applyConfiguration": opaque("Object"), "jsonPatch": list_of(opaque("JSONPatch"))}
    for index, each in enumerate(spec.get("mutations") or ()):
        for name, result in wanted.items():
            text = (each.get(name) or {}).get("expression")
            yield from _faults(text, f"spec.mutations[{index}].{name}.expression", environment, result, builds=True)


def _conditions(conditions: Iterable[Json], path: str, environment: Mapping[str, CelType]) -> Iterator[Cause]:
    from navarch.schema import cel  # noqa: PLC0415 - few have them

    for index, each in enumerate(conditions):
        yield from _faults(each.get("expression"), f"{path}[{index}].expression", environment, cel.BOOL)


def _variables(spec: Json, *, builds: bool) -> tuple[Mapping[str, CelType], list[Cause]]:
    """Returns the environment of a policy's expressions, and the faults of its conditions and variables."""
    from navarch.schema import cel  # noqa: PLC0415 - few have policies
    from navarch.schema.cel.schema_types import NAMESPACE, policy_environment, with_variables  # noqa: PLC0415

    environment = {**policy_environment(has_params=spec.get("paramKind") is not None), "namespaceObject": NAMESPACE}
    faults = [*_conditions(spec.get("matchConditions") or (), "spec.matchConditions", environment)]
    known: dict[str, CelType] = {}
    for index, each in enumerate(spec.get("variables") or ()):
        text, so_far = each.get("expression") or "", with_variables(environment, known)
        faults += _faults(text, f"spec.variables[{index}].expression", so_far, builds=builds)
        try:
            known[each.get("name", "")] = cel.compile(text, so_far, builds=builds).result_type
        except cel.CelError:
            known[each.get("name", "")] = cel.DYN
    return with_variables(environment, known), faults


def _faults(
    text: str | None, field: str, environment: Mapping[str, CelType], *results: CelType, builds: bool = False
) -> Iterator[Cause]:
    """Reports an expression that does not compile or has the wrong type; another check reports a missing one."""
    from navarch.schema import cel  # noqa: PLC0415 - few have expressions

    if not text or not text.strip():
        return
    current_budget().charge_cel_source(len(text))
    try:
        found = cel.compile(text, environment, builds=builds).result_type
    except cel.CelError as error:
        yield invalid(field, text, error.told)
        return
    if results and found not in results:
        named = str(results[0]) if len(results) == 1 else f"one of [{' '.join(map(str, results))}]"
        yield invalid(field, text, f"must evaluate to {named} but got {found}")
