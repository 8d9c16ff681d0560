"""The webhooks' certificates in their Secret: replicas on an embedded cluster, in virtual time."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography import x509

from certificates import handshake, sign
from navarch._base.clock import Clock
from navarch.certificates import is_signed_by, parse_certificates
from navarch.client import Client, MergePatch, Request
from navarch.errors import ConfigError, Forbidden, NavarchError, Unavailable
from navarch.k8s.core.v1 import Secret
from navarch.observe.metrics import MetricSource
from navarch.testing import Cluster, faulty
from navarch.webhook.certificate_options import Certificates
from navarch.webhook.certificates import SecretCertificates
from navarch.webhook.rotation import Keyring, RotationGoal, next_step

HOST = "tested-webhook.default.svc"
NAME = "tested-webhook-tls"
DAY = 86_400.0
OPTIONS = Certificates(lifetime=timedelta(days=3), ca_lifetime=timedelta(days=12))


def certificates(cluster: Cluster, client: Client | None = None, clock: Clock | None = None) -> SecretCertificates:
    own = (client or cluster.client).using(manager="tested")
    return SecretCertificates(own, OPTIONS, namespace="default", names=[HOST], clock=clock or own.clock)


@asynccontextmanager
async def running(*replicas: SecretCertificates) -> AsyncIterator[None]:
    """Replicas that have started, and run until the block ends."""
    async with asyncio.TaskGroup() as group:
        for started in [group.create_task(each.start()) for each in replicas]:
            await started
        tasks = [group.create_task(each.run()) for each in replicas]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


def shown(cluster: Cluster, replica: SecretCertificates, trusted: bytes = b"") -> x509.Certificate:
    """The certificate that a new connection gets; it must be valid and trusted."""
    return handshake(replica.ssl_context, trusted or replica.ca_bundle, HOST, at=cluster.client.clock.now())


async def serves(
    cluster: Cluster, replica: SecretCertificates, holds: Callable[[x509.Certificate], Any], what: str
) -> None:
    async def look() -> x509.Certificate:
        return shown(cluster, replica)

    await cluster.eventually(look, holds, what=f"a replica that serves {what}")


async def stored(cluster: Cluster) -> dict[str, bytes]:
    return (await cluster.get(Secret, NAME)).data or {}


def counted(source: MetricSource, name: str) -> dict[tuple[str, ...], float]:
    found = (each for each in source.samples() if each.family.name == name)
    return {each.labels: each.value for each in found if isinstance(each.value, int | float)}


def changes(*replicas: SecretCertificates) -> dict[str, float]:
    """How often the replicas changed the Secret, by action."""
    total: dict[str, float] = {}
    for replica in replicas:
        for (_, action), count in counted(replica.metrics, "navarch_webhook_certificate_changes_total").items():
            total[action] = total.get(action, 0) + count
    return total


async def test_first_replica_creates_the_secret_and_all_serve_it(cluster: Cluster) -> None:
    """It is created exactly once, also if all start at the same moment."""
    replicas = [certificates(cluster) for _ in range(3)]
    async with running(*replicas):
        secret = await cluster.get(Secret, NAME)
        assert secret.type == "kubernetes.io/tls"
        assert len({shown(cluster, each) for each in replicas}) == 1
        assert {each.ca_bundle for each in replicas} == {Keyring.of(secret.data).bundle}
    assert changes(*replicas) == {"create": 1}
    made = cluster.audit.records(verb="create", resource="secrets", namespace="default")
    assert [each.code for each in made].count(201) == 1


async def test_certificate_is_renewed_once_and_served_at_once_by_all(cluster: Cluster) -> None:
    """After two thirds of its lifetime, by the same CA; the loser of the race reads the winner's."""
    one, two = certificates(cluster), certificates(cluster)
    bundles = list[bytes]()
    async with running(one, two):
        one.on_change(bundles.append)
        first = shown(cluster, one)
        await cluster.pass_time(1.9 * DAY)
        assert shown(cluster, one) == first
        await cluster.pass_time(0.2 * DAY)
        for each in (one, two):
            await serves(cluster, each, lambda found: found != first, "a new certificate")
        assert shown(cluster, one) == shown(cluster, two)
        assert shown(cluster, one, trusted=one.ca_bundle) != first
    assert changes(one, two) == {"create": 1, "renew": 1}
    assert bundles == []


