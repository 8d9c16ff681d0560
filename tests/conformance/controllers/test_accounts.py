"""What every namespace has for its pods."""

from __future__ import annotations

from conformance.controllers.watching import until
from navarch.client import Client, MergePatch
from navarch.k8s.core.v1 import ConfigMap, ServiceAccount


async def test_namespace_gets_an_account(client: Client) -> None:
    """The account `default` comes by itself, and comes again."""
    first = await until(lambda: client.get(ServiceAccount, "default"), lambda _: True, "the account")
    await client.delete(ServiceAccount, "default")
    await until(
        lambda: client.get(ServiceAccount, "default"),
        lambda found: found.metadata.uid != first.metadata.uid,
        "another account",
    )


async def test_namespace_gets_the_root_certificate(client: Client) -> None:
    """`kube-root-ca.crt` comes by itself, comes again, and is as it should be whoever changes it."""
    first = await until(lambda: client.get(ConfigMap, "kube-root-ca.crt"), lambda _: True, "the certificate")
    assert set(first.data or {}) == {"ca.crt"}
    assert "verify the kube-apiserver" in first.annotations["kubernetes.io/description"]
    await client.patch(ConfigMap, first.name, MergePatch({"data": {"ca.crt": "another", "more": "of it"}}))
    await until(
        lambda: client.get(ConfigMap, first.name), lambda found: found.data == first.data, "the certificate back"
    )
    await client.delete(ConfigMap, first.name)
    await until(lambda: client.get(ConfigMap, first.name), lambda found: found.data == first.data, "it to come again")
