"""What is decided about TLS and users, and what is said of Secrets that cannot be used."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from etcd_operator.kinds import AuthPolicy, EtcdCluster, IssuedTls, MemberTls, StaticTls, TlsPolicy
from etcd_operator.manifests import MemberStart, client_host, host_of, member_pod
from etcd_operator.observation import Observation
from etcd_operator.plan import decide
from etcd_operator.plan.steps import AddMember, AskWho, DeletePod, Remember, Secured, SecurePeer, StartMember
from etcd_operator.report import report_status
from etcd_operator.tls import CredentialCache
from etcd_operator.tls.authority import client_subject, member_subject
from etcd_operator.tls.credentials import examined
from etcd_operator.tls.issuer import issued
from navarch import Context, Key
from navarch.api import set_controller
from navarch.certificates import CertificateAuthority, KeyPair
from navarch.errors import Forbidden
from navarch.k8s.core.v1 import Secret
from observed import NOW, a_cluster, healthy

ISSUED = TlsPolicy(issued=IssuedTls())
STATIC = TlsPolicy(static=StaticTls(member=MemberTls(peer_secret="p", server_secret="s"), operator_secret="o"))
YEAR = timedelta(days=365)
Secrets = dict[str, dict[str, bytes] | None]


def flags_of(cluster: EtcdCluster, name: str = "c-0") -> dict[str, str]:
    command = (
        member_pod(cluster, name, MemberStart("return"), version=cluster.spec.version).spec.containers[0].command or []
    )
    return dict(each.partition("=")[::2] for each in command)


def turned_on(**status: Any) -> EtcdCluster:
    cluster = a_cluster(tls=ISSUED)
    for field, value in status.items():
        setattr(cluster.status, field, value)
    return cluster


# What is decided


def test_nothing_is_started_while_a_secret_is_wrong() -> None:
    """The words are the fault's own, and the phase is Failed only if there is no cluster yet."""
    cluster = turned_on(cluster_id="")
    seen = Observation(now=NOW, faults=("Secret p does not exist",))
    plan = decide(cluster, seen)
    assert (plan.reason, plan.step, plan.stuck) == ("SecretsWrong", None, True)
    report_status(cluster, seen, plan)
    assert (cluster.status.phase, cluster.status.reason) == ("Failed", "Secret p does not exist")
    runs = a_cluster(tls=ISSUED)
    told = replace(healthy(a_cluster()), faults=("Secret p does not exist",))
    report_status(runs, told, decide(runs, told))
    assert (runs.status.phase, runs.status.is_true("Degraded")) == ("Running", True)
    assert runs.status.is_true("Available")


def test_a_new_cluster_never_listens_in_plain_text() -> None:
    """Neither for members nor for clients; and that is written down with its first answer."""
    cluster = turned_on(cluster_id="")
    plan = decide(cluster, Observation(now=NOW))
    assert plan.step == StartMember("c-0", MemberStart("seed"), cluster.spec.version)
    flags = flags_of(cluster)
    assert flags["--listen-peer-urls"] == "https://$(POD_IP):2382"
    assert flags["--listen-client-urls"] == "https://$(POD_IP):2379"
    assert {"--client-cert-auth", "--peer-client-cert-auth"} <= flags.keys()
    assert decide(cluster, healthy(cluster, 1)).step == Remember(1, secured=True)


def test_a_cluster_that_turns_to_tls_serves_in_both_ways_first() -> None:
    """Members are told the new way only when every pod has certificates; then plain text is given up."""
    plain = healthy(a_cluster())
    cluster = turned_on()
    assert flags_of(cluster)["--listen-peer-urls"] == "http://$(POD_IP):2380,https://$(POD_IP):2382"
    assert flags_of(cluster)["--listen-client-urls"] == "http://$(POD_IP):2379,https://$(POD_IP):2379"
    assert decide(cluster, plain).reason == "RollingOut"
    both = healthy(cluster)
    assert decide(cluster, both).step == SecurePeer(both.members[0])
    urls = tuple(replace(each, peer_url=f"https://{each.name}.c.default.svc:2382") for each in both.members)
    assert decide(cluster, replace(both, members=urls)).step == Secured()
    cluster.status.secured = True
    assert decide(cluster, replace(both, members=urls)).reason == "RollingOut"


def test_a_member_that_joins_meanwhile_is_one_that_all_can_reach() -> None:
    """Those that run without certificates could not go to one that wants them."""
    cluster = a_cluster(tls=ISSUED, storage=None)
    step = decide(cluster, healthy(a_cluster(storage=None))).step
    assert step == AddMember("c-3", learner=True)
    assert flags_of(cluster, "c-3")["--initial-advertise-peer-urls"] == "http://c-3.c.default.svc:2380"