async def test_ca_is_rotated_without_a_moment_of_distrust(cluster: Cluster) -> None:
    """The next CA signs only after its bundle was published for a minute; the old one goes when its certificates expired."""
    one, two = certificates(cluster), certificates(cluster)
    bundles = list[bytes]()
    one.on_change(bundles.append)
    async with running(one, two):
        old = parse_certificates(one.ca_bundle)
        for _ in range(9):
            await cluster.pass_time(DAY)
        await cluster.eventually(lambda: stored(cluster), lambda data: "next-ca.crt" in data, what="a next CA")
        both = Keyring.of(await stored(cluster)).bundle
        assert bundles[-1] == one.ca_bundle == both
        for each in (one, two):
            assert is_signed_by([shown(cluster, each)], old)
        await cluster.pass_time(3600)
        assert is_signed_by([shown(cluster, one)], old), "expected nothing to be signed before it is published"

        two.published(both)
        await cluster.pass_time(50)
        two.published(b"")
        two.published(both)
        await cluster.pass_time(50)
        assert is_signed_by([shown(cluster, one)], old), "expected a minute without interruption"
        await cluster.pass_time(20)
        for each in (one, two):
            await serves(cluster, each, lambda found: not is_signed_by([found], old), "a certificate of the next CA")
            assert each.ca_bundle == both
        assert "next-ca.key" not in await stored(cluster)
        for _ in range(4):
            await cluster.pass_time(DAY)
        await cluster.eventually(lambda: stored(cluster), lambda data: "past-ca.crt" not in data, what="no past CA")
        await serves(cluster, one, lambda _: len(parse_certificates(one.ca_bundle)) == 1, "with one CA")
        assert old[0] not in parse_certificates(one.ca_bundle)
    done = changes(one, two)
    assert (done["publish"], done["sign"]) == (1, 1)


