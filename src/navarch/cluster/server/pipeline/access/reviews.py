"""Reviews: who am I, what may I, whose token is this. Nothing of them is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from navarch._base.clock import Clock
from navarch.api.times import format_time
from navarch.cluster.server.pipeline.access.authentication import Authenticator
from navarch.cluster.server.pipeline.access.authorization import Authorizer
from navarch.cluster.server.pipeline.access.review_faults import (
    access_faults,
    ignored_selectors,
    local_faults,
    subject_faults,
)
from navarch.cluster.server.pipeline.access.rules import Rule
from navarch.cluster.server.pipeline.access.signing import InvalidTokenError
from navarch.cluster.server.pipeline.access.users import user_info
from navarch.cluster.server.wire.request import Json, RequestInfo, User
from navarch.cluster.server.wire.status_errors import bad_request, invalid
from navarch.errors import Cause

__all__ = ["REVIEWS", "Reviews"]

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

    def __init__(self, authorizer: Authorizer, authenticator: Authenticator, clock: Clock) -> None:
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


def _resource_rule(rule: Rule) -> Json:
    return Rule(rule.verbs, rule.groups, rule.resources, rule.names).to_json()


def _path_rule(rule: Rule) -> Json:
    return Rule(rule.verbs, urls=rule.urls).to_json()