def test_whoever_is_trusted_by_others_than_before_is_started_anew() -> None:
    """etcd reads whom it trusts only when it starts."""
    cluster = turned_on(secured=True, authorities="old")
    seen = healthy(cluster)
    assert decide(cluster, seen).reason == "Ready"
    cluster.status.authorities = "new"
    assert decide(cluster, seen).step == DeletePod("c-2")


def test_of_two_members_none_is_started_anew_before_there_is_a_third() -> None:
    """No pod is recreated and no peer URL changes before a third member has joined."""
    cluster = turned_on()
    assert decide(cluster, healthy(a_cluster(), 2)).step == AddMember("c-2", learner=True)


def test_clients_without_tls_are_served_as_long_as_that_is_asked_for() -> None:
    """Clients may use plain text; members use TLS alone."""
    cluster = a_cluster(tls=TlsPolicy(issued=IssuedTls(), plain_clients=True))
    cluster.status.secured = True
    flags = flags_of(cluster)
    assert flags["--listen-client-urls"] == "http://$(POD_IP):2379,https://$(POD_IP):2379"
    assert flags["--listen-peer-urls"] == "https://$(POD_IP):2382"


def test_users_begin_when_all_is_well_and_a_stranger_does_nothing() -> None:
    """A password that etcd does not take is said; membership is not touched."""
    cluster = a_cluster(auth=AuthPolicy(), size=5)
    seen = healthy(cluster)
    assert decide(cluster, replace(seen, auth="off")).step == AskWho()
    assert decide(cluster, replace(seen, auth="on")).step == AddMember("c-3", learner=True)
    refused = decide(cluster, replace(seen, auth="refused"))
    assert (refused.reason, refused.step, refused.stuck) == ("AccessRefused", None, True)


# What is wrong with Secrets


def pair_of(authority: CertificateAuthority, *hosts: str, now: datetime = NOW, valid: timedelta = YEAR) -> KeyPair:
    return authority.issue(member_subject("x", hosts) if hosts else client_subject("x"), now, valid)


def secrets_of(cluster: EtcdCluster) -> Secrets:
    """As somebody would make them who knows how."""
    authority = CertificateAuthority.create("ca", NOW - YEAR, 10 * YEAR)
    peer, server = pair_of(authority, host_of(cluster, "*")), pair_of(authority, client_host(cluster))
    client, trusted = pair_of(authority), authority.pair.certificate
    return {
        "p": {"peer-ca.crt": trusted, "peer.crt": peer.certificate, "peer.key": peer.key},
        "s": {"server-ca.crt": trusted, "server.crt": server.certificate, "server.key": server.key},
        "o": {"etcd-client-ca.crt": trusted, "etcd-client.crt": client.certificate, "etcd-client.key": client.key},
    }


def changed(found: Secrets, secret: str, **values: bytes) -> Secrets:
    return {
        **found,
        secret: {**(found[secret] or {}), **{key.replace("__", "."): each for key, each in values.items()}},
    }


def test_secrets_that_fit_have_no_faults() -> None:
    """Matching Secrets have no fault, and another authority changes the fingerprint."""
    cluster = a_cluster(tls=STATIC)
    found = secrets_of(cluster)
    keys = examined(cluster, found, NOW)
    assert keys.faults == ()
    assert keys.server_name == "c-client.default.svc"
    assert examined(cluster, secrets_of(cluster), NOW).authorities != keys.authorities


OTHER = CertificateAuthority.create("other", NOW - YEAR, 10 * YEAR)


@pytest.mark.parametrize(
    ("secret", "files", "message"),
    [
        ("p", None, "Secret p does not exist"),
        ("p", {"peer__key": b""}, "Secret p has no peer.key"),
        ("o", {"etcd-client-ca__crt": b""}, "Secret o has no etcd-client-ca.crt"),
        ("s", {"server__crt": b"rubbish"}, "Secret s: server.crt is not a certificate"),
        ("p", {"peer__key": b"rubbish"}, "Secret p: peer.key is not an unencrypted private key"),
        ("p", {"peer__key": pair_of(OTHER).key}, "Secret p: peer.key does not match peer.crt"),
        ("p", {"peer-ca__crt": OTHER.pair.certificate}, "Secret p: peer.crt is not signed by peer-ca.crt"),
        ("s", {"server-ca__crt": OTHER.pair.certificate}, "Secret s: server.crt is not signed by server-ca.crt"),
        ("o", {"etcd-client-ca__crt": OTHER.pair.certificate}, "server.crt is not signed by etcd-client-ca.crt"),
    ],
)
def test_a_secret_that_cannot_be_used_is_named_with_its_key(
    secret: str, files: dict[str, bytes] | None, message: str
) -> None:
    """The fault names the Secret and the key, and none of its contents."""
    cluster = a_cluster(tls=STATIC)
    found = secrets_of(cluster)
    wrong = {**found, secret: None} if files is None else changed(found, secret, **files)
    (fault,) = examined(cluster, wrong, NOW).faults
    assert message in fault
    assert "rubbish" not in fault
    assert "BEGIN" not in fault


