"""What is asked about tokens: may I have one, and whose is this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cluster.access.asking import Json, Step
from cluster.access.wording import ACCOUNTS, PODS, WHO, review

__all__ = ["forged_tokens", "token_request", "token_requests", "token_reviews"]


def token_request(
    name: str, account: str = "robot", *, keeps: str = "", metadata: Json | None = None, **spec: Any
) -> Step:
    """Asks for a token of a ServiceAccount."""
    body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    if metadata is not None:
        body["metadata"] = metadata
    return Step(name, "POST", f"{ACCOUNTS}/{account}/token", body, keeps=keeps)


def token_requests() -> Iterator[Step]:
    """Tokens that may be had, and such that may not."""
    container = {"name": "c", "image": "i"}
    pod_spec = {"serviceAccountName": "robot", "nodeName": "n9", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"}, "spec": pod_spec}
    yield Step("a pod", "POST", PODS, pod)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s1"}}
    yield Step("a Secret", "POST", "/api/v1/namespaces/acc/secrets", secret)
    yield token_request("a token", keeps="robot")
    yield token_request("a token to act with", "imp", keeps="imp")
    yield token_request("a token for others", audiences=["a", "b"], expirationSeconds=600, keeps="other")
    for seconds in (599, 0, -1, 2**32 + 1, 2**32):
        yield token_request(f"a token for {seconds} s", expirationSeconds=seconds)
    yield token_request("a token of nobody", "none")
    yield token_request("a token of another name", metadata={"name": "x"})
    yield token_request("a token of another namespace", metadata={"namespace": "x"})
    yield token_request("a token of another uid", metadata={"uid": "x"})
    yield token_request("a token with labels", metadata={"labels": {"a": "b"}, "name": "robot"})
    to_pod = {"kind": "Pod", "apiVersion": "v1", "name": "p1"}
    yield token_request("a token bound to a pod", boundObjectRef=to_pod, keeps="pod")
    yield token_request("a token bound to a pod of another", "imp", boundObjectRef=to_pod)
    yield token_request("a token bound to a pod of another uid", boundObjectRef={**to_pod, "uid": "bad"})
    yield token_request("a token of a kubelet", boundObjectRef=to_pod, expirationSeconds=3607, keeps="kubelet")
    yield token_request(
        "a token bound to a Secret", boundObjectRef={**to_pod, "kind": "Secret", "name": "s1"}, keeps="secret"
    )
    yield token_request("a token bound to no pod", boundObjectRef={**to_pod, "name": "nopod"})
    yield token_request("a token bound to no node", boundObjectRef={**to_pod, "kind": "Node", "name": "nonode"})
    to_deployment = {"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"}
    yield token_request("a token bound to what it cannot be", boundObjectRef=to_deployment)
    yield token_request("a token bound to nothing", boundObjectRef={})


def _token_review(name: str, token: str, **more: Any) -> Step:
    step = {key: more.pop(key) for key in ("claims", "head") if key in more}
    body = review("TokenReview", {"token": token, **more})
    return Step(name, "POST", f"{WHO}/tokenreviews", body, **step)


def token_reviews() -> Iterator[Step]:
    """Whose tokens these are."""
    for name in ("robot", "pod", "kubelet", "secret", "other"):
        yield _token_review(f"the token {name}", f"${name}")
    yield _token_review("for its audience", "$other", audiences=["b", "c"])
    yield _token_review("for another audience", "$robot", audiences=["x"])
    yield _token_review("rubbish", "rubbish")
    yield _token_review("no token", "")
    yield _token_review("a token with spaces", " a b")
    yield _token_review("three parts", "a.b.c")
    yield _token_review("three parts of JSON", "e30.W10.e30")


def forged_tokens() -> Iterator[Step]:
    """Whose these are, which somebody made out of a good one."""
    forged = {
        "as it was": {},
        "expired": {"exp": "now-100"},
        "just expired": {"exp": "now-30"},
        "not valid yet": {"nbf": "now+100"},
        "almost valid": {"nbf": "now+30"},
        "issued in the future": {"iat": "now+100"},
        "of another issuer": {"iss": "other"},
        "for another audience, forged": {"aud": ["x"]},
        "for no audience": {"aud": []},
        "without audiences": {"aud": None},
        "for one audience as text": {"aud": "https://kubernetes.default.svc"},
        "without an end": {"exp": None},
        "with a time as text": {"exp": "soon"},
        "of another uid": {"own": {"serviceaccount": {"name": "robot", "uid": "x"}}},
        "of an account that is gone": {"own": {"serviceaccount": {"name": "gone", "uid": "x"}}},
        "bound to a pod that is gone": {"own": {"pod": {"name": "gone", "uid": "x"}}},
        "bound to another pod": {"own": {"pod": {"name": "p1", "uid": "x"}}},
        "bound to a node that is gone": {"own": {"node": {"name": "gone", "uid": "x"}}},
        "bound to a Secret that is gone": {"own": {"secret": {"name": "gone", "uid": "x"}}},
        "bound to another Secret": {"own": {"secret": {"name": "s1", "uid": "x"}}},
        "of another subject": {"sub": "x"},
        "without Kubernetes' claims": {"kubernetes.io": None},
        "of the old kind, without claims": {"iss": "kubernetes/serviceaccount"},
    }
    for name, claims in forged.items():
        yield _token_review(f"a forged token {name}", "", claims=claims)
    for name, head in {
        "signed by nothing": {"alg": "none"},
        "signed with a secret": {"alg": "HS256"},
        "said to be signed with RSA": {"alg": "RS256"},
        "of an unknown key": {"alg": "ES256", "kid": "zzz"},
        "without a key": {"alg": "ES256"},
    }.items():
        yield _token_review(f"a forged token {name}", "", claims={}, head=head)
    yield Step("the account goes", "DELETE", f"{ACCOUNTS}/robot")
    yield _token_review("a token of a deleted account", "", claims={"jti": "another"})
