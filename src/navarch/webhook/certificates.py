"""`SecretCertificates`: the certificates of an operator's webhooks, in one Secret that all replicas share.

    serving = SecretCertificates(client, Certificates(), namespace="ops", names=["hook.ops.svc"], clock=client.clock)
    serving.on_change(registration.publish_soon)   # called with the new bundle
    await serving.start()                          # now there is a certificate
    listen(ssl=serving.ssl_context)
    serving.published(serving.ca_bundle)           # every configuration and CRD has it
    await serving.run()

Any replica creates the Secret and renews its content: the others see the change, or their write conflicts and they read
again. `rotation` decides; docs/designs/webhooks.md explains. Imports `cryptography`, the extra `webhook`.
"""

from __future__ import annotations

import asyncio
import copy
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch._base.tls import load_key_pair, pem_file
from navarch.certificates import KeyPair
from navarch.client import Client
from navarch.client.call import may_pass
from navarch.errors import AlreadyExists, ConfigError, Conflict, NavarchError, NotFound
from navarch.k8s.core.v1 import Secret
from navarch.observe.logs import logger
from navarch.observe.metrics import CertificateMetrics
from navarch.webhook.certificate_options import Certificates
from navarch.webhook.rotation import KEYS, Action, Keyring, RotationGoal, RotationStep, due_at, next_step

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

__all__ = ["SecretCertificates"]

_log = logger("navarch.webhook")

_RETRIES: Final = Backoff(initial=0.5, maximum=30.0, jitter=0.5)
_LONGEST_PAUSE: Final = 6 * 3600.0
"""How long at most until the time of day is compared again: it may jump."""
_SHORTEST_PAUSE: Final = 1.0
_LABEL: Final = "webhook.navarch.dev/certificates"
_UNRELATED: Final[tuple[Action, ...]] = ("create", "restore", "trust")
"""Steps after a Secret whose content is not to be used as it is."""
_DONE: Final[Mapping[Action, str]] = {
    "create": "created the certificates of the webhooks",
    "restore": "restored the certificates of the webhooks: their Secret was deleted or emptied",
    "trust": "added the former CA to the certificates of the webhooks: their Secret was replaced",
    "renew": "renewed the certificate of the webhooks",
    "publish": "added a new CA for the webhooks; it signs once all configurations and CRDs have it",
    "sign": "renewed the certificate of the webhooks with the new CA",
    "drop": "removed a former CA of the webhooks: all of its certificates have expired",
}


