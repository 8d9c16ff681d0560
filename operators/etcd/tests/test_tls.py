"""TLS and users with real etcd processes: on the wire, while somebody writes and reads."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from certificates import sign
from clusters import NAME, SECONDS, example, serves
from etcd_members import running_etcd
from etcd_operator.backup import EtcdBackup, EtcdBackupSpec, LocalSource
from etcd_operator.declaration import etcd_operator
from etcd_operator.kinds import AuthPolicy, EtcdCluster, IssuedTls, MemberTls, StaticTls, TlsPolicy
from etcd_operator.manifests.listeners import AUTHORITIES
from etcd_operator.tls.authority import client_subject, member_subject
from etcds import machines
from navarch._base.clock import SystemClock
from navarch.certificates import CertificateAuthority, KeyPair, hosts_of
from navarch.errors import EtcdAccessError, EtcdError
from navarch.k8s.core.v1 import Pod, Secret
from navarch.testing import Cluster
from rig import programs, tools
from workload import LONGEST_GAP, Workload, client_with, endpoints_of, secret_of, workload

HOST = f"{NAME}-client.default.svc"
ISSUED = TlsPolicy(issued=IssuedTls())


@pytest.mark.timeout(400)
@pytest.mark.cluster(nodes=3)
@pytest.mark.long
async def test_tls_and_users_are_turned_on_while_somebody_writes(cluster: Cluster, tmp_path: Path) -> None:
    """No write is lost; then plain text, strangers and the wrong password are refused, and certificates are renewed."""
    async with cluster.run(etcd_operator(backups=tmp_path)):
        await cluster.apply(example(3))
        await serves(cluster, 3)
        async with workload(cluster, NAME) as work:
            await cluster.apply(example(3, tls=ISSUED, auth=AuthPolicy()))
            await cluster.eventually(
                lambda: cluster.get(EtcdCluster, NAME),
                lambda found: found.status.secured,
                timeout=2 * SECONDS,
                what="members that reach each other with TLS",
            )
            await serves(cluster, 3)
            await nobody_is_let_in_without_certificate_and_password(cluster)
            await a_certificate_is_renewed_and_nobody_notices(cluster, work)
            await a_backup_is_made(cluster)


async def nobody_is_let_in_without_certificate_and_password(cluster: Cluster) -> None:
    """Not in plain text, not with TLS alone, not with a certificate alone."""
    files = await secret_of(cluster, f"{NAME}-client-tls")
    for pod in await cluster.list(Pod):
        for port in (2379, 2382):
            assert not await answers_in_plain_text(str(pod.status.pod_ip), port), (
                f"{pod.name} serves plain text at {port}"
            )
        assert not await is_open(str(pod.status.pod_ip), 2380)
    endpoints = await endpoints_of(cluster, NAME)
    assert all(each.startswith("https://") for each in endpoints)
    trusting = {"etcd-client-ca.crt": files["etcd-client-ca.crt"]}
    async with client_with(trusting, endpoints, NAME, hurried=True) as stranger:
        with pytest.raises(EtcdError):
            await stranger.kv.get(b"/a")
    async with client_with(files, endpoints, NAME) as nobody:
        with pytest.raises(EtcdAccessError, match="user name is empty"):
            await nobody.kv.get(b"/a")


async def a_certificate_is_renewed_and_nobody_notices(cluster: Cluster, work: Workload) -> None:
    """One that is almost over is replaced in all members; none is started anew."""
    before = {str(pod.metadata.uid) for pod in await cluster.list(Pod)}
    await put_almost_expired(cluster, f"{NAME}-server-tls")
    await cluster.eventually(lambda: served(cluster), lambda found: all(map(is_old, found)), timeout=SECONDS)
    await cluster.apply(example(3, tls=TlsPolicy(issued=IssuedTls(valid_for_days=364)), auth=AuthPolicy()))
    await cluster.eventually(lambda: served(cluster), lambda found: not any(map(is_old, found)), timeout=SECONDS)
    written = len(work.acknowledged)
    await cluster.eventually(lambda: count(work), lambda now: now > written + 10, timeout=SECONDS)
    assert {str(pod.metadata.uid) for pod in await cluster.list(Pod)} == before


async def a_backup_is_made(cluster: Cluster) -> None:
    """Snapshots are let in too."""
    spec = EtcdBackupSpec(cluster_name=NAME, local=LocalSource(path="etcd.db"))
    await cluster.apply(EtcdBackup(name="now", spec=spec))
    await backed_up(cluster)


async def backed_up(cluster: Cluster) -> None:
    await cluster.eventually(
        lambda: cluster.get(EtcdBackup, "now"), lambda found: found.status.succeeded, timeout=SECONDS, what="a backup"
    )


@pytest.mark.cluster(nodes=1)
@pytest.mark.long
async def test_a_cluster_waits_for_its_secrets_and_then_serves_with_tls_alone(cluster: Cluster) -> None:
    """The status names what is missing, and no pod is made; with all three Secrets it serves."""
    static = TlsPolicy(static=StaticTls(member=MemberTls(peer_secret="p", server_secret="s"), operator_secret="o"))
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(1, tls=static))
        await refused(cluster, "Secret s does not exist")
        peer, server, client = made_by_hand()
        await cluster.create(Secret(name="s", data={**server, "server.key": client["etcd-client.key"]}))
        await cluster.create(Secret(name="o", data=client))
        await refused(cluster, "Secret s: server.key does not match server.crt")
        assert not await cluster.list(Pod)
        await cluster.create(Secret(name="p", data=peer))
        await cluster.apply(Secret(name="s", data=server), force=True)
        await serves(cluster, 1)
        (pod,) = await cluster.list(Pod)
        assert not await answers_in_plain_text(str(pod.status.pod_ip), 2379)
        endpoints = await endpoints_of(cluster, NAME)
        async with client_with(client, endpoints, NAME) as etcd:
            await etcd.kv.put(b"/a", b"1")


async def test_a_backup_of_endpoints_shows_the_certificate_of_its_secret(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing is believed without one, and what is missing is named."""
    authority = sign("ca")
    server, client = sign("server", authority), sign("client", authority)
    for name, content in {"ca": authority.pem, "crt": server.pem, "key": server.key}.items():
        (tmp_path / name).write_bytes(content)
    files = [
        f"--cert-file={tmp_path / 'crt'}",
        f"--key-file={tmp_path / 'key'}",
        f"--trusted-ca-file={tmp_path / 'ca'}",
    ]
    secret = {"etcd-client-ca.crt": authority.pem, "etcd-client.crt": client.pem, "etcd-client.key": client.key}
    with running_etcd(tools.old_etcd, tmp_path, flags=[*files, "--client-cert-auth"], tls=True) as elsewhere:
        async with cluster.run(etcd_operator(backups=tmp_path)):
            place = LocalSource(path="etcd.db")
            spec = EtcdBackupSpec(etcd_endpoints=list(elsewhere.urls), client_tls_secret="c", local=place)
            await cluster.apply(EtcdBackup(name="now", spec=spec))
            await cluster.eventually(
                lambda: cluster.get(EtcdBackup, "now"),
                lambda found: "Secret c does not exist" in found.status.reason,
                timeout=SECONDS,
                what="a backup that names the Secret",
            )
            await cluster.create(Secret(name="c", data=secret))
            await backed_up(cluster)


