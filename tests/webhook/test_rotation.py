"""The rotation of the webhooks' certificates: what is decided about any content of the Secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from example_counts import examples
from navarch.certificates import hosts_of, is_signed_by, parse_certificates, renewal_time
from navarch.errors import ConfigError
from navarch.webhook.certificate_options import Certificates
from navarch.webhook.rotation import Action, Keyring, RotationGoal, due_at, next_step

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OPTIONS = Certificates(lifetime=30 * DAY, ca_lifetime=120 * DAY)
GOAL = RotationGoal(name="tested", hosts=("tested-webhook.ops.svc",), options=OPTIONS)


def settled(
    data: Mapping[str, bytes] | None,
    now: datetime = NOW,
    *,
    known: Keyring | None = None,
    goal: RotationGoal = GOAL,
    published: bool = False,
) -> tuple[Keyring, list[Action]]:
    """The content after every step that is due, and those steps."""
    found, steps = Keyring.of(data), list[Action]()
    while (step := next_step(found, known, goal, now, published=published)) is not None:
        steps.append(step.action)
        assert len(steps) < 5, f"expected an end of the steps, got {steps}"
        assert Keyring.of(step.keyring.data).data == step.keyring.data, (
            "expected that a written Secret is read unchanged"
        )
        found, published = step.keyring, False
    return found, steps


CREATED, _ = settled(None)
assert CREATED.signer is not None
OTHER, _ = settled(None)


def test_first_replica_creates_a_ca_and_a_certificate() -> None:
    """Everything at once, for the wanted names; then nothing is due until the certificate is."""
    found, steps = settled(None)
    assert steps == ["create"]
    assert found.certificate is not None
    assert tuple(hosts_of(found.certificate)) == GOAL.hosts
    assert is_signed_by([found.certificate], parse_certificates(found.bundle))
    assert settled(found.data, renewal_time(found.certificate) - HOUR)[1] == []
    assert due_at(found, NOW) == renewal_time(found.certificate)


def test_certificate_is_renewed_by_the_same_ca_after_two_thirds_of_its_lifetime() -> None:
    """The bundle does not change, so nothing has to be published; what was served before is remembered until it expires."""
    found, steps = settled(CREATED.data, NOW + 20 * DAY)
    assert steps == ["renew"]
    assert found.bundle == CREATED.bundle
    assert [*found.past_certificates] == [CREATED.certificate]
    assert found.certificate is not None
    assert found.certificate.not_valid_after_utc == NOW + 50 * DAY
    assert settled(found.data, NOW + 30 * DAY + 3 * HOUR)[1] == ["drop"]


def test_next_ca_is_published_before_it_signs_and_the_old_one_outlives_its_certificates() -> None:
    """The bundle changes twice: when the next CA comes and when the old one goes."""
    late = NOW + 80 * DAY
    found, steps = settled(CREATED.data, late)
    assert steps == ["create"] or steps[-1] == "publish", steps
    renewed = settled(CREATED.data, late - 61 * DAY)[0]
    renewed = settled(settled(renewed.data, late - 40 * DAY)[0].data, late - 20 * DAY)[0]
    found, steps = settled(renewed.data, late)
    assert "publish" in steps
    assert found.following is not None
    assert len(parse_certificates(found.bundle)) == 2
    assert settled(found.data, late + DAY)[1] == []
    signed, steps = settled(found.data, late + DAY, published=True)
    assert steps == ["sign"]
    assert signed.bundle == found.bundle
    assert signed.signer is not None
    assert signed.signer.certificate == found.following.certificate
    assert signed.following is None
    assert "next-ca.key" not in signed.data
    assert found.certificate is not None
    end = found.certificate.not_valid_after_utc
    assert CREATED.signer is not None
    assert CREATED.signer.certificate in signed.authorities
    later = settled(signed.data, end + HOUR)[0]
    assert CREATED.signer.certificate in later.authorities
    later = settled(later.data, end + 3 * HOUR)[0]
    assert [*parse_certificates(later.bundle)] == [signed.signer.certificate]


BROKEN: dict[str, tuple[dict[str, bytes | None], list[Action]]] = {
    "another key": ({"tls.key": OTHER.data["tls.key"]}, ["renew"]),
    "malformed key": ({"tls.key": b"rubbish"}, ["renew"]),
    "no certificate": ({"tls.crt": None}, ["renew"]),
    "certificate of another CA": ({"tls.crt": OTHER.data["tls.crt"], "tls.key": OTHER.data["tls.key"]}, ["renew"]),
    "CA with another key": ({"ca.key": OTHER.data["ca.key"]}, ["publish"]),
    "CA without a key": ({"ca.key": None}, ["publish"]),
    "another CA": ({"ca.crt": OTHER.data["ca.crt"], "ca.key": OTHER.data["ca.key"]}, ["renew"]),
    "malformed past": ({"past-ca.crt": b"rubbish", "past-tls.crt": b"\0"}, []),
    "malformed next CA": ({"next-ca.crt": b"rubbish", "next-ca.key": b""}, []),
    "nothing": (dict.fromkeys(CREATED.data), ["create"]),
    "CA and certificate malformed": ({"ca.crt": b"", "tls.crt": b""}, ["create"]),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_part_is_replaced_and_the_others_are_kept(fault: str) -> None:
    """A replica that has just started knows nothing but the Secret; afterwards it serves what the bundle trusts."""
    changes, expected = BROKEN[fault]
    data = {key: each for key, each in {**CREATED.data, **changes}.items() if each is not None}
    found, steps = settled(data, NOW + DAY)
    assert steps == expected
    assert found.is_usable(NOW + DAY)
    assert found.certificate is not None
    assert is_signed_by([found.certificate], parse_certificates(found.bundle))


def test_lost_key_of_the_ca_leads_to_the_next_one() -> None:
    """What it signed is served, and trusted, until every configuration has the next CA."""
    data = {key: each for key, each in CREATED.data.items() if key != "ca.key"}
    found, _ = settled(data)
    assert found.serving == CREATED.serving
    assert found.signer is None
    assert {*CREATED.authorities} < {*found.authorities}
    signed, steps = settled(found.data, published=True)
    assert steps == ["sign"]
    assert signed.serving != CREATED.serving
    assert {*CREATED.authorities} < {*signed.authorities}


def test_replica_restores_what_was_deleted() -> None:
    """From its memory: no client has to trust anything new."""
    for data in (None, {}, {"tls.crt": b"", "tls.key": b""}, {"ca.crt": b"rubbish"}):
        found, steps = settled(data, known=CREATED)
        assert (steps, found.data) == (["restore"], CREATED.data)
    assert settled(None, NOW + 200 * DAY, known=CREATED)[1] == ["create"]


def test_ca_of_a_replaced_secret_stays_trusted() -> None:
    """A replica that serves a certificate of before adds its CA; nobody has to serve another certificate at once."""
    found, steps = settled(OTHER.data, known=CREATED)
    assert steps == ["trust"]
    assert {*found.authorities} == {*OTHER.authorities, *CREATED.authorities}
    assert found.serving == OTHER.serving
    assert settled(found.data, NOW + DAY, known=CREATED)[1] == []
    gone = settled(settled(found.data, NOW + 20 * DAY, known=found)[0].data, NOW + 33 * DAY)[0]
    assert {*gone.authorities} == {*OTHER.authorities}


def test_replicas_that_want_different_names_do_not_take_turns() -> None:
    """In a rolling update: the certificate has the names of both."""
    goals = [replace(GOAL, hosts=hosts) for hosts in (("old.ops.svc", "old"), ("new.ops.svc",))]
    found, steps = CREATED, list[Action]()
    for goal in goals * 2:
        found, more = settled(found.data, goal=goal)
        steps += more
    assert steps == ["renew", "renew"]
    assert found.certificate is not None
    assert {*hosts_of(found.certificate)} == {*GOAL.hosts, "old.ops.svc", "old", "new.ops.svc"}


def test_certificate_that_ends_with_its_ca_is_not_renewed_in_vain() -> None:
    """The next CA was never published: only time is left, and no write changes that."""
    found, now, writes = CREATED, NOW, 0
    for _ in range(1000):
        found, steps = settled(found.data, now)
        writes += len(steps)
        assert writes < 20, "expected few writes"
        due = due_at(found, now)
        if due is None or due > NOW + 119 * DAY:
            break
        now = due
    assert found.following is not None
    late, steps = settled(found.data, NOW + 121 * DAY)
    assert steps[0] == "create"
    assert late.signer is not None
    assert late.signer.certificate == found.following.certificate


def test_clocks_that_are_an_hour_off_do_not_matter() -> None:
    """A certificate of a replica whose clock is ahead is valid for an API server whose clock is behind."""
    found, _ = settled(None, NOW + HOUR)
    for certificate in (*found.authorities, *parse_certificates(found.data["tls.crt"])):
        assert certificate.not_valid_before_utc <= NOW - HOUR
    for clock in (-HOUR, HOUR):
        assert settled(found.data, NOW + clock)[1] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"lifetime": timedelta()},
        {"lifetime": 400 * DAY},
        {"propagation": 100 * DAY},
        {"propagation": -DAY},
    ],
)
def test_impossible_lifetimes_are_refused(wrong: dict[str, Any]) -> None:
    """With both values."""
    with pytest.raises(ConfigError, match="expected"):
        Certificates(**wrong)


PARTS = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.sampled_from([*CREATED.data.values(), *OTHER.data.values(), CREATED.bundle + OTHER.bundle]),
)
KEYS = st.sampled_from(
    ["ca.crt", "ca.key", "tls.crt", "tls.key", "next-ca.crt", "next-ca.key", "past-ca.crt", "past-tls.crt"]
)


@examples(150, deadline=None)
@given(
    changes=st.dictionaries(KEYS, PARTS, max_size=6),
    days=st.integers(min_value=0, max_value=200),
    known=st.sampled_from([None, CREATED, OTHER]),
    published=st.booleans(),
)
def test_any_content_leads_to_a_trusted_certificate(
    changes: dict[str, bytes | None], days: int, known: Keyring | None, published: bool
) -> None:
    """In a few steps, whatever somebody has written into the Secret."""
    data = {key: each for key, each in {**CREATED.data, **changes}.items() if each is not None}
    now = NOW + days * DAY
    found, _ = settled(data, now, known=known, published=published)
    assert found.is_usable(now)
    assert found.certificate is not None
    trusted = parse_certificates(found.bundle)
    assert is_signed_by([found.certificate], trusted)
    if known is not None and known.certificate is not None and known.is_usable(now):
        assert is_signed_by([known.certificate], trusted)


class Replicas(RuleBasedStateMachine):
    """Replicas with different clocks and memories that change one Secret, while configurations get its bundle one by one.

    The adversary: a replica may serve any certificate that was ever in the Secret.
    """

    configurations: list[bytes]
    content: Keyring | None

    @initialize()
    def begin(self) -> None:
        self.now, self.content, self.configurations = NOW, None, [b"", b"", b""]
        self.served: set[x509.Certificate] = set()
        self.past: list[Keyring] = []
        self.step(0, 0, fresh=True)
        for place in range(3):
            self.publish(place)

    @rule(hours=st.integers(min_value=1, max_value=30 * 24))
    def pass_time(self, hours: int) -> None:
        self.now += hours * HOUR

    @rule(place=st.integers(min_value=0, max_value=2))
    def publish(self, place: int) -> None:
        """The registration is late for some configurations."""
        if self.content is not None:
            self.configurations[place] = self.content.bundle

    @rule(
        clock=st.integers(min_value=-60, max_value=60),
        memory=st.integers(min_value=0, max_value=5),
        fresh=st.booleans(),
    )
    def step(self, clock: int, memory: int, *, fresh: bool) -> None:
        """A replica writes: one that has just started, or one that remembers what was there."""
        known = None if fresh or not self.past else self.past[-1 - memory % len(self.past)]
        found = self.content or Keyring()
        published = all(each == found.bundle for each in self.configurations)
        now = self.now + timedelta(minutes=clock)
        step = next_step(found, known, GOAL, now, published=published)
        if step is not None:
            self.content = step.keyring
            self.past.append(step.keyring)
            assert step.keyring.certificate is not None
            self.served.add(step.keyring.certificate)
            if step.action == "create":  # there was nothing usable: it is served before it is published
                self.configurations = [step.keyring.bundle] * 3

    @precondition(lambda self: self.content is not None and self.content.is_usable(self.now + HOUR))
    @rule(data=st.sampled_from([None, {}, {"ca.crt": b"rubbish"}]))
    def lose_the_secret(self, data: dict[str, bytes] | None) -> None:
        """A replica that has seen the last content is there; one that has not might be faster only outside of this test."""
        step = next_step(Keyring.of(data), self.content, GOAL, self.now, published=False)
        assert step is not None
        assert step.action == "restore"

    @invariant()
    def every_certificate_that_may_be_served_is_trusted(self) -> None:
        for bundle in self.configurations:
            trusted = parse_certificates(bundle)
            for certificate in self.served:
                if bundle and self.now < certificate.not_valid_after_utc:
                    assert is_signed_by([certificate], trusted), "expected a bundle that trusts every certificate"


Replicas.TestCase.settings = examples(60, stateful_step_count=40, deadline=None)
TestReplicas = Replicas.TestCase