class SecretCertificates:
    """Serves the certificate of a Secret, and creates, renews and rotates it. `names` are DNS names and IP addresses.

    A new certificate is served to new connections at once if its CA has been in the Secret for `options.propagation`, as
    in every rotation. If not, because the Secret was replaced, the old one is served for that long, while the
    configurations get the new CA.
    """

    def __init__(
        self, client: Client, options: Certificates, *, namespace: str, names: Sequence[str], clock: Clock
    ) -> None:
        self.name = options.secret or f"{client.options.manager}-webhook-tls"
        """The name of the Secret."""
        self.namespace = namespace
        self.metrics = CertificateMetrics(self.name, self._expiries)
        self.ssl_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        """The context of the server. Its certificate changes for new connections."""
        self._client = client
        self._clock = clock
        self._propagation = options.propagation.total_seconds()
        hosts = tuple(dict.fromkeys((*names, *options.names)))
        self._goal = RotationGoal(name=client.options.manager, hosts=hosts, options=options)
        self._secret: Secret | None = None
        self._version = 0
        self._known: Keyring | None = None
        self._served: KeyPair | None = None
        self._served_until: datetime | None = None
        self._seen_since: dict[Certificate, float] = {}
        self._published = b""
        self._published_at = 0.0
        self._news = asyncio.Event()
        self._callbacks: list[Callable[[bytes], None]] = []

    @property
    def ca_bundle(self) -> bytes:
        """The CAs that clients have to trust, as PEM; empty before `start` has returned."""
        return self._known.bundle if self._known is not None else b""

    def on_change(self, callback: Callable[[bytes], None]) -> None:
        """Calls `callback` with each new `ca_bundle`."""
        self._callbacks.append(callback)

    def published(self, bundle: bytes) -> None:
        """Reports that every configuration and CRD has this bundle; `b""` if one has another, or nobody looks after them.

        The next CA signs only after this was reported for its bundle, and still holds after `options.propagation`.
        """
        if bundle != self._published:
            self._published, self._published_at = bundle, self._clock.monotonic()
            self._news.set()

    async def start(self) -> None:
        """Returns once there is a certificate to serve. Retries what may pass, and raises other errors."""
        delays = BackoffDelays(_RETRIES, self._client.rng)
        while self._served is None:
            try:
                self._saw(await self._read())
                await self._advance()
            except NavarchError as error:
                self.metrics.failed()
                if not may_pass(error):
                    raise
                await self._back_off(error, delays)

    async def refresh(self) -> None:
        """Reads the Secret and uses its content: `ca_bundle` is then not older than the Secret. Raises `NavarchError`."""
        self._saw(await self._read())
        await self._advance()

    async def run(self) -> None:
        """Watches the Secret and renews its content until cancelled. While the API server fails, the last good
        certificate is served.
        """
        await self.start()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(), name="webhook certificates: watch")
            group.create_task(self._maintain(), name="webhook certificates")

    async def _maintain(self) -> None:
        delays = BackoffDelays(_RETRIES, self._client.rng)
        while True:
            try:
                await self._advance()
            except NavarchError as error:
                self.metrics.failed()
                await self._back_off(error, delays)
                continue
            delays.reset()
            await self._wait(self._pause())

    async def _back_off(self, error: NavarchError, delays: BackoffDelays) -> None:
        delay = delays.next_delay()
        _log.warning(
            "cannot read or write the certificates of the webhooks", secret=self._where, error=error, again_in=delay
        )
        await self._clock.sleep(delay)

    async def _wait(self, seconds: float) -> None:
        try:
            await within(self._clock, seconds, self._news.wait())
        except TimeoutError:
            return

    async def _advance(self) -> None:
        """Makes every change of the Secret that is due, and uses its content."""
        while True:
            self._news.clear()
            found = Keyring.of(self._secret.data if self._secret is not None else None)
            self._refuse_foreign(found)
            published = self._is_published(found)
            step = next_step(found, self._known, self._goal, self._clock.now(), published=published)
            if found.certificate is not None and (step is None or step.action not in _UNRELATED):
                self._use(found, found.certificate)
            if step is None:
                return
            await self._write(step)

    def _refuse_foreign(self, found: Keyring) -> None:
        """Raises `ConfigError` for a Secret with other content than this class writes: it is not overwritten."""
        secret = self._secret
        if secret is None or not secret.data or found.signer is not None or _LABEL in secret.labels:
            return
        raise ConfigError(
            f"expected Secret {self._where} with the certificates of the webhooks, got one with other content; delete it, "
            "or name another one with Certificates(secret=...)"
        )

    def _is_published(self, found: Keyring) -> bool:
        return found.bundle == self._published and self._elapsed(self._published_at) >= self._propagation

    def _elapsed(self, since: float) -> float:
        return self._clock.monotonic() - since

    # The content of the Secret

    def _use(self, found: Keyring, certificate: Certificate) -> None:
        before, self._known = self.ca_bundle, found
        now = self._clock.monotonic()
        self._seen_since = {each: self._seen_since.get(each, now) for each in found.authorities}
        if found.serving is not None and found.serving != self._served and self._may_serve(found):
            self._serve(found.serving, certificate.not_valid_after_utc)
        if found.bundle != before:
            for callback in self._callbacks:
                callback(found.bundle)

    def _serve(self, pair: KeyPair, until: datetime) -> None:
        try:
            with pem_file(pair.certificate) as certificate, pem_file(pair.key) as key:
                load_key_pair(self.ssl_context, certificate, key)
        except OSError as error:
            _log.warning(
                "the new certificate cannot be used; the last good one is served", secret=self._where, error=error
            )
            return
        self._served, self._served_until = pair, until
        _log.info("serving a new certificate", secret=self._where, expires=until)

    def _may_serve(self, found: Keyring) -> bool:
        """Reports whether clients had the time to trust the new certificate, or the served one is of no use."""
        if self._served_until is None or self._clock.now() >= self._served_until:
            return True
        return self._settles_in(found) <= 0

    def _settles_in(self, found: Keyring) -> float:
        """Returns the seconds until the CA of the serving certificate has been in the Secret for long enough."""
        issuer = found.issuer
        return self._propagation - self._elapsed(self._seen_since[issuer]) if issuer is not None else 0.0

    def _pause(self) -> float:
        """Returns the seconds until something may be due."""
        known = self._known
        assert known is not None
        due, now = due_at(known, self._clock.now()), self._clock.now()
        pauses = [_LONGEST_PAUSE, (due - now).total_seconds() if due is not None else _LONGEST_PAUSE]
        if known.following is not None and known.bundle == self._published:
            pauses.append(self._propagation - self._elapsed(self._published_at))
        if known.serving not in (None, self._served):
            pauses.append(self._settles_in(known))
        return max(min(pauses), _SHORTEST_PAUSE)

    def _expiries(self) -> dict[str, float]:
        found = {"serving": self._served_until}
        if self._known is not None and self._known.signer is not None:
            found["ca"] = self._known.signer.certificate.not_valid_after_utc
        return {name: expiry.timestamp() for name, expiry in found.items() if expiry is not None}

    # The Secret

    @property
    def _where(self) -> str:
        return f"{self.namespace}/{self.name}"

    async def _read(self) -> Secret | None:
        try:
            return await self._client.get(Secret, self.name, namespace=self.namespace)
        except NotFound:
            return None

    async def _write(self, step: RotationStep) -> None:
        """Writes the Secret. After a conflict, the stored one decides."""
        try:
            self._saw(await self._written(step))
        except (AlreadyExists, Conflict, NotFound):
            self._saw(await self._read())
            return
        self.metrics.changed(step.action)
        _log.info(_DONE[step.action], secret=self._where)

    async def _written(self, step: RotationStep) -> Secret:
        if self._secret is None:
            made = Secret(name=self.name, labels={_LABEL: "true"}, type="kubernetes.io/tls", data=step.keyring.data)
            return await self._client.create(made, namespace=self.namespace)
        changed = copy.deepcopy(self._secret)
        others = {key: value for key, value in (changed.data or {}).items() if key not in KEYS}
        changed.data = others | step.keyring.data
        changed.labels = {**changed.labels, _LABEL: "true"}
        return await self._client.replace(changed, namespace=self.namespace)

    def _saw(self, secret: Secret | None, version: str | None = None) -> None:
        """Takes the Secret as it is stored; ignores an event of the watch that is older than what is known."""
        if secret is not None:
            version = secret.metadata.resource_version
        if version is not None:
            if int(version) < self._version:
                return
            self._version = int(version)
        self._secret = secret
        self._news.set()

    async def _follow(self) -> None:
        delays = BackoffDelays(_RETRIES, self._client.rng)
        while True:
            try:
                await self._watch(delays)
            except NavarchError as error:
                self.metrics.failed()
                await self._back_off(error, delays)

    async def _watch(self, delays: BackoffDelays) -> None:
        chosen = {"metadata.name": self.name}
        listed = await self._client.list(Secret, namespace=self.namespace, fields=chosen)
        self._saw(next(iter(listed), None), listed.resource_version)
        async with self._client.watch(
            Secret, namespace=self.namespace, fields=chosen, resource_version=listed.resource_version
        ) as changes:
            async for change in changes:
                delays.reset()
                if change.type == "DELETED":
                    self._saw(None, change.object.metadata.resource_version)
                else:
                    self._saw(change.object)