@pytest.mark.parametrize(
    ("now", "hosts", "message"),
    [
        (NOW - 3 * YEAR, ("*.c.default.svc",), "peer.crt expired on 202"),
        (NOW + YEAR, ("*.c.default.svc",), "peer.crt is not valid before"),
        (NOW, ("elsewhere.example.com",), "peer.crt does not name c-0.c.default.svc"),
    ],
)
def test_a_certificate_for_another_time_or_place_is_not_used(
    now: datetime, hosts: tuple[str, ...], message: str
) -> None:
    """It would be refused by every other member."""
    cluster = a_cluster(tls=STATIC)
    authority = CertificateAuthority.create("ca", NOW - 4 * YEAR, 20 * YEAR)
    peer = pair_of(authority, *hosts, now=now)
    secret = {"peer-ca.crt": authority.pair.certificate, "peer.crt": peer.certificate, "peer.key": peer.key}
    (fault,) = examined(cluster, {**secrets_of(cluster), "p": secret}, NOW).faults
    assert message in fault


def test_a_password_that_is_missing_is_named() -> None:
    """The fault names the Secret and the key of the password."""
    cluster = a_cluster(auth=AuthPolicy(root_secret="r"))
    assert examined(cluster, {"r": None}, NOW).faults[0].startswith("Secret r does not exist")
    assert examined(cluster, {"r": {"user": b"x"}}, NOW).faults == ("Secret r has no password",)
    assert examined(cluster, {"r": {"password": b"x"}}, NOW).user == "root"


# What is issued, and renewed


def after(found: Secrets, cluster: EtcdCluster, now: datetime, *, known: bool = True) -> tuple[Secrets, set[str]]:
    """The Secrets afterwards, and which of them were written."""
    written = issued(cluster, found, now, known=known)
    return {**found, **written}, set(written)


def test_what_is_issued_is_good_and_left_alone_for_two_thirds_of_its_time() -> None:
    """Valid certificates stay; after two thirds of their time the same authority issues new ones."""
    cluster = a_cluster(tls=ISSUED, auth=AuthPolicy())
    first, written = after({}, cluster, NOW)
    assert written == {
        f"c-{name}" for name in ("authorities", "peer-tls", "server-tls", "operator-tls", "client-tls", "root")
    }
    assert examined(cluster, first, NOW).faults == ()
    assert after(first, cluster, NOW + 0.6 * YEAR)[1] == set()
    second, renewed = after(first, cluster, NOW + 0.7 * YEAR)
    assert renewed == {"c-peer-tls", "c-server-tls", "c-operator-tls", "c-client-tls"}
    now, before = examined(cluster, second, NOW + 0.7 * YEAR), examined(cluster, first, NOW)
    assert now.faults == ()
    assert now.authorities == before.authorities
    assert now.password == before.password


def test_a_new_authority_signs_only_when_every_member_knows_it() -> None:
    """Made known first, then used; nobody has to start anew in between, and the old one goes when it expires."""
    cluster = a_cluster(tls=ISSUED)
    first, _ = after({}, cluster, NOW)
    later = NOW + 7 * YEAR
    known, written = after(after(first, cluster, later)[0], cluster, later, known=False)
    assert written == set()
    assert signer_of(known) == signer_of(first)
    both = examined(cluster, known, later)
    assert both.authorities != examined(cluster, first, later).authorities
    used, _ = after(known, cluster, later, known=True)
    assert signer_of(used) != signer_of(first)
    assert examined(cluster, used, later).authorities == both.authorities
    assert examined(cluster, used, later).faults == ()
    gone, _ = after(used, cluster, NOW + 11 * YEAR)
    assert examined(cluster, gone, NOW + 11 * YEAR).authorities != both.authorities


def test_an_authority_whose_key_is_lost_is_followed_by_one_that_all_know() -> None:
    """The old certificates stay in use until every member trusts the next authority."""
    cluster = a_cluster(tls=ISSUED)
    first, _ = after({}, cluster, NOW)
    known, written = after({**first, "c-authorities": None}, cluster, NOW, known=False)
    assert "c-authorities" in written
    for secret, key in (("c-peer-tls", "peer.crt"), ("c-server-tls", "server.crt")):
        assert (known[secret] or {})[key] == (first[secret] or {})[key]
    assert examined(cluster, known, NOW).faults == ()
    used, _ = after(known, cluster, NOW, known=True)
    assert examined(cluster, used, NOW).faults == ()
    assert (used["c-peer-tls"] or {})["peer.crt"] != (first["c-peer-tls"] or {})["peer.crt"]


def signer_of(found: Secrets) -> bytes:
    return (found["c-authorities"] or {})["peer-ca.crt"]