@pytest.mark.real
@pytest.mark.timeout(400)
async def test_members_of_the_newest_etcd_join_and_are_replaced_with_tls() -> None:
    """From the first moment on nobody listens in plain text; a member that is lost is replaced by one that has TLS too."""
    version = programs.ETCD_VERSION.removeprefix("v")
    async with machines({version: programs.ETCD.path}) as cluster, cluster.run(etcd_operator()):
        await cluster.apply(example(3, version=version, tls=ISSUED, auth=AuthPolicy(), storage=None))
        await serves(cluster, 3)
        async with workload(cluster, NAME):
            await cluster.client.delete(Pod, f"{NAME}-1", grace_seconds=0)
            await cluster.eventually(
                lambda: cluster.get(EtcdCluster, NAME),
                lambda found: len(found.status.members.ready) == 2,
                timeout=SECONDS,
            )
            await serves(cluster, 3)
            for pod in await cluster.list(Pod):
                assert not await answers_in_plain_text(str(pod.status.pod_ip), 2379)
                assert not await is_open(str(pod.status.pod_ip), 2380)


@pytest.mark.real
@pytest.mark.timeout(400)
@pytest.mark.cluster(nodes=3)
async def test_an_authority_is_followed_by_another_while_somebody_writes(cluster: Cluster) -> None:
    """Its keys are lost: a new one is made known to all, one by one; then it signs, and nobody is started anew for that."""
    async with cluster.run(etcd_operator()):
        await cluster.apply(example(3, tls=ISSUED))
        await serves(cluster, 3)
        async with workload(cluster, NAME) as work:
            first = await cluster.eventually(lambda: served(cluster), bool, timeout=SECONDS)
            known = await trusted(cluster)
            await cluster.delete(Secret, f"{NAME}-authorities")
            await cluster.apply(example(3, tls=TlsPolicy(issued=IssuedTls(valid_for_days=300))))
            await cluster.eventually(
                lambda: trusted(cluster), lambda found: len(found) == 1 and found != known, timeout=SECONDS
            )
            await serves(cluster, 3)
            assert await cluster.eventually(lambda: served(cluster), bool, timeout=SECONDS) == first
            pods = {str(pod.metadata.uid) for pod in await cluster.list(Pod)}
            before = await secret_of(cluster, f"{NAME}-server-tls")
            await cluster.apply(example(3, tls=TlsPolicy(issued=IssuedTls(valid_for_days=301))))
            await cluster.eventually(
                lambda: secret_of(cluster, f"{NAME}-server-tls"),
                lambda found: found["server.crt"] != before["server.crt"],
                timeout=SECONDS,
            )
            written = len(work.acknowledged)
            await cluster.eventually(lambda: count(work), lambda now: now > written + 50, timeout=SECONDS)
            assert {str(pod.metadata.uid) for pod in await cluster.list(Pod)} == pods
        assert work.longest_gap < LONGEST_GAP


