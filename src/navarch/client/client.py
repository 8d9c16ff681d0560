"""`Client`: every verb of the API, typed by the class it is given."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from navarch._base.clock import Clock, SystemClock
from navarch._base.closing import Closing
from navarch.client.call import Caller
from navarch.client.config import Config, load
from navarch.client.core import FieldValidation, Options
from navarch.client.install import Installs
from navarch.client.pods import Pods
from navarch.client.subresources import Subresources
from navarch.client.transport import Transport
from navarch.client.updates import Updates
from navarch.errors import ConfigError

__all__ = ["Client", "connect"]


class Client(Updates, Installs, Subresources, Pods, Closing):
    """Talks to one API server through a transport. Use it in an `async with` block, which closes the transport.

    Raises errors of `navarch.errors` only: `ApiError` when the server says no, `TransportError` when it says nothing.
    A call that is cancelled leaves no connection behind; whether a write was carried out is then unknown.
    """

    def __init__(
        self,
        transport: Transport,
        options: Options = Options(),
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        caller = Caller(transport, options.retry, clock or SystemClock(), rng or random.Random())  # noqa: S311 - jitter
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
        """The same client with some options changed, over the same connections: `client.using(dry_run=True)`."""
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
        """The same client, with its transport wrapped by `wrap`: to count requests, to refuse them, to inject faults."""
        caller = self._caller
        return Client(wrap(caller.transport), self.options, clock=caller.clock, rng=caller.rng)

    @property
    def origin(self) -> str:
        """Where it goes, in a few words: "context 'dev' in ~/.kube/config"."""
        return self._caller.transport.origin

    @property
    def host(self) -> str:
        """The API server's host and port."""
        return self._caller.transport.host

    @property
    def clock(self) -> Clock:
        """The clock that its waits go by."""
        return self._caller.clock

    @property
    def rng(self) -> random.Random:
        """Where its jitter comes from."""
        return self._caller.rng

    async def close(self) -> None:
        """Closes every connection; may be called twice."""
        await self._caller.transport.close()


def connect(config: Config | None = None) -> Client:
    """A client for the cluster that kubectl would talk to, or for the one `config` names.

    Its namespace and time limit are those of the configuration; `connect().using(manager="me")` changes options.
    Nothing is opened before the first call. Raises `ConfigError` if there is no usable configuration.
    """
    from navarch.client.http import HttpTransport  # noqa: PLC0415 - embedded clusters never need it

    config = config or load()
    if not isinstance(config, Config):
        raise ConfigError(f"expected a Config, got {type(config).__name__}; for a file write connect(load({config!r}))")
    options = Options(namespace=config.namespace, timeout=config.timeout)
    return Client(HttpTransport(config, SystemClock()), options)