FAULTS: dict[str, dict[str, bytes] | None] = {
    "deleted": None,
    "emptied": {"ca.crt": b"", "ca.key": b"", "tls.crt": b"", "tls.key": b""},
    "the key of another certificate": {"tls.key": sign("other").key},
    "the CA's key is lost": {"ca.key": b""},
    "malformed": {"ca.crt": b"rubbish", "tls.crt": b"-----BEGIN"},
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_secret_that_breaks_is_repaired_and_clients_notice_nothing(cluster: Cluster, fault: str) -> None:
    """Whoever trusts the bundle of before trusts what is served."""
    one, two = certificates(cluster), certificates(cluster)
    async with running(one, two):
        before, trusted = await stored(cluster), one.ca_bundle
        change = FAULTS[fault]
        if change is None:
            await cluster.delete(Secret, NAME)
        else:
            await cluster.client.patch(
                Secret, NAME, MergePatch({"data": {key: _base64(each) for key, each in change.items()}})
            )
        await cluster.eventually(
            lambda: stored(cluster),
            lambda data: Keyring.of(data).is_usable(cluster.client.clock.now()) and _is_whole(data),
            what="a repaired Secret",
        )
        await cluster.pass_time(5)
        for each in (one, two):
            shown(cluster, each, trusted=trusted)
        after = await stored(cluster)
        assert (after["tls.crt"] == before["tls.crt"]) is (fault != "the key of another certificate")
    assert sum(changes(one, two).values()) == 2


def _is_whole(data: dict[str, bytes]) -> bool:
    """Whether a CA can sign, or the next one is on its way."""
    found = Keyring.of(data)
    return found.signer is not None or found.following is not None


def _base64(part: bytes) -> str:
    return base64.b64encode(part).decode()


async def test_replaced_secret_is_served_after_its_ca_could_be_published(cluster: Cluster) -> None:
    """Until then the old certificate is served, and its CA is added to the Secret."""
    one = certificates(cluster)
    goal = RotationGoal(name="tested", hosts=(HOST,), options=OPTIONS)
    step = next_step(Keyring(), None, goal, cluster.client.clock.now(), published=False)
    assert step is not None
    other = step.keyring
    async with running(one):
        first = shown(cluster, one)
        found = await cluster.get(Secret, NAME)
        found.data = other.data
        await cluster.client.replace(found)
        await cluster.eventually(lambda: stored(cluster), lambda data: "past-ca.crt" in data, what="both CAs")
        await cluster.pass_time(50)
        assert shown(cluster, one) == first
        assert len(parse_certificates(one.ca_bundle)) == 2
        await cluster.pass_time(20)
        await serves(cluster, one, lambda shown: shown == other.certificate, "the new certificate")
        handshake(one.ssl_context, other.bundle, HOST)


async def test_last_good_certificate_is_served_while_the_api_server_fails(cluster: Cluster) -> None:
    """Errors are counted, and the renewal is made up for as soon as it answers again."""
    down = False

    def fault(request: Request) -> NavarchError | None:
        return Unavailable("the API server restarts", code=503) if down else None

    one = certificates(cluster, faulty(cluster.client, fault))
    async with running(one):
        first = shown(cluster, one)
        await cluster.pass_time(1.96 * DAY)
        down = True
        await cluster.pass_time(3600)
        assert shown(cluster, one) == first
        errors = counted(one.metrics, "navarch_webhook_certificate_errors_total")
        assert errors[NAME,] > 0
        down = False
        await cluster.pass_time(60)
        await serves(cluster, one, lambda found: found != first, "a new certificate")


class ShiftedClock:
    """A clock that is wrong by so much."""

    def __init__(self, clock: Clock, shift: timedelta) -> None:
        self._clock, self._shift = clock, shift
        self.monotonic, self.sleep, self.liveness = clock.monotonic, clock.sleep, clock.liveness

    def now(self) -> datetime:
        return self._clock.now() + self._shift


async def test_clocks_of_replicas_may_be_an_hour_off(cluster: Cluster) -> None:
    """What one issues is valid for the others and for the API server, and they do not undo each other's work."""
    hour, right = timedelta(hours=1), cluster.client.clock
    fast, slow = (certificates(cluster, clock=ShiftedClock(right, shift)) for shift in (hour, -hour))
    async with running(fast, slow):
        for each in (fast, slow):
            shown(cluster, each)
            handshake(each.ssl_context, each.ca_bundle, HOST, at=right.now() - hour)
        await cluster.pass_time(2.2 * DAY)
        await serves(
            cluster, slow, lambda found: found.not_valid_after_utc > right.now() + timedelta(days=2), "a new one"
        )
    assert changes(fast, slow) == {"create": 1, "renew": 1}


async def test_secret_of_somebody_else_is_not_overwritten(cluster: Cluster) -> None:
    """The error names it and the remedy."""
    await cluster.create(Secret(name=NAME, data={"password": b"hunter2"}))
    with pytest.raises(ConfigError, match=f"expected Secret default/{NAME} .* other content; delete it") as caught:
        await certificates(cluster).start()
    assert "hunter2" not in str(caught.value)
    assert await stored(cluster) == {"password": b"hunter2"}


async def test_missing_permission_is_raised_at_the_start(cluster: Cluster) -> None:
    """It would not pass by waiting."""
    with pytest.raises(Forbidden):
        await certificates(cluster, cluster.client_as("nobody")).start()


async def test_expiry_is_a_metric_and_keys_are_never_logged(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """Both the CA's and that of the certificate that is served."""
    caplog.set_level(logging.DEBUG)
    one = certificates(cluster)
    async with running(one):
        await cluster.pass_time(2.2 * DAY)
        await cluster.delete(Secret, NAME)
        await cluster.eventually(lambda: stored(cluster), bool, what="the Secret")
        expiry = counted(one.metrics, "navarch_webhook_certificate_expiry_timestamp_seconds")
        assert expiry[NAME, "serving"] == shown(cluster, one).not_valid_after_utc.timestamp()
        assert expiry[NAME, "ca"] == parse_certificates(one.ca_bundle)[0].not_valid_after_utc.timestamp()
        data = await stored(cluster)
    own = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("navarch"))
    assert "renewed the certificate of the webhooks" in own
    for key in ("ca.key", "tls.key"):
        for line in data[key].decode().splitlines():
            assert line not in caplog.text
