"""Access and token reviews: SubjectAccessReview and its siblings, and TokenReview."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from navarch._base.clock import Clock
from navarch.api.names import LABEL_KEY, LABEL_VALUE
from navarch.api.selectors import Fields, Labels
from navarch.api.times import format_time
from navarch.cluster.server.pipeline.authentication.authenticator import CredentialAuthenticator
from navarch.cluster.server.pipeline.authentication.signing import InvalidTokenError
from navarch.cluster.server.pipeline.authentication.users import user_info
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.pipeline.authorization.rbac import RbacRule
from navarch.cluster.server.wire.request import Json, RequestInfo, User
from navarch.cluster.server.wire.status_errors import bad_request, invalid
from navarch.errors import Cause, InvalidValueError
from navarch.schema.values.violations import go_quoted

_METADATA: Final = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_RESOURCE: Final = "spec.resourceAttributes"
_PATH: Final = "spec.nonResourceAttributes"
_SETS: Final = frozenset({"In", "NotIn"})
_PRESENCE: Final = frozenset({"Exists", "DoesNotExist"})


def subject_faults(body: Json) -> Iterator[Cause]:
    """Of a SubjectAccessReview."""
    yield from _either(body["spec"])
    yield from _somebody(body["spec"])
    yield from _selectors(body["spec"])
    yield from _metadata_faults(body, frozenset({"managedFields"}), "must be empty")


def access_faults(body: Json) -> Iterator[Cause]:
    """Of a SelfSubjectAccessReview."""
    yield from _either(body["spec"])
    yield from _selectors(body["spec"])
    yield from _metadata_faults(body, frozenset({"managedFields"}), "must be empty")


def local_faults(body: Json) -> Iterator[Cause]:
    """Of a LocalSubjectAccessReview, whose metadata has its namespace."""
    spec, namespace = body["spec"], body["metadata"].get("namespace", "")
    yield from _either(spec)
    yield from _somebody(spec)
    yield from _selectors(spec)
    yield from _metadata_faults(body, frozenset({"managedFields", "namespace"}), "must be empty except for namespace")
    asked = (spec.get("resourceAttributes") or {}).get("namespace", "")
    if spec.get("resourceAttributes") is not None and asked != namespace:
        yield _invalid(f"{_RESOURCE}.namespace", go_quoted(asked), "must match metadata.namespace")
    if spec.get("nonResourceAttributes") is not None:
        yield _invalid(_PATH, _shown_path(spec), "disallowed on this kind of request")


def _invalid(field: str, value: str, said: str) -> Cause:
    return Cause(field, "FieldValueInvalid", f"Invalid value: {value}: {said}")


def _required(field: str, said: str) -> Cause:
    return Cause(field, "FieldValueRequired", f"Required value: {said}")


def _either(spec: Json) -> Iterator[Cause]:
    resource, path = spec.get("resourceAttributes") is not None, spec.get("nonResourceAttributes") is not None
    if resource and path:
        yield _invalid(_PATH, _shown_path(spec), "cannot be specified in combination with resourceAttributes")
    if not resource and not path:
        yield _invalid(
            _RESOURCE, "null", "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        )


def _somebody(spec: Json) -> Iterator[Cause]:
    if not spec.get("user") and not spec.get("groups"):
        yield _invalid("spec.user", '""', "at least one of user or group must be specified")


def _shown_path(spec: Json) -> str:
    attributes = spec["nonResourceAttributes"]
    return _json({"Path": attributes.get("path", ""), "Verb": attributes.get("verb", "")})


def _metadata_faults(body: Json, ignored: frozenset[str], said: str) -> Iterator[Cause]:
    metadata = body.get("metadata") or {}
    if any(value for key, value in metadata.items() if key not in ignored):
        shown = {key: metadata[key] for key in _METADATA if metadata.get(key)}
        yield _invalid("metadata", _json(shown), said)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _selectors(spec: Json) -> Iterator[Cause]:
    attributes = spec.get("resourceAttributes") or {}
    kinds: tuple[tuple[str, Callable[[Json, str], Iterator[Cause]]], ...] = (
        ("fieldSelector", _field_faults),
        ("labelSelector", _label_faults),
    )
    for name, faults in kinds:
        selector = attributes.get(name)
        if selector is not None:
            yield from _selector_faults(selector, f"{_RESOURCE}.{name}")
            for index, requirement in enumerate(selector.get("requirements") or ()):
                yield from faults(requirement, f"{_RESOURCE}.{name}.requirements[{index}]")


def _selector_faults(selector: Json, path: str) -> Iterator[Cause]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        said = "may not specified at the same time as requirements"
        yield _invalid(f"{path}.rawSelector", go_quoted(raw), said)
    if not raw and not requirements:
        said = f"when {path} is specified, requirements or rawSelector is required"
        yield _required(f"{path}.requirements", said)


def _field_faults(requirement: Json, path: str) -> Iterator[Cause]:
    if not requirement.get("key"):
        yield _required(f"{path}.key", "must be specified")
    yield from _values_faults(requirement, path)


def _label_faults(requirement: Json, path: str) -> Iterator[Cause]:
    yield from _values_faults(requirement, path)
    key = requirement.get("key") or ""
    for said in LABEL_KEY.faults(key):
        yield _invalid(f"{path}.key", go_quoted(key), said)
    for index, value in enumerate(each or "" for each in requirement.get("values") or ()):
        for said in LABEL_VALUE.faults(value):
            yield _invalid(f"{path}.values[{index}]", go_quoted(value), said)


def _values_faults(requirement: Json, path: str) -> Iterator[Cause]:
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in _SETS and not values:
        yield _required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in _PRESENCE and values:
        said = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield Cause(f"{path}.values", "FieldValueForbidden", said)


def ignored_selectors(attributes: Json) -> str:
    """Returns Kubernetes' errors for selectors that do not parse; RBAC ignores selectors."""
    said = [
        _ignored(attributes.get("fieldSelector"), f"{_RESOURCE}.fieldSelector", Fields, _is_field_requirement),
        _ignored(attributes.get("labelSelector"), f"{_RESOURCE}.labelSelector", Labels, _is_label_requirement),
    ]
    return "; ".join(each for each in said if each)


