"""A controller as it is declared: what it reconciles, what it looks at, and with which function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction, signature
from typing import Any, Generic, TypeVar, cast

from navarch._base.backoff import Backoff
from navarch.api import Key, Kind, Object
from navarch.api.names import DNS_SUBDOMAIN
from navarch.cache import Cached, as_cached
from navarch.client.target import Readable, kind_of
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.triggers import ByMetadata, Mapper, Predicate, wanted_change
from navarch.errors import DefinitionError
from navarch.queue import RECONCILE_BACKOFF

__all__ = ["ControllerOptions", "Declared", "Watchable"]

P = TypeVar("P", bound=Object)
R = TypeVar("R", bound=Awaitable[Result | None] | Result | None)
C = TypeVar("C", bound=Awaitable[Result | None] | Result | None)

Watchable = Readable[Any] | Cached[Any]
"""A class or a `Kind` for all of its objects, or `Cached` for some of them."""

Handler = Callable[[P, Context], Awaitable[Result | None]] | Callable[[P, Context], Result | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """What can be chosen about a controller.

    `owns` are the kinds of its children; `watches` maps other kinds to the primary objects they concern; an object of a kind
    in `reads` concerns the primary objects whose last reconcile read it; a kind in `caches` triggers nothing. The cache keeps
    all of them. `when` selects the changes of the primary object that
    trigger a reconcile: by default all but those of its status alone. With `until_gone` an object that is being deleted is
    reconciled until it is gone. At most `concurrency` objects are reconciled at once, each for at most `timeout` seconds.
    `backoff` gives the delays before an object whose reconcile fails is reconciled again.
    """

    owns: tuple[Watchable, ...] = ()
    watches: Mapping[Watchable, Mapper] = field(default_factory=dict)
    reads: tuple[Watchable, ...] = ()
    caches: tuple[Watchable, ...] = ()
    when: Predicate = wanted_change
    until_gone: bool = False
    concurrency: int = 16
    timeout: float = 300.0
    backoff: Backoff = RECONCILE_BACKOFF
    name: str = ""

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise DefinitionError(f"expected a concurrency of 1 or more, got {self.concurrency!r}")
        if not self.timeout > 0:
            raise DefinitionError(f"expected a timeout of more than 0 seconds, got {self.timeout!r}")
        if not isinstance(self.backoff, Backoff):
            raise DefinitionError(f"expected backoff to be a Backoff, got {self.backoff!r}; write Backoff(initial=1.0)")


def kinds_of(declared: str, given: Iterable[Watchable]) -> tuple[Watchable, ...]:
    """The kinds that `owns`, `reads` or `caches` was given; refuses a single one."""
    if isinstance(given, (type, str, Kind, Cached)) or not isinstance(given, Iterable):
        one = getattr(given, "__name__", "...")
        raise DefinitionError(f"expected several kinds, got {declared}={given!r}; write {declared}=({one},)")
    return tuple(given)


def mappers_of(given: Mapping[Watchable, Mapper]) -> Mapping[Watchable, Mapper]:
    """The kinds that `watches` was given, with their mappings; refuses a mapping that cannot be called."""
    if not isinstance(given, Mapping):
        raise DefinitionError(f"expected a mapping of kinds to functions for watches, got {given!r}")
    for what, mapper in given.items():
        _refuse_unfit_mapper(what, mapper)
    return given


def _refuse_unfit_mapper(what: Watchable, mapper: Mapper) -> None:
    """A mapping that cannot be called would fail for every change, and trigger nothing."""
    function = mapper.function if isinstance(mapper, ByMetadata) else mapper
    name = getattr(function, "__name__", repr(function))
    if iscoroutinefunction(function):
        raise DefinitionError(f"expected a plain function that maps {what!r} to keys, got the coroutine {name}")
    try:
        parameters = signature(function)
    except (TypeError, ValueError):  # nothing tells what a built-in function takes
        return
    try:
        parameters.bind(object(), object())
    except TypeError:
        raise DefinitionError(
            f"expected a function that maps one of {what!r} to keys and takes the object and a lookup, got "
            f"{name}{parameters}; write {name}(changed, lookup)"
        ) from None


class Declared(Generic[P, R]):
    """A reconciler and what it needs; what `@operator.controller(...)` makes of a function.

    Calling it calls the function, so that it can be tested alone.
    """

    def __init__(
        self, primary: type[P] | Cached[P], reconcile: Callable[[P, Context], R], options: ControllerOptions
    ) -> None:
        self.cached: Cached[P] = primary if isinstance(primary, Cached) else Cached(cast(Readable[P], primary))
        self.options = options
        self.reconcile = reconcile
        self.on_deletion: Handler[P] | None = None
        self.name = DNS_SUBDOMAIN.check(options.name or self.cached.kind.kind.lower(), where="the name of a controller")
        self._listeners: list[Callable[[Key, str], None]] = []
        self._refuse_unfit_primary()
        self._refuse_other_parameters(reconcile)

    def _refuse_unfit_primary(self) -> None:
        cached = self.cached
        if not isinstance(cached.of, type):
            raise DefinitionError(f"{self.name}: expected a class to reconcile, got {cached.of!r}; declare one")
        if cached.metadata_only or (cached.keep and cached.kind.has_status and "status" not in cached.keep):
            raise DefinitionError(
                f"{self.name}: expected whole objects to reconcile, got {cached}; its status could not be written"
            )

    def _refuse_other_parameters(self, function: Callable[..., object]) -> None:
        """Functions of other frameworks take what they name; here each would fail only when an object is there."""
        parameters, called = signature(function, follow_wrapped=False), getattr(function, "__name__", "reconcile")
        try:
            parameters.bind(object(), object())
        except TypeError:
            raise DefinitionError(
                f"{self.name}: expected a function that takes the object and its context, got {called}{parameters}; "
                f"write {called}({self.name.replace('-', '_').replace('.', '_')}, ctx)"
            ) from None

    @property
    def primary(self) -> type[P]:
        """The class of the objects that are reconciled."""
        return cast(type[P], self.cached.of)

    @property
    def kind(self) -> Kind:
        """Their kind."""
        return self.cached.kind

    def __call__(self, primary: P, ctx: Context) -> R:
        """Reconciles once."""
        return self.reconcile(primary, ctx)

    def cleanup(self, function: Callable[[P, Context], C]) -> Callable[[P, Context], C]:
        """Declares what has to be undone before an object may go: from now on objects get a finalizer.

        Returning None lets the object go; `Result(after=...)` says that it is not done yet.
        """
        if self.on_deletion is not None:
            raise DefinitionError(f"{self.name}: expected one cleanup, got a second")
        if self.options.until_gone:
            raise DefinitionError(
                f"{self.name}: expected a cleanup or until_gone, got both; the cleanup is called instead"
            )
        self._refuse_other_parameters(function)
        self.on_deletion = cast(Handler[P], function)
        return function

    def trigger(self, name: str, *, namespace: str = "", reason: str = "it was triggered") -> None:
        """Reconciles the object of that name soon, wherever this controller runs in this process; from any thread."""
        for listener in list(self._listeners):
            listener(Key(namespace, name), reason)

    def listen(self, listener: Callable[[Key, str], None]) -> None:
        """Tells of triggers."""
        self._listeners.append(listener)

    def unlisten(self, listener: Callable[[Key, str], None]) -> None:
        """Tells no more."""
        self._listeners.remove(listener)

    def everything(self) -> Mapping[Kind, Cached[Any]]:
        """Everything that is cached, the primary kind first, by kind; the same kind declared in two ways is refused."""
        found: dict[Kind, Cached[Any]] = {self.kind: self.cached}
        for cached in map(as_cached, self._declared_kinds()):
            known = found.setdefault(cached.kind, cached)
            if known != cached:
                raise DefinitionError(
                    f"{self.name}: expected one way to keep {cached.kind.resource}, got {known} and {cached}"
                )
        return found

    def _declared_kinds(self) -> tuple[Watchable, ...]:
        options = self.options
        return (*options.owns, *options.watches, *options.reads, *options.caches)

    def owned(self) -> frozenset[Kind]:
        """The kinds of its children."""
        return frozenset(kind_of(as_cached(owned).of) for owned in self.options.owns)

    def only_read(self) -> tuple[Kind, ...]:
        """The kinds that are looked at, and declared in no other way."""
        others = map(as_cached, (self.cached, *self.options.owns, *self.options.watches))
        known = {cached.kind for cached in others}
        return tuple(
            dict.fromkeys(cached.kind for cached in map(as_cached, self.options.reads) if cached.kind not in known)
        )
