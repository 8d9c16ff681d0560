"""Whatever fits the schema is answered: with a review, a token, or a refusal."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from cluster.access.miniature import Miniature
from cluster.access.wording import binding, person, role
from navarch.cluster.server.pipeline.authentication.token_requests import request_token
from navarch.cluster.server.pipeline.authorization.authorizer import attributes_of
from navarch.cluster.server.pipeline.authorization.escalation import check_escalation
from navarch.cluster.server.pipeline.authorization.reviews import REVIEWS
from navarch.cluster.server.wire.request import ApiRequest, Json, RequestInfo, User, request_info
from navarch.cluster.server.wire.status_errors import StatusError

SERVER = Miniature()
SERVER.objects["serviceaccounts", "default", "robot"] = {
    "metadata": {"name": "robot", "namespace": "default", "uid": "u"},
}

_texts = st.one_of(st.text(max_size=8), st.sampled_from(["", "*", "a/b", "In", "Exists", "default", "metadata.name"]))
_maybe_texts = st.none() | st.lists(_texts, max_size=3)


def _fields(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=fields)


_requirements = st.none() | st.lists(_fields(key=_texts, operator=_texts, values=_maybe_texts), max_size=3)
_selectors = st.none() | _fields(rawSelector=_texts, requirements=_requirements)
_words = dict.fromkeys(("verb", "group", "version", "resource", "subresource", "namespace", "name"), _texts)
_resources = st.none() | _fields(**_words, fieldSelector=_selectors, labelSelector=_selectors)
_paths = st.none() | _fields(verb=_texts, path=_texts)
_extras = st.none() | st.dictionaries(_texts, st.lists(_texts, max_size=2), max_size=2)
_specs = st.none() | _fields(
    user=_texts,
    groups=_maybe_texts,
    uid=_texts,
    extra=_extras,
    resourceAttributes=_resources,
    nonResourceAttributes=_paths,
    namespace=_texts,
    token=_texts,
    audiences=_maybe_texts,
)
_metadata = st.none() | _fields(name=_texts, namespace=_texts, labels=st.none() | st.dictionaries(_texts, _texts))


def _answered(work: Any) -> None:
    async def wait() -> None:
        with contextlib.suppress(StatusError):
            await work

    asyncio.run(wait())


@given(st.sampled_from(sorted(REVIEWS.values())), _specs, _metadata)
def test_every_review_is_answered(kind: str, spec: Json | None, metadata: Json | None) -> None:
    """Any review gets a status or an error with its causes."""
    _answered(SERVER.reviews.review(kind, {"kind": kind, "metadata": metadata, "spec": spec}, User("ann"), "default"))


_references = st.none() | _fields(
    kind=_texts | st.just("Pod"), apiVersion=_texts | st.just("v1"), name=_texts, uid=_texts
)


@given(
    _fields(audiences=_maybe_texts, expirationSeconds=st.none() | st.integers(), boundObjectRef=_references), _metadata
)
def test_every_token_request_is_answered(spec: Json, metadata: Json | None) -> None:
    """Any TokenRequest gets a token or a StatusError."""
    _answered(request_token(SERVER.accounts, "default", "robot", {"metadata": metadata, "spec": spec}))


_header_names = st.sampled_from(
    ["user", "group", "uid", "extra-", "extra-a", "extra-a%2fb", "extra-%", "extra-%ff", "x"]
)
_header_values = st.text(st.characters(exclude_characters="\r"), max_size=20) | st.sampled_from(
    ["system:serviceaccount:default:robot", "system:node:n", "system:anonymous", "a\nb\nc\nd\ne", "\n"]
)


@given(st.dictionaries(_header_names, _header_values), st.sampled_from(["ann", "system:masters"]))
def test_every_wish_to_act_as_somebody_is_answered(headers: dict[str, str], group: str) -> None:
    """Any impersonation headers are granted or refused with a StatusError."""
    impersonate = {f"impersonate-{name}": value for name, value in headers.items()}
    request = ApiRequest(method="GET", path="/api/v1/namespaces/default/pods", headers=impersonate)

    async def act() -> User:
        return SERVER.impersonation.acting_user(request, User("ann", groups=(group,)))

    _answered(act())


@given(_texts, _texts)
def test_every_selector_and_path_has_attributes(selector: str, path: str) -> None:
    """Any selector and path yields attributes."""
    request = ApiRequest(method="GET", path=f"/api/v1/{path}", query={"fieldSelector": [selector]})
    attributes_of(request, request_info(request))


def test_a_write_of_another_group_is_no_escalation() -> None:
    """Roles of another API group need no escalation check."""
    info = RequestInfo("create", "/", "example.com", "v1", "", "clusterroles")
    check_escalation(SERVER.authorizer, User("ann"), info, role("x", [{"verbs": ["*"]}]), None)


def test_a_binding_to_what_is_no_role_is_left_to_validation() -> None:
    """The escalation check skips a binding to no role; validation refuses it with the field."""
    info = RequestInfo("create", "/", "rbac.authorization.k8s.io", "v1", "", "clusterrolebindings")
    check_escalation(SERVER.authorizer, User("ann"), info, binding("x", "y", person("z"), of="Group"), None)
    check_escalation(SERVER.authorizer, User("ann"), info, {"metadata": {}}, None)