# How often Secrets are looked at


class Shelf:
    """Secrets, and how often they were asked for."""

    def __init__(self, **secrets: Secret) -> None:
        self.secrets, self.asked, self.elapsed = secrets, 0, timedelta()
        self.forbidden = ""
        self.key = Key("team-a", "c")

    def now(self) -> datetime:
        return NOW + self.elapsed

    async def get(self, kind: Any, name: str) -> Secret | None:
        self.asked += 1
        if self.forbidden:
            raise Forbidden(self.forbidden, code=403)
        return self.secrets.get(name)

    async def apply(self, secret: Secret) -> Secret:
        self.secrets[secret.name] = secret
        return secret


def on(shelf: Shelf) -> Context:
    return cast("Context", shelf)


async def test_secrets_are_read_again_after_a_while_and_when_they_are_of_no_use() -> None:
    """Not at each look; but soon enough that what was renewed is seen."""
    cluster, shelf, keyring = a_cluster(tls=STATIC), Shelf(), CredentialCache()
    for name, data in secrets_of(cluster).items():
        shelf.secrets[name] = Secret(name=name, data=data)
    first = await keyring.keys(cluster, on(shelf))
    assert (await keyring.keys(cluster, on(shelf)), shelf.asked) == (first, 3)
    keyring.invalidate(cluster, shelf.now())
    await keyring.keys(cluster, on(shelf))
    assert shelf.asked == 3
    shelf.elapsed = timedelta(seconds=20)
    keyring.invalidate(cluster, shelf.now())
    await keyring.keys(cluster, on(shelf))
    assert shelf.asked == 6
    shelf.elapsed += timedelta(minutes=6)
    del shelf.secrets["p"]
    assert (await keyring.keys(cluster, on(shelf))).faults[0].startswith("Secret p does not exist")


async def test_a_secret_of_somebody_else_is_not_overwritten() -> None:
    """A Secret of another owner is refused, and an unreadable one is named."""
    cluster, shelf = a_cluster(tls=ISSUED), Shelf()
    shelf.secrets["c-peer-tls"] = Secret(name="c-peer-tls", data={"mine": b"1"})
    keys = await CredentialCache().renew(cluster, on(shelf), ())
    assert "c-peer-tls exists and does not belong to this cluster" in keys.faults[0]
    assert shelf.secrets["c-peer-tls"].data == {"mine": b"1"}
    shelf.forbidden = 'secrets "x" is forbidden: User "system:serviceaccount:ops:etcd" cannot get resource "secrets"'
    told = (await CredentialCache().renew(cluster, on(shelf), ())).faults[0]
    assert "not allowed to get Secret" in told
    assert told.endswith("--namespace=team-a --clusterrole=etcd-operator-secrets --serviceaccount=ops:etcd")
    shelf.forbidden = "a policy says no"
    assert (
        "the API server refused to get Secret c-authorities: "
        in (await CredentialCache().renew(cluster, on(shelf), ())).faults[0]
    )


async def test_members_that_run_are_not_given_certificates_that_nobody_trusts() -> None:
    """All that was issued is gone: they go on with what they have; when none of them runs, all begin anew."""
    cluster, shelf = a_cluster(tls=ISSUED), Shelf()
    trusted = (await CredentialCache().renew(cluster, on(shelf), ())).authorities
    shelf.secrets.clear()
    keys = await CredentialCache().renew(cluster, on(shelf), {trusted})
    assert "c-peer-tls" in keys.faults[0]
    assert not shelf.secrets
    for nobody in ((), {""}):
        assert (await CredentialCache().renew(cluster, on(shelf), nobody)).faults == ()
        shelf.secrets.clear()


async def test_a_secret_of_an_earlier_cluster_is_not_used() -> None:
    """The operator waits until the garbage collector has deleted the Secret of the earlier cluster."""
    cluster, shelf = a_cluster(tls=ISSUED), Shelf()
    before = a_cluster(tls=ISSUED)
    before.metadata.uid = "before"
    await CredentialCache().renew(before, on(shelf), ())
    for secret in shelf.secrets.values():
        set_controller(secret, before)
    assert (
        "belongs to another cluster of this name" in (await CredentialCache().renew(cluster, on(shelf), ())).faults[0]
    )
    shelf.secrets.clear()
    assert (await CredentialCache().renew(cluster, on(shelf), ())).faults == ()


async def test_nothing_of_a_key_is_shown() -> None:
    """The repr of read and of issued credentials shows no key."""
    cluster, shelf = a_cluster(tls=ISSUED, auth=AuthPolicy()), Shelf()
    keys = await CredentialCache().renew(cluster, on(shelf), ())
    assert keys.faults == ()
    assert keys.password not in repr(keys)
    assert "PRIVATE" not in f"{keys!r} {keys.client!r}"
