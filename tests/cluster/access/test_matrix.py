"""Who may what: fifteen thousand decisions, compared with the real server's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.access.matrix import USERS, Question, objects, questions
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.pipeline.authorization.rbac import bootstrap_roles
from navarch.cluster.server.wire.request import RequestInfo, User

RECORDED: dict[str, str] = json.loads((Path(__file__).parent / "data/decisions.json").read_bytes())


@pytest.fixture(scope="module")
def authorizer() -> RbacAuthorizer:
    return RbacAuthorizer([*bootstrap_roles(), *objects()])


def decided(authorizer: RbacAuthorizer, question: Question) -> bool:
    user = User(question.user, groups=tuple(USERS[question.user]))
    if path := question.attributes.get("nonResourceAttributes"):
        return authorizer.allows(user, RequestInfo(path["verb"], path["path"])).allowed
    about = question.attributes["resourceAttributes"]
    return authorizer.allows(user, RequestInfo(about.pop("verb"), "/", **about)).allowed


@pytest.mark.parametrize("user", USERS)
def test_decides_as_the_real_server_did(authorizer: RbacAuthorizer, user: str) -> None:
    """Each verb on each resource, subresource, namespace and name, and each path, is allowed if it was there."""
    asked = list(questions(user))
    assert len(asked) == len(RECORDED[user])
    wrong = [
        (question, allowed)
        for question, allowed in zip(asked, RECORDED[user], strict=True)
        if decided(authorizer, question) != (allowed == "1")
    ]
    assert not wrong


def test_the_matrix_says_yes_and_no() -> None:
    """Every user has something to be allowed and something to be denied, but for those who may all or nothing."""
    alike = {user: set(answers) for user, answers in RECORDED.items() if len(set(answers)) == 1}
    assert alike == {"master": {"1"}, "chief": {"1"}, "system:serviceaccount:other:robot": {"0"}}
