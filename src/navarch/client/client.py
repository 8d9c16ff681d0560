"""`Client`: every verb of the API, typed by the class it is given."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from navarch._base.backoff import Backoff, BackoffDelays
from navarch._base.clock import Clock, SystemClock
from navarch._base.tasks import AsyncCloseable
from navarch.api import Dynamic, Kind
from navarch.client.call import ApiCaller
from navarch.client.config import Config, load
from navarch.client.pods import PodVerbs
from navarch.client.reads import Reads
from navarch.client.rest_client import FieldValidation, Options
from navarch.client.subresources import Subresources
from navarch.client.transport import Request, Transport
from navarch.client.writes import Updates, Writes
from navarch.errors import (
    ApiError,
    ConfigError,
    DeadlineError,
    Forbidden,
    InvalidValueError,
    NotFound,
    ServerError,
)

_CRD = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", plural="customresourcedefinitions", namespaced=False
)
_PACE = Backoff(initial=0.02, factor=1.5, maximum=0.5)


class CrdInstaller(Reads, Writes):
    """Installs CustomResourceDefinitions and waits until they are served."""

    async def install(self, crd: Mapping[str, Any], *, resource_version: str | None = None) -> None:
        """Applies a CustomResourceDefinition and returns when the server serves all of its versions; a dry run does not
        wait.

        Raises `DeadlineError` if that takes longer than the client's time limit, `Invalid` if the server refuses the
        definition, and, with a `resource_version`, `Conflict` if the definition has another version.
        """
        _require_definition(crd)
        applied = await self.apply(Dynamic(crd), force=True, resource_version=resource_version)
        if self.options.dry_run:
            return
        self.discovery.forget()
        limit = self._caller.clock.monotonic() + self.options.timeout
        for version in applied["spec"]["versions"]:
            if version["served"]:
                await self._until_served(applied, version["name"], limit)

    async def _until_served(self, crd: Dynamic, version: str, limit: float) -> None:
        """Polls until the definition is served; the server accepts it a moment before that."""
        spec = crd["spec"]
        kind = Kind(spec["group"], version, spec["names"]["kind"], plural=spec["names"]["plural"])
        request = Request(method="GET", path=kind.path(), query={"limit": "1"}, timeout=self.options.timeout)
        delays = BackoffDelays(_PACE, self._caller.rng)
        while not await self._is_served(request, kind):
            if self._caller.clock.monotonic() > limit:
                raise DeadlineError(
                    f"install {crd.name}: expected the server to serve {kind} within {self.options.timeout:g} s; "
                    f"{await self._obstacle(crd.name)}"
                )
            await self._caller.clock.sleep(delays.next_delay())

    async def _obstacle(self, name: str) -> str:
        """Returns the message of the definition's own conditions; if they cannot be read, the command that
        shows them.
        """
        try:
            conditions = (await self.get(_CRD, name)).get("status", {}).get("conditions", [])
        except ApiError:
            conditions = []
        broken = [condition for condition in conditions if condition["status"] == "False"]
        found = [f"{condition['type']} is False: {condition.get('message')}" for condition in broken]
        return "; ".join(found) or f"`kubectl describe crd {name}` shows its conditions"

    async def _is_served(self, request: Request, kind: Kind) -> bool:
        try:
            await self._caller.call(request, f"list {kind.resource}")
        except NotFound:
            return False
        except (
            Forbidden,
            ServerError,
        ):  # refused before the server looks for the kind, or objects wait for their converter
            return await self._is_discovered(kind)
        return True

    async def _is_discovered(self, kind: Kind) -> bool:
        """Returns True if discovery lists the kind: every user may read it, also without the right to list objects."""
        try:
            served = await self.discovery.resources(kind.api_version, fresh=True)
        except NotFound:
            return False
        return any(resource.kind.plural == kind.plural for resource in served)


def _require_definition(given: object) -> None:
    got = given.get("kind") if isinstance(given, Mapping) else given
    if got != _CRD.kind:
        raise InvalidValueError(
            f"expected a CustomResourceDefinition as a mapping, got {got!r}; write install(navarch.schema.crd(MyKind))"
        )


class Client(Updates, CrdInstaller, Subresources, PodVerbs, AsyncCloseable):
    """Talks to one API server through a transport. Use it in an `async with` block, which closes the transport.

    Raises errors of `navarch.errors` only: `ApiError` if the server refuses, `TransportError` if it sends no answer. A
    cancelled call leaves no connection behind; the server may or may not have executed a write.
    """

    def __init__(
        self,
        transport: Transport,
        options: Options = Options(),
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        caller = ApiCaller(transport, options.retry, clock or SystemClock(), rng or random.Random())  # noqa: S311 - jitter
        super().__init__(caller, options)

    def using(
        self,
        *,
        namespace: str | None = None,
        manager: str | None = None,
        dry_run: bool | None = None,
        timeout: float | None = None,
        field_validation: FieldValidation | None = None,
        page_size: int | None = None,
    ) -> Client:
        """Returns the same client with some options changed, over the same connections:
        `client.using(dry_run=True)`.
        """
        given: dict[str, Any] = {
            "namespace": namespace,
            "manager": manager,
            "dry_run": dry_run,
            "timeout": timeout,
            "field_validation": field_validation,
            "page_size": page_size,
        }
        twin = copy.copy(self)
        twin.options = replace(self.options, **{name: value for name, value in given.items() if value is not None})
        twin.discovery = self.discovery.within(twin.options.timeout)
        return twin

    def through(self, wrap: Callable[[Transport], Transport]) -> Client:
        """Returns the same client, with its transport wrapped by `wrap`: to count requests, to refuse them, to inject
        faults.
        """
        caller = self._caller
        return Client(wrap(caller.transport), self.options, clock=caller.clock, rng=caller.rng)

    @property
    def origin(self) -> str:
        """The source of the configuration, in a few words: "context 'dev' in ~/.kube/config"."""
        return self._caller.transport.origin

    @property
    def host(self) -> str:
        """The API server's host and port."""
        return self._caller.transport.host

    @property
    def clock(self) -> Clock:
        """The clock of its waits."""
        return self._caller.clock

    @property
    def rng(self) -> random.Random:
        """The random source of its jitter."""
        return self._caller.rng

    async def close(self) -> None:
        """Closes every connection; may be called twice."""
        await self._caller.transport.close()


def connect(config: Config | None = None) -> Client:
    """Returns a client for the cluster that kubectl would use, or for the one of `config`.

    Its namespace and time limit are those of the configuration; `connect().using(manager="me")` changes options. Opens
    no connection before the first call. Raises `ConfigError` if there is no usable configuration.
    """
    from navarch.client.http import HttpTransport  # noqa: PLC0415 - embedded clusters never need it

    config = config or load()
    if not isinstance(config, Config):
        raise ConfigError(f"expected a Config, got {type(config).__name__}; for a file write connect(load({config!r}))")
    options = Options(namespace=config.namespace, timeout=config.timeout)
    return Client(HttpTransport(config, SystemClock()), options)