def _ignored(
    selector: Json | None, path: str, parse: Callable[[str], object], understood: Callable[[Json], bool]
) -> str:
    if selector is None:
        return ""
    if requirements := selector.get("requirements"):
        known = [understood(requirement) for requirement in requirements]
        if all(known):
            return ""
        return f"{path} {'partially ignored' if any(known) else 'ignored'} due to parse error"
    try:
        parse(selector.get("rawSelector") or "")
    except InvalidValueError:
        return f"{path} ignored due to parse error"
    return ""


def _is_field_requirement(requirement: Json) -> bool:
    return requirement.get("operator") in _SETS and len(requirement.get("values") or ()) == 1


def _is_label_requirement(requirement: Json) -> bool:
    return requirement.get("operator") in _SETS | _PRESENCE


_AUTHORIZATION: Final = "authorization.k8s.io"
_FAULTS: Final[dict[str, Callable[[Json], Iterator[Cause]]]] = {
    "SubjectAccessReview": subject_faults,
    "LocalSubjectAccessReview": local_faults,
    "SelfSubjectAccessReview": access_faults,
}
REVIEWS: Final = {
    (_AUTHORIZATION, "subjectaccessreviews"): "SubjectAccessReview",
    (_AUTHORIZATION, "localsubjectaccessreviews"): "LocalSubjectAccessReview",
    (_AUTHORIZATION, "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    (_AUTHORIZATION, "selfsubjectrulesreviews"): "SelfSubjectRulesReview",
    ("authentication.k8s.io", "selfsubjectreviews"): "SelfSubjectReview",
    ("authentication.k8s.io", "tokenreviews"): "TokenReview",
}
"""The kind that is created at each group and resource."""


class Reviews:
    """Fills in the status of a review, as its creation answers it."""

    def __init__(self, authorizer: RbacAuthorizer, authenticator: CredentialAuthenticator, clock: Clock) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator
        self._clock = clock

    async def review(self, kind: str, body: Json, user: User, namespace: str = "") -> Json:
        """The review of one of the kinds of `REVIEWS` with its status; `user` asks. Raises `StatusError`.

        `body` fits the kind's schema. It is not changed.
        """
        asked = {**body, "metadata": {**(body.get("metadata") or {})}, "spec": {**(body.get("spec") or {})}}
        if kind == "TokenReview":
            return await self._token(asked)
        if kind == "SelfSubjectReview":
            return self._self(user)
        if kind == "SelfSubjectRulesReview":
            return self._rules(asked["spec"], user)
        return self._access(kind, asked, user, namespace)

    def _access(self, kind: str, body: Json, user: User, namespace: str) -> Json:
        if kind == "LocalSubjectAccessReview":
            _place(body["metadata"], namespace)
        if causes := list(_FAULTS[kind](body)):
            raise invalid(_AUTHORIZATION, "", "", causes)
        spec = body["spec"]
        return _answer(body, self._access_status(spec, user if kind == "SelfSubjectAccessReview" else _subject(spec)))

    def _access_status(self, spec: Json, user: User) -> Json:
        attributes = spec.get("resourceAttributes")
        if attributes is None:
            path = spec["nonResourceAttributes"]
            decision = self._authorizer.allows_path(user, RequestInfo(path.get("verb", ""), path.get("path", "")))
            return _without_empty({"allowed": decision.allowed, "reason": decision.reason})
        decision = self._authorizer.allows_resource(user, _resource_info(attributes))
        ignored = ignored_selectors(attributes)
        return _without_empty({"allowed": decision.allowed, "reason": decision.reason, "evaluationError": ignored})

    def _rules(self, spec: Json, user: User) -> Json:
        if not spec.get("namespace"):
            raise bad_request("no namespace on request")
        rules, error = self._authorizer.rules_for(user, spec["namespace"])
        status: Json = {
            "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
            "nonResourceRules": [_path_rule(rule) for rule in rules if rule.urls],
            "incomplete": False,
        }
        if error:
            status["evaluationError"] = error
        head = {"kind": "SelfSubjectRulesReview", "apiVersion": f"{_AUTHORIZATION}/v1"}
        return {**head, "metadata": {}, "spec": {}, "status": status}

    def _self(self, user: User) -> Json:
        head = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
        metadata = {"creationTimestamp": format_time(self._clock.now())}
        return {**head, "metadata": metadata, "status": {"userInfo": user_info(user)}}

    async def _token(self, body: Json) -> Json:
        spec = body["spec"]
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        try:
            user, audiences = await self._authenticator.review(spec["token"], spec.get("audiences") or ())
        except InvalidTokenError as error:
            return _answer(body, {"user": {}, "error": str(error)})
        return _answer(body, {"authenticated": True, "user": user_info(user), "audiences": list(audiences)})


def _place(metadata: Json, namespace: str) -> None:
    if metadata.get("namespace") not in {None, "", namespace}:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def _answer(body: Json, status: Json) -> Json:
    return {**body, "status": status}


def _without_empty(status: Json) -> Json:
    return {key: value for key, value in status.items() if value or key == "allowed"}


def _subject(spec: Json) -> User:
    extra = {key: _texts(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", spec.get("uid") or "", _texts(spec.get("groups")), extra)


def _texts(values: list[str | None] | None) -> tuple[str, ...]:
    """A list as Go reads it, for whom null is an empty text."""
    return tuple(each or "" for each in values or ())


def _resource_info(attributes: Json) -> RequestInfo:
    names = ("verb", "group", "version", "namespace", "resource", "subresource", "name")
    verb, *rest = (attributes.get(name) or "" for name in names)
    return RequestInfo(verb, "", *rest)


def _resource_rule(rule: RbacRule) -> Json:
    return RbacRule(rule.verbs, rule.groups, rule.resources, rule.names).to_json()


def _path_rule(rule: RbacRule) -> Json:
    return RbacRule(rule.verbs, urls=rule.urls).to_json()
