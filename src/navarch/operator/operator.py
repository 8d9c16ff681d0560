"""`Operator`: controllers, election, events, health and metrics as one process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import iscoroutinefunction, isfunction
from typing import Any, TypeVar, get_args

from navarch.api import Object
from navarch.api.names import DNS_SUBDOMAIN
from navarch.cache import Cached, Namespaces
from navarch.client import Client
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.declared import ControllerOptions, Declared, Watchable
from navarch.controller.election import ElectionOptions
from navarch.controller.triggers import Mapper, Predicate, wanted_change
from navarch.errors import DefinitionError
from navarch.operator.crds import CrdPolicy
from navarch.operator.endpoints import Endpoints
from navarch.operator.permissions import Uses

__all__ = ["Background", "Operator"]

P = TypeVar("P", bound=Object)
R = TypeVar("R", bound=Awaitable[Result | None] | Result | None)

Background = Callable[[Client], Awaitable[None]]
"""Something that runs beside the controllers, for example to ask another system and `trigger` what it concerns."""


class Operator:
    """Declares controllers, and runs them. It can be run several times at once, as in tests of several replicas.

    `namespaces` are names or patterns, all if none are given; `operator.namespaces.change(...)` changes them at run time.
    `crds` says what happens to the definitions of the kinds it reconciles when it starts: they are installed, verified or
    ignored. With `election` (on by default) several replicas share one Lease and one of them works. `endpoints` are
    served if given. The permissions it needs follow from what its controllers declare; for a kind of which it needs less,
    or more (by `ctx.patch`, `ctx.delete` or `ctx.client`), `uses` lists them exactly. When it is told to stop, what is under
    way has `drain_seconds` to finish.
    """

    def __init__(
        self,
        name: str,
        *,
        namespaces: tuple[str, ...] = (),
        crds: CrdPolicy = "install",
        election: ElectionOptions | bool = True,
        endpoints: Endpoints | None = None,
        uses: tuple[Uses, ...] = (),
        check_permissions: bool = True,
        drain_seconds: float = 30.0,
    ) -> None:
        DNS_SUBDOMAIN.check(name, where="the name of an operator")
        _refuse_text(namespaces)
        _refuse_unknown(crds)
        _refuse_single(uses)
        self.name = name
        self.namespaces = Namespaces(*namespaces)
        self.crds: CrdPolicy = crds
        self.election = ElectionOptions(name=name) if election is True else election or None
        self.endpoints = endpoints
        self.uses = uses
        self.check_permissions = check_permissions
        self.drain_seconds = drain_seconds
        self.controllers: list[Declared[Any, Any]] = []
        self.backgrounds: list[Background] = []
        self.reporters: dict[str, str] = {}
        """By the name of a controller, who its events are from, where that is not this operator."""

    def __repr__(self) -> str:
        return (
            f"<Operator {self.name}: {', '.join(declared.name for declared in self.controllers) or 'no controllers'}>"
        )

    def controller(
        self,
        primary: type[P] | Cached[P],
        *,
        owns: tuple[Watchable, ...] = (),
        watches: Mapping[Watchable, Mapper] | None = None,
        reads: tuple[Watchable, ...] = (),
        when: Predicate = wanted_change,
        until_gone: bool = False,
        concurrency: int = 16,
        timeout: float = 300.0,
        name: str = "",
    ) -> Callable[[Callable[[P, Context], R]], Declared[P, R]]:
        """Declares that the decorated function reconciles objects of that class.

        A change of an object in `owns` triggers the object that controls it, one in `watches` those that the mapping names,
        one in `reads` those whose last reconcile got or listed it. All that is declared is kept in the cache. See `ControllerOptions` for the rest.
        """
        _refuse_function(primary)
        options = ControllerOptions(
            owns=owns,
            watches=watches or {},
            reads=reads,
            when=when,
            until_gone=until_gone,
            concurrency=concurrency,
            timeout=timeout,
            name=name,
        )

        def declare(function: Callable[[P, Context], R]) -> Declared[P, R]:
            declared = Declared(primary, function, options)
            declared.everything()
            self._refuse_second(declared.name)
            self.controllers.append(declared)
            return declared

        return declare

    def background(self, function: Background) -> Background:
        """Runs the function beside the controllers while this process leads; it is restarted if it fails.

        Raises `DefinitionError` for a function that is no coroutine: it would block all others.
        """
        _refuse_plain(function)
        self.backgrounds.append(function)
        return function

    async def serve(self, client: Client) -> None:
        """Runs until it is cancelled; returns when everything has been finished and given back."""
        from navarch.operator.process import serve  # noqa: PLC0415 - it knows operators, and is not needed to declare one

        await serve(client, self)

    def run(self) -> None:
        """Runs as the whole program, on the cluster that kubectl would talk to, until SIGTERM or SIGINT."""
        from navarch.operator.program import run  # noqa: PLC0415 - as above

        run(self)

    def _refuse_second(self, name: str) -> None:
        if any(known.name == name for known in self.controllers):
            raise DefinitionError(
                f"operator {self.name}: expected one controller {name!r}, got a second; give it a name="
            )


def _refuse_text(namespaces: object) -> None:
    """One text where several are expected would be taken letter by letter."""
    if isinstance(namespaces, str):
        raise DefinitionError(
            f"expected a tuple of names and patterns for namespaces, got {namespaces!r}; write "
            f"namespaces=({namespaces!r},)"
        )


def _refuse_unknown(crds: object) -> None:
    if crds not in get_args(CrdPolicy):
        raise DefinitionError(f"expected crds to be one of {', '.join(get_args(CrdPolicy))}, got {crds!r}")


def _refuse_single(uses: object) -> None:
    if isinstance(uses, Uses):
        raise DefinitionError(f"expected a tuple of uses, got {uses!r}; write uses=(Uses(...),)")


def _refuse_plain(background: object) -> None:
    if isfunction(background) and not iscoroutinefunction(background):
        name = background.__name__
        raise DefinitionError(
            f"expected a coroutine to run in the background, got the function {name}; write async def"
        )


def _refuse_function(primary: object) -> None:
    """Without parentheses the decorator would be given the reconciler, and declare nothing."""
    if isfunction(primary):
        raise DefinitionError(
            f"expected a class to reconcile, got the function {primary.__name__}; write "
            f"@operator.controller(Memcached) above it, with your class"
        )
