"""Who is asking, and what they may."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from conformance.controllers.watching import until
from gadgets import config_map
from navarch.api import Dynamic
from navarch.client import Client, Config, Impersonation, connect
from navarch.errors import Forbidden, Unauthorized
from navarch.k8s.authentication.v1 import SelfSubjectReview, TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import ConfigMap, ServiceAccount

ADMINISTRATORS = ("rig-admin", "kubernetes-admin")


@asynccontextmanager
async def connected(client: Client, config: Config) -> AsyncIterator[Client]:
    async with connect(config).using(namespace=client.options.namespace) as other:
        yield other


def changed(config: Config, **fields: Any) -> Config:
    return msgspec.structs.replace(config, **fields)


async def who(client: Client) -> tuple[str | None, list[str]]:
    """Whom the server takes the client for."""
    review = await client.create(SelfSubjectReview())
    user = review.status.user_info
    assert user is not None
    return user.username, user.groups or []


async def test_token_says_who_is_asking(client: Client) -> None:
    """As the kubeconfig has it."""
    name, groups = await who(client)
    assert name in ADMINISTRATORS
    assert "system:masters" in groups


async def test_client_certificate_says_who_is_asking(client: Client, certificate_config: Config) -> None:
    """As the other kubeconfig has it."""
    async with connected(client, certificate_config) as other:
        assert (await who(other))[0] in ADMINISTRATORS


async def test_wrong_token_is_unauthorized(client: Client, config: Config) -> None:
    """At once, and without showing it."""
    async with connected(client, changed(config, token="hunter2")) as other:
        with pytest.raises(Unauthorized) as caught:
            await other.get(ConfigMap, "a")
    assert "hunter2" not in str(caught.value)


async def test_nobody_is_forbidden(client: Client, config: Config) -> None:
    """Without any credential one is anonymous."""
    async with connected(client, changed(config, token="")) as other:
        with pytest.raises((Forbidden, Unauthorized)):
            await other.get(ConfigMap, "a")


async def test_impersonated_user_has_only_their_own_rights(client: Client, config: Config) -> None:
    """Forbidden says who may not do what; a role lets them."""
    jane = Impersonation(user="jane", groups=("dev", "ops"), extra={"example.com/scope": ("a",)})
    async with connected(client, changed(config, impersonate=jane)) as other:
        name, groups = await who(other)
        assert name == "jane"
        assert {"dev", "ops"} <= set(groups)
        with pytest.raises(Forbidden, match=r'User "jane" cannot get resource "configmaps"'):
            await other.get(ConfigMap, "a")
        await client.create(config_map("a"))
        await allowed(client, "dev")
        assert (await other.get(ConfigMap, "a")).name == "a"
        with pytest.raises(Forbidden, match="cannot delete"):
            await other.delete(ConfigMap, "a")


async def allowed(client: Client, group: str) -> None:
    """Lets a group read config maps; the server takes a moment to know, so it is asked until it does."""
    api, rules = "rbac.authorization.k8s.io/v1", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    await client.create(Dynamic({"apiVersion": api, "kind": "Role", "metadata": {"name": "reader"}, "rules": rules}))
    subject = {"kind": "Group", "name": group, "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": reference}
    await client.create(Dynamic({"apiVersion": api, "kind": "RoleBinding", **binding}))
    question = {
        "user": "jane",
        "groups": [group],
        "resourceAttributes": {"namespace": client.options.namespace, "verb": "get", "resource": "configmaps"},
    }
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": question}
    await until(lambda: client.create(Dynamic(review)), lambda found: found["status"]["allowed"], "the role to hold")


async def test_token_of_a_service_account_is_asked_for_and_works(client: Client, config: Config) -> None:
    """By the token subresource; the answer is the class that was posted."""
    await client.create(ServiceAccount(name="robot"))
    request = TokenRequest(spec=TokenRequestSpec(audiences=[], expiration_seconds=600))
    answered = await client.create_subresource(ServiceAccount, "robot", "token", request)
    assert answered.status.token
    async with connected(client, changed(config, token=answered.status.token)) as other:
        assert (await who(other))[0] == f"system:serviceaccount:{client.options.namespace}:robot"
