"""The functions of `authorizer`: policies and match conditions check permissions with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from navarch.schema.cel import types
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.signatures import method
from navarch.schema.cel.types import CelType


class CheckAttributes(NamedTuple):
    """The attributes of a permission check: a verb on a resource, or on a path if it is set.

    `account` is the namespace and name of a ServiceAccount; None means the user of the request.
    """

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    account: tuple[str, str] | None = None


class CheckResult(NamedTuple):
    """The result of a permission check, and its reason."""

    allowed: bool
    reason: str = ""


Ask = Callable[[CheckAttributes], CheckResult]


@dataclass(frozen=True, slots=True, eq=False)
class AuthorizerValue:
    """The value of `authorizer`; `request` has the attributes of the request itself."""

    cel_type: ClassVar[CelType] = types.AUTHORIZER
    ask: Ask
    request: CheckAttributes
    account: tuple[str, str] | None = None

    def __getitem__(self, field: str) -> object:
        if field != "requestResource":
            raise KeyError(field)
        return _ResourceCheck(self.ask, self.request)


@dataclass(frozen=True, slots=True, eq=False)
class _PathCheck:
    cel_type: ClassVar[CelType] = types.PATH_CHECK
    ask: Ask
    question: CheckAttributes


@dataclass(frozen=True, slots=True, eq=False)
class _GroupCheck:
    cel_type: ClassVar[CelType] = types.GROUP_CHECK
    ask: Ask
    question: CheckAttributes


@dataclass(frozen=True, slots=True, eq=False)
class _ResourceCheck:
    cel_type: ClassVar[CelType] = types.RESOURCE_CHECK
    ask: Ask
    question: CheckAttributes


@dataclass(frozen=True, slots=True)
class DecisionValue:
    """The value of a check."""

    cel_type: ClassVar[CelType] = types.DECISION
    answer: CheckResult


def _path(authorizer: AuthorizerValue, path: str) -> _PathCheck:
    if not path:
        raise CelEvaluationError("path must not be empty")
    return _PathCheck(authorizer.ask, CheckAttributes(path=path, account=authorizer.account))


def _group(authorizer: AuthorizerValue, group: str) -> _GroupCheck:
    return _GroupCheck(authorizer.ask, CheckAttributes(group=group, account=authorizer.account))


def _account(authorizer: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    return replace(authorizer, account=(namespace, name))


def _resource(check: _GroupCheck, resource: str) -> _ResourceCheck:
    return _ResourceCheck(check.ask, check.question._replace(resource=resource))


def _subresource(check: _ResourceCheck, subresource: str) -> _ResourceCheck:
    return replace(check, question=check.question._replace(subresource=subresource))


def _namespace(check: _ResourceCheck, namespace: str) -> _ResourceCheck:
    return replace(check, question=check.question._replace(namespace=namespace))


def _name(check: _ResourceCheck, name: str) -> _ResourceCheck:
    return replace(check, question=check.question._replace(name=name))


def _check(check: _PathCheck | _ResourceCheck, verb: str) -> DecisionValue:
    return DecisionValue(check.ask(check.question._replace(verb=verb)))


OVERLOADS = [
    method("path", "authorizer, string -> pathcheck", _path),
    method("group", "authorizer, string -> groupcheck", _group),
    method("serviceAccount", "authorizer, string, string -> authorizer", _account),
    method("resource", "groupcheck, string -> resourcecheck", _resource),
    method("subresource", "resourcecheck, string -> resourcecheck", _subresource),
    method("namespace", "resourcecheck, string -> resourcecheck", _namespace),
    method("name", "resourcecheck, string -> resourcecheck", _name),
    method("check", "pathcheck, string -> decision", _check),
    method("check", "resourcecheck, string -> decision", _check),
    method("allowed", "decision -> bool", lambda decision: decision.answer.allowed),
    method("reason", "decision -> string", lambda decision: decision.answer.reason),
    method("errored", "decision -> bool", lambda _: False),
    method("error", "decision -> string", lambda _: ""),
]