async def refused(cluster: Cluster, message: str) -> None:
    await cluster.eventually(
        lambda: cluster.get(EtcdCluster, NAME),
        lambda found: message in found.status.reason,
        timeout=SECONDS,
        what=f"a cluster that says: {message}",
    )


def made_by_hand() -> tuple[dict[str, bytes], dict[str, bytes], dict[str, bytes]]:
    """The files of three Secrets, as CoreOS' guide asks for them."""
    now, year = SystemClock().now(), timedelta(days=365)
    authority = CertificateAuthority.create("by-hand", now, year)
    trusted = authority.pair.certificate
    peer = authority.issue(member_subject("peer", (f"*.{NAME}.default.svc",)), now, year)
    server = authority.issue(member_subject("server", (f"*.{NAME}.default.svc", HOST, "localhost")), now, year)
    client = authority.issue(client_subject("client"), now, year)
    return (
        {"peer-ca.crt": trusted, "peer.crt": peer.certificate, "peer.key": peer.key},
        {"server-ca.crt": trusted, "server.crt": server.certificate, "server.key": server.key},
        {"etcd-client-ca.crt": trusted, "etcd-client.crt": client.certificate, "etcd-client.key": client.key},
    )


async def put_almost_expired(cluster: Cluster, name: str) -> None:
    """As if nobody had looked after the certificate for most of its time."""
    data = await secret_of(cluster, f"{NAME}-authorities")
    authority = CertificateAuthority(KeyPair(data["client-ca.crt"], data["client-ca.key"]))
    found = await cluster.get(Secret, name)
    assert found.data
    hosts = tuple(hosts_of(x509.load_pem_x509_certificate(found.data["server.crt"])))
    old = authority.issue(
        member_subject("server", hosts), SystemClock().now() - timedelta(days=300), timedelta(days=365)
    )
    found.data.update({"server.crt": old.certificate, "server.key": old.key})
    await cluster.client.replace(found)


def is_old(certificate: x509.Certificate) -> bool:
    return certificate.not_valid_after_utc < SystemClock().now() + timedelta(days=100)


async def served(cluster: Cluster) -> list[x509.Certificate]:
    """The certificate that each member shows now."""
    addresses = [str(pod.status.pod_ip) for pod in await cluster.list(Pod)]
    context = known_context(await secret_of(cluster, f"{NAME}-client-tls"))
    return [x509.load_der_x509_certificate(await asyncio.to_thread(_shown, each, context)) for each in addresses]


async def trusted(cluster: Cluster) -> set[str]:
    """Fingerprints of those whom members trust."""
    return {pod.annotations[AUTHORITIES] for pod in await cluster.list(Pod)}


def known_context(files: Mapping[str, bytes]) -> ssl.SSLContext:
    """Members talk only to those who have a certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with tempfile.NamedTemporaryFile() as chain:
        chain.write(files["etcd-client.crt"] + files["etcd-client.key"])
        chain.flush()
        context.load_cert_chain(chain.name)
    return context


def _shown(address: str, context: ssl.SSLContext) -> bytes:
    """Raises `LookupError`, which is waited over, if there is none to be shown: etcd reads certificate and key one after the
    other, and both may change in between.
    """
    try:
        with (
            socket.create_connection((address, 2379), timeout=SECONDS) as plain,
            context.wrap_socket(plain) as connection,
        ):
            return connection.getpeercert(binary_form=True) or b""
    except ssl.SSLError as error:
        raise LookupError(f"{address} shows no certificate: {error}") from error


async def answers_in_plain_text(address: str, port: int) -> bool:
    return b" 200 " in await asyncio.to_thread(_asked, address, port)


def _asked(address: str, port: int) -> bytes:
    try:
        with socket.create_connection((address, port), timeout=SECONDS) as connection:
            connection.sendall(b"GET /version HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n")
            return connection.recv(1000)
    except OSError:
        return b""


async def is_open(address: str, port: int) -> bool:
    def tried() -> bool:
        with socket.socket() as connection:
            return connection.connect_ex((address, port)) == 0

    return await asyncio.to_thread(tried)


async def count(work: Workload) -> int:
    return len(work.acknowledged)
