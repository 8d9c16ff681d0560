"""`DeclaredOperator`: the controllers and the options of an operator, before anything runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from inspect import iscoroutinefunction, isfunction
from typing import Any, TypeVar, get_args

from navarch._base.backoff import Backoff
from navarch.api import Object
from navarch.api.names import DNS_SUBDOMAIN
from navarch.cache import Cached, Namespaces
from navarch.client import Client
from navarch.client.rest_client import LabelSelector
from navarch.client.target import Readable
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.declaration import ControllerOptions, Declared, Watchable, kinds_of, mappers_of
from navarch.controller.election import ElectionOptions
from navarch.controller.triggers import Mapper, Predicate, wanted_change
from navarch.errors import DefinitionError
from navarch.operator.endpoints import Endpoints
from navarch.operator.roles import CrdPolicy, Uses, WebhookPolicy
from navarch.operator.webhook_server import WebhookServer, WebhookServing
from navarch.queue import RECONCILE_BACKOFF
from navarch.webhook.conversion import DeclaredConversion, New, Old, declare_conversion
from navarch.webhook.declaration import (
    DeclaredWebhook,
    FailurePolicy,
    MatchPolicy,
    Reinvocation,
    SideEffects,
    WebhookOptions,
)
from navarch.webhook.review import Operation, Review

P = TypeVar("P", bound=Object)
R = TypeVar("R", bound=Awaitable[Result | None] | Result | None)
T = TypeVar("T")
A = TypeVar("A", bound=Awaitable[None] | None)

Background = Callable[[Client], Awaitable[None]]
"""Runs beside the controllers, for example to poll another system and `trigger` the objects that it concerns."""


class DeclaredOperator:
    """The controllers, background functions and options that `Operator` runs."""

    def __init__(
        self,
        name: str,
        *,
        namespaces: tuple[str, ...] = (),
        crds: CrdPolicy = "install",
        webhooks: WebhookPolicy = "install",
        webhook_server: WebhookServer | None = None,
        election: ElectionOptions | bool = True,
        endpoints: Endpoints | None = None,
        uses: tuple[Uses, ...] = (),
        check_permissions: bool = True,
        drain_seconds: float = 30.0,
    ) -> None:
        DNS_SUBDOMAIN.check(name, where="the name of an operator")
        _refuse_text(namespaces)
        _refuse_unknown("crds", crds, CrdPolicy)
        _refuse_unknown("webhooks", webhooks, WebhookPolicy)
        _refuse_single(uses)
        self.name = name
        self.namespaces = Namespaces(*namespaces)
        self.crds: CrdPolicy = crds
        self.webhooks: WebhookPolicy = webhooks
        self.webhook_server: WebhookServer | WebhookServing = webhook_server or WebhookServer()
        self.election = ElectionOptions(name=name) if election is True else election or None
        self.endpoints = endpoints
        self.uses = uses
        self.check_permissions = check_permissions
        self.drain_seconds = drain_seconds
        self.controllers: list[Declared[Any, Any]] = []
        self.backgrounds: list[Background] = []
        self.admission_webhooks: list[DeclaredWebhook[Any, Any]] = []
        self.conversions: list[DeclaredConversion[Any, Any]] = []
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
        owns: Iterable[Watchable] = (),
        watches: Mapping[Watchable, Mapper] | None = None,
        reads: Iterable[Watchable] = (),
        caches: Iterable[Watchable] = (),
        when: Predicate = wanted_change,
        until_gone: bool = False,
        concurrency: int = 16,
        timeout: float = 300.0,
        backoff: Backoff = RECONCILE_BACKOFF,
        name: str = "",
    ) -> Callable[[Callable[[P, Context], R]], Declared[P, R]]:
        """Declares that the decorated function reconciles objects of that class.

        A change of an object in `owns` triggers the object that controls it, one in `watches` the objects that the mapping
        names, one in `reads` the objects whose last reconcile got or listed it, one in `caches` nothing. The cache keeps all
        of them. See `ControllerOptions` for the rest.
        """
        _refuse_function(primary)
        options = ControllerOptions(
            owns=kinds_of("owns", owns),
            watches=mappers_of({} if watches is None else watches),
            reads=kinds_of("reads", reads),
            caches=kinds_of("caches", caches),
            when=when,
            until_gone=until_gone,
            concurrency=concurrency,
            timeout=timeout,
            backoff=backoff,
            name=name,
        )

        def declare(function: Callable[[P, Context], R]) -> Declared[P, R]:
            declared = Declared(primary, function, options)
            declared.everything()
            self._refuse_second(declared.name)
            self.controllers.append(declared)
            return declared

        return declare

    def validate(
        self,
        what: Readable[T],
        *,
        operations: tuple[Operation, ...] = ("CREATE", "UPDATE"),
        on: Readable[Any] | None = None,
        subresource: str = "",
        labels: LabelSelector = None,
        namespace_labels: LabelSelector = None,
        match_conditions: Mapping[str, str] | None = None,
        failure_policy: FailurePolicy = "Fail",
        timeout: int = 10,
        match_policy: MatchPolicy = "Equivalent",
        side_effects: SideEffects = "None",
        reads: Iterable[Watchable] = (),
        name: str = "",
        may_lock_out: bool = False,
    ) -> Callable[[Callable[[T, Review[T]], A]], DeclaredWebhook[T, A]]:
        """Declares that the decorated function admits requests for objects of that class: see `Review.deny`.

        A DELETE has the object that is deleted, also as `review.old`. See `WebhookOptions` for the parameters.
        """
        options = WebhookOptions(
            operations=operations,
            on=on,
            subresource=subresource,
            labels=labels,
            namespace_labels=namespace_labels,
            match_conditions=match_conditions or {},
            failure_policy=failure_policy,
            timeout=timeout,
            match_policy=match_policy,
            side_effects=side_effects,
            reads=kinds_of("reads", reads),
            name=name,
            may_lock_out=may_lock_out,
        )
        return partial(self._declare_webhook, what, options, is_mutating=False)

    def mutate(
        self,
        what: Readable[T],
        *,
        operations: tuple[Operation, ...] = ("CREATE", "UPDATE"),
        on: Readable[Any] | None = None,
        subresource: str = "",
        labels: LabelSelector = None,
        namespace_labels: LabelSelector = None,
        match_conditions: Mapping[str, str] | None = None,
        failure_policy: FailurePolicy = "Fail",
        timeout: int = 10,
        match_policy: MatchPolicy = "Equivalent",
        reinvocation: Reinvocation = "Never",
        side_effects: SideEffects = "None",
        reads: Iterable[Watchable] = (),
        name: str = "",
        may_lock_out: bool = False,
    ) -> Callable[[Callable[[T, Review[T]], A]], DeclaredWebhook[T, A]]:
        """Declares that the decorated function changes objects of that class before they are stored.

        It changes the object in place; the difference is sent as a patch, and fields that the class lacks stay as they are.
        It may be called twice for one request: a second call must change nothing more. See `WebhookOptions`.
        """
        options = WebhookOptions(
            operations=operations,
            on=on,
            subresource=subresource,
            labels=labels,
            namespace_labels=namespace_labels,
            match_conditions=match_conditions or {},
            failure_policy=failure_policy,
            timeout=timeout,
            match_policy=match_policy,
            reinvocation=reinvocation,
            side_effects=side_effects,
            reads=kinds_of("reads", reads),
            name=name,
            may_lock_out=may_lock_out,
        )
        return partial(self._declare_webhook, what, options, is_mutating=True)

    def _declare_webhook(
        self,
        what: Readable[T],
        options: WebhookOptions,
        function: Callable[[T, Review[T]], A],
        *,
        is_mutating: bool,
    ) -> DeclaredWebhook[T, A]:
        declared = DeclaredWebhook(what, function, options, is_mutating=is_mutating)
        if any(known.path == declared.path for known in self.admission_webhooks):
            raise DefinitionError(
                f"operator {self.name}: expected one webhook {declared.name!r}, got a second; give it a name="
            )
        self.admission_webhooks.append(declared)
        return declared

    def convert(self, old: type[Old], new: type[New]) -> Callable[[Callable[[Old], New]], DeclaredConversion[Old, New]]:
        """Declares that the decorated function converts objects from one version of a kind to another.

        Its `.reverse` declares the way back. Metadata is carried over, and fields that a version cannot hold are kept in an
        annotation, so the functions need not care for either. Versions without a pair of their own are converted through
        others.
        """
        return declare_conversion(self.conversions, old, new)

    def background(self, function: Background) -> Background:
        """Runs the function beside the controllers while this process leads; it is restarted if it fails.

        Raises `DefinitionError` for a function that is no coroutine: it would block all others.
        """
        _refuse_plain(function)
        self.backgrounds.append(function)
        return function

    def _refuse_second(self, name: str) -> None:
        if any(known.name == name for known in self.controllers):
            raise DefinitionError(
                f"operator {self.name}: expected one controller {name!r}, got a second; give it a name="
            )


def _refuse_text(namespaces: object) -> None:
    """Raises `DefinitionError` for a single text, which would be read letter by letter."""
    if isinstance(namespaces, str):
        raise DefinitionError(
            f"expected a tuple of names and patterns for namespaces, got {namespaces!r}; write "
            f"namespaces=({namespaces!r},)"
        )


def _refuse_unknown(parameter: str, policy: object, known: Any) -> None:
    if policy not in get_args(known):
        raise DefinitionError(f"expected {parameter} to be one of {', '.join(get_args(known))}, got {policy!r}")


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
    """Raises `DefinitionError` for a decorator without parentheses: it would get the reconciler and declare nothing."""
    if isfunction(primary):
        raise DefinitionError(
            f"expected a class to reconcile, got the function {primary.__name__}; write "
            f"@operator.controller(Memcached) above it, with your class"
        )
