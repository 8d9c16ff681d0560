"""What a service account of few rights may do, asked of a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import yaml

from conformance.controllers.watching import until
from navarch.api import Dynamic, Resource, Spec, Status
from navarch.client import Client, Config, connect
from navarch.errors import MissingPermissionsError
from navarch.k8s.apps.v1 import Deployment
from navarch.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import ConfigMap, ServiceAccount
from navarch.operator.permissions import Needs, Permission, check_permissions, missing_permissions, permissions_of
from navarch.operator.roles import roles_of


class Kiosk(Resource[Spec, Status], group="rights.example.com", version="v1"): ...


@asynccontextmanager
async def robot(client: Client, base: Config) -> AsyncIterator[Client]:
    """A client with the token of a new service account, which may do nothing yet."""
    await client.create(ServiceAccount(name="robot"))
    request = TokenRequest(spec=TokenRequestSpec(audiences=[], expiration_seconds=600))
    token = (await client.create_subresource(ServiceAccount, "robot", "token", request)).status.token
    config = msgspec.structs.replace(base, token=token or "")
    async with connect(config).using(namespace=client.options.namespace, manager="kiosks") as other:
        yield other


async def test_the_report_is_complete_and_its_manifests_grant_what_is_missing(client: Client, config: Config) -> None:
    """A part is granted first; the rest is reported at once, and after applying the remedy nothing is missing."""
    namespace = client.options.namespace
    user = f"system:serviceaccount:{namespace}:robot"
    needs = Needs(primary=Kiosk, owns=(Deployment,), reads=(ConfigMap,), has_cleanup=True, namespaces=(namespace,))
    wanted = permissions_of([needs], election_namespace=namespace, crds="install")
    granted = [permission for permission in wanted if permission.verb in {"list", "watch"}]
    async with robot(client, config) as other:
        assert await missing_permissions(other, wanted) == list(wanted)
        for manifest in roles_of("readers", granted, user):
            await client.create(Dynamic(manifest))
        await until_missing(other, wanted, len(wanted) - len(granted))
        with pytest.raises(MissingPermissionsError) as caught:
            await check_permissions(other, wanted)
        report, _, remedy = str(caught.value).partition("apply -f` it:\n\n")
        assert user in report
        for line in ("customresourcedefinitions.apiextensions.k8s.io  create, get, patch", "kiosks.rights.example.com"):
            assert line in report
        for manifest in yaml.safe_load_all(remedy):
            await client.create(Dynamic(manifest))
        await until_missing(other, wanted, 0)
        await check_permissions(other, wanted)


async def until_missing(client: Client, wanted: tuple[Permission, ...], count: int) -> None:
    """The server takes a moment to know of roles, so it is asked until it does."""
    await until(
        lambda: missing_permissions(client, wanted),
        lambda missing: len(missing) == count,
        f"{count} missing permissions",
    )
