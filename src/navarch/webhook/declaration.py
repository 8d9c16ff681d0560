"""An admission webhook as it is declared: a function, the requests it sees, and what happens if it fails."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar, get_args

from navarch.api import Kind, Labels, Object, encode, full_wire
from navarch.api.names import DNS_LABEL, LABEL_KEY
from navarch.cache import Cached, Collection, as_cached, entry_of
from navarch.cache.lookup import selector_of
from navarch.client.rest_client import LabelSelector
from navarch.client.target import Readable, kind_of
from navarch.errors import DefinitionError
from navarch.webhook.review import CachedKinds, Fetch, Operation, Review
from navarch.webhook.verdict import Judge, ReviewVerdict

T = TypeVar("T")
R = TypeVar("R", bound=Awaitable[None] | None)

FailurePolicy = Literal["Fail", "Ignore"]
MatchPolicy = Literal["Equivalent", "Exact"]
Reinvocation = Literal["Never", "IfNeeded"]
SideEffects = Literal["None", "NoneOnDryRun"]

_LONGEST_TIMEOUT = 30
_MOST_CONDITIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """What can be chosen about an admission webhook.

    It sees the `operations` on objects with these `labels`, in namespaces with these `namespace_labels`, for which all
    `match_conditions` hold: CEL expressions over `object`, `oldObject`, `request` and `authorizer`, by name. `subresource`
    is one of `on`, by default of the function's own class: `Eviction` is posted to `subresource="eviction"` of `on=Pod`.
    Under `failure_policy="Ignore"` requests pass if the function raises, or does not return within `timeout` seconds.
    `match_policy="Equivalent"` also sees requests in other versions, converted. With `reinvocation="IfNeeded"` a mutating
    function is called again if others have changed the object. `reads` are the kinds that `review.get` and `review.list`
    find in the cache. A function with `side_effects="NoneOnDryRun"` must respect `review.dry_run`.
    """

    operations: tuple[Operation, ...] = ("CREATE", "UPDATE")
    on: Readable[Any] | None = None
    subresource: str = ""
    labels: LabelSelector = None
    namespace_labels: LabelSelector = None
    match_conditions: Mapping[str, str] = field(default_factory=dict)
    failure_policy: FailurePolicy = "Fail"
    timeout: int = 10
    match_policy: MatchPolicy = "Equivalent"
    reinvocation: Reinvocation = "Never"
    side_effects: SideEffects = "None"
    reads: tuple[Readable[Any] | Cached[Any], ...] = ()
    name: str = ""
    may_lock_out: bool = False

    def __post_init__(self) -> None:
        _refuse_others("operations", self.operations, Operation)
        if not self.operations:
            raise DefinitionError(f"expected one or more operations of {', '.join(get_args(Operation))}, got none")
        _refuse_others("failure_policy", [self.failure_policy], FailurePolicy)
        _refuse_others("match_policy", [self.match_policy], MatchPolicy)
        _refuse_others("reinvocation", [self.reinvocation], Reinvocation)
        _refuse_others("side_effects", [self.side_effects], SideEffects)
        if not 1 <= self.timeout <= _LONGEST_TIMEOUT:
            raise DefinitionError(f"expected a timeout of 1 to {_LONGEST_TIMEOUT} seconds, got {self.timeout!r}")
        _refuse_conditions(self.match_conditions)

    @property
    def object_selector(self) -> Labels:
        """Returns `labels` as a selector."""
        return selector_of(self.labels)

    @property
    def namespace_selector(self) -> Labels:
        """Returns `namespace_labels` as a selector."""
        return selector_of(self.namespace_labels)


class DeclaredWebhook(Generic[T, R]):
    """A function that admits requests; what `@operator.validate(...)` and `@operator.mutate(...)` make of it.

    Calling it calls the function. `verdict` calls it as the API server would, without a cluster.
    """

    def __init__(
        self, what: Readable[T], function: Callable[[T, Review[T]], R], options: WebhookOptions, *, is_mutating: bool
    ) -> None:
        self.what = what
        self.function = function
        self.options = options
        self.is_mutating = is_mutating
        self.resource: Kind = kind_of(what if options.on is None else options.on)
        self.short_name = DNS_LABEL.check(
            options.name or getattr(function, "__name__", "").strip("_").replace("_", "-").lower(),
            where="the name of a webhook",
        )
        self.judge = Judge(self.short_name, kind_of(what), is_mutating=is_mutating)
        _refuse_lockout(self)
        _refuse_mutation_of_deleted(self)
        _refuse_parameters(function)
        _refuse_subresource(self)
        for read in options.reads:
            as_cached(read)

    @property
    def name(self) -> str:
        """Returns the name that the API server shows to users: a domain, as Kubernetes demands."""
        group = self.resource.group.replace("*", "all") or "core"
        return f"{self.short_name}.{self.resource.plural.replace('*', 'all')}.{group}"

    @property
    def path(self) -> str:
        """Returns the path of the URL that the API server posts reviews to."""
        return f"/{'mutate' if self.is_mutating else 'validate'}/{self.name}"

    def __call__(self, subject: T, review: Review[T]) -> R:
        """Calls the function."""
        return self.function(subject, review)

    async def verdict(
        self,
        subject: T,
        *,
        old: T | None = None,
        operation: Operation | None = None,
        user: str = "",
        groups: tuple[str, ...] = (),
        dry_run: bool = False,
        options: Mapping[str, Any] | None = None,
        existing: Iterable[Any] = (),
    ) -> ReviewVerdict:
        """Returns the function's verdict on an object, for a test without a cluster.

        The operation is UPDATE if there is an `old` object, else the first that the webhook declares. `review.fetch`
        finds the `existing` objects; `review.get` and `review.list` find those of the kinds in `reads=`. Raises what the
        function raises.
        """
        objects = list(existing)
        return await self.judge.verdict(
            self.function,
            subject,
            Review(
                operation=operation or ("UPDATE" if old is not None else self.options.operations[0]),
                old=old,
                user=user,
                groups=groups,
                dry_run=dry_run,
                subresource=self.options.subresource,
                options=options,
                name=getattr(subject, "name", ""),
                namespace=getattr(subject, "namespace", ""),
                lookup=_lookup(self, objects),
                fetch=_fetch(objects),
            ),
        )


def _lookup(webhook: DeclaredWebhook[Any, Any], objects: Iterable[Any]) -> CachedKinds:
    """Returns a cache of those objects whose kinds the webhook reads."""
    collections = {each.kind: Collection(each) for each in map(as_cached, webhook.options.reads)}
    for each in objects:
        wire = full_wire(each) if isinstance(each, Object) else dict(each)
        wire.setdefault("metadata", {}).setdefault("resourceVersion", "1")
        for kind, collection in collections.items():
            if (kind.api_version, kind.kind) == (each.api_version, each.kind):
                collection.saw(entry_of(encode(wire)), initial=True)
    return CachedKinds(collections)


def _fetch(objects: Iterable[Any]) -> Fetch:
    """Returns a function that finds these objects, and no others."""

    async def fetch(what: Readable[Any], name: str, namespace: str) -> Any:
        kind = kind_of(what)
        wanted = (kind.api_version, kind.kind, name, namespace)
        return next(
            (each for each in objects if (each.api_version, each.kind, each.name, each.namespace) == wanted), None
        )

    return fetch


def _refuse_others(name: str, given: Iterable[object], allowed: Any) -> None:
    known = get_args(allowed)
    if isinstance(given, str):
        raise DefinitionError(f"expected a tuple for {name}, got {given!r}; write {name}=({given!r},)")
    for each in given:
        if each not in known:
            raise DefinitionError(f"expected {name} to be of {', '.join(known)}, got {each!r}")


def _refuse_conditions(conditions: Mapping[str, str]) -> None:
    """Raises `DefinitionError` for a condition that does not compile: the API server would refuse the configuration."""
    if not conditions:
        return
    from navarch.schema import cel  # noqa: PLC0415 - takes time, and few functions have conditions
    from navarch.schema.cel.schema_types import REQUEST_VARIABLES  # noqa: PLC0415 - as above

    if len(conditions) > _MOST_CONDITIONS:
        raise DefinitionError(f"expected at most {_MOST_CONDITIONS} match conditions, got {len(conditions)}")
    for name, expression in conditions.items():
        LABEL_KEY.check(name, where="the name of a match condition")
        try:
            cel.compile(expression, REQUEST_VARIABLES, result=cel.BOOL)
        except cel.CelError as error:
            raise DefinitionError(f"match condition {name!r}: {error}") from None


def _refuse_lockout(webhook: DeclaredWebhook[Any, Any]) -> None:
    """Raises `DefinitionError` for rules that can stop a whole cluster if the operator does not answer."""
    kind = webhook.resource
    if webhook.options.may_lock_out:
        return
    what = ""
    if "*" in {kind.group, kind.plural}:
        what = "all resources"
    elif (kind.group, kind.plural) == ("coordination.k8s.io", "leases"):
        what = "Leases, by which nodes and leaders stay alive"
    elif kind.group == "admissionregistration.k8s.io":
        what = "webhook configurations, without which nobody could take it back"
    if what:
        raise DefinitionError(
            f"webhook {webhook.short_name}: expected a rule that cannot lock users out of their cluster, got one on {what}; "
            "name the kinds that it is for, or confirm it: may_lock_out=True"
        )


def _refuse_mutation_of_deleted(webhook: DeclaredWebhook[Any, Any]) -> None:
    if webhook.is_mutating and "DELETE" in webhook.options.operations:
        raise DefinitionError(
            f"webhook {webhook.short_name}: expected operations with an object to change, got DELETE; use validate for it"
        )


def _refuse_subresource(webhook: DeclaredWebhook[Any, Any]) -> None:
    options = webhook.options
    if options.on is not None and not options.subresource:
        raise DefinitionError(
            f"webhook {webhook.short_name}: expected a subresource beside on={webhook.resource.kind}, got none; "
            f'write subresource="scale", or declare the webhook for {webhook.resource.kind} itself'
        )
    if "/" in options.subresource:
        raise DefinitionError(
            f"webhook {webhook.short_name}: expected the name of a subresource such as scale, got {options.subresource!r}"
        )


def _refuse_parameters(function: Callable[..., object]) -> None:
    """Raises `DefinitionError` for a function that cannot be called with an object and a review."""
    parameters, called = inspect.signature(function), getattr(function, "__name__", "the function")
    try:
        parameters.bind(object(), object())
    except TypeError:
        raise DefinitionError(
            f"expected a webhook function that takes the object and its review, got {called}{parameters}; "
            f"write {called}(subject, review)"
        ) from None
