"""Mutating and validating webhooks: matched, called, and their patches applied."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Iterable
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from navarch.api import apply_json_patch
from navarch.api.json_patch import same_json
from navarch.api.strconv import go_quoted
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.admission.expressions import Conditions, review_of, variables_of
from navarch.cluster.server.pipeline.admission.listers import LatestCompiled, ObjectLister, ObjectReader
from navarch.cluster.server.pipeline.admission.matching import (
    Equivalents,
    FindNamespace,
    Matcher,
    Shown,
    converted,
    internal_error,
    is_exempt,
    shown_as,
)
from navarch.cluster.server.pipeline.admission.webhooks.response import AdmissionResponse, read_response
from navarch.cluster.server.pipeline.authorization.authorizer import RbacAuthorizer
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, forbidden
from navarch.cluster.server.wire.webhook_client import (
    ResolveService,
    ServiceEndpoint,
    WebhookCallError,
    WebhookClient,
    WebhookTarget,
    target_of,
)
from navarch.errors import PatchError
from navarch.schema.cel.schema_types import REQUEST_VARIABLES

_SECONDS: Final = 10
_HARMLESS: Final = frozenset({"None", "NoneOnDryRun"})


class WebhookDeps(msgspec.Struct, frozen=True):
    """The parts of the server that webhooks need."""

    caller: WebhookClient
    equivalents: Equivalents
    find_namespace: FindNamespace
    authorizer: RbacAuthorizer
    rng: random.Random


class AdmissionWebhook(NamedTuple):
    """A webhook."""

    name: str
    matcher: Matcher
    conditions: Conditions
    place: WebhookTarget
    authority: str
    seconds: int
    fails: bool
    """A failed call refuses the request."""
    is_harmless: bool
    """The webhook can be called for a dry run."""
    is_asked_again: bool
    is_mutating: bool

    async def shown(self, attributes: Attributes, asking: WebhookDeps) -> Shown | None:
        """The request as the webhook wants to see it; None if it does not. Raises StatusError."""
        resource = await self.matcher.match(attributes, asking.equivalents, asking.find_namespace)
        if resource is None:
            return None
        shown = await shown_as(attributes, resource)
        if not self.conditions:
            return shown
        variables = variables_of(attributes, shown, asking.authorizer)
        verdict = await current_budget().run(partial(self.conditions.verdict, variables))
        if verdict.error and self.fails:
            raise forbidden(attributes.resource.group, attributes.resource.plural, attributes.name, verdict.error)
        return shown if verdict.holds else None

    async def ask(
        self, attributes: Attributes, shown: Shown, asking: WebhookDeps, warnings: Warnings
    ) -> AdmissionResponse | None:
        """The answer, if it lets the request pass; None if there is none and that does not matter. Raises StatusError."""
        if attributes.dry_run and not self.is_harmless:
            raise bad_request(f"admission webhook {go_quoted(self.name)} does not support dry run")
        try:
            answer = await self._answer(attributes, shown, asking)
        except WebhookCallError as error:
            return self.failed(error)
        warnings += [text for text in answer.warnings if text.isprintable()]
        if not answer.allowed:
            raise _denied(self.name, answer.status or {})
        return answer

    def failed(self, error: WebhookCallError) -> None:
        """Refuses the request, or does nothing, as the webhook's failure policy says."""
        if self.fails:
            raise internal_error(f"failed calling webhook {go_quoted(self.name)}: {error}") from None

    async def _answer(self, attributes: Attributes, shown: Shown, asking: WebhookDeps) -> AdmissionResponse:
        uid = str(uuid.UUID(int=asking.rng.getrandbits(128), version=4))
        body = msgspec.json.encode(review_of(attributes, shown, uid))
        reply = await asking.caller.post(self.place, self.authority, body, self.seconds)
        return read_response(reply, uid, is_mutating=self.is_mutating)


def compile_webhooks(configurations: Iterable[Json], *, is_mutating: bool) -> tuple[AdmissionWebhook, ...]:
    """Every webhook, in the order of the configurations and within them."""
    found = (each for configuration in configurations for each in configuration.get("webhooks") or ())
    return tuple(_hook(each, is_mutating) for each in found)


def _hook(document: Json, is_mutating: bool) -> AdmissionWebhook:
    client = document.get("clientConfig") or {}
    return AdmissionWebhook(
        name=document["name"],
        matcher=Matcher(document, document.get("rules") or ()),
        conditions=Conditions(document.get("matchConditions") or (), REQUEST_VARIABLES),
        place=target_of(client),
        authority=client.get("caBundle") or "",
        seconds=document.get("timeoutSeconds") or _SECONDS,
        fails=document.get("failurePolicy") != "Ignore",
        is_harmless=document.get("sideEffects") in _HARMLESS,
        is_asked_again=document.get("reinvocationPolicy") == "IfNeeded",
        is_mutating=is_mutating,
    )


def _denied(name: str, status: Json) -> StatusError:
    """The refusal in the webhook's own words, but never as a success."""
    message, reason, code = status.get("message") or "", status.get("reason") or "", status.get("code") or 0
    said = f"admission webhook {go_quoted(name)} denied the request"
    said = f"{said}: {message or reason}" if message or reason else f"{said} without explanation"
    return StatusError(code if 400 <= code < 600 else 400, reason, said, details=status.get("details") or None)


class ValidatingWebhooks:
    """The webhooks of all ValidatingWebhookConfigurations, which are `kept`."""

    def __init__(self, kept: ObjectLister, asking: WebhookDeps) -> None:
        self._hooks = LatestCompiled(partial(compile_webhooks, is_mutating=False), kept)
        self._asking = asking

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """Refuses what a webhook refuses; of several refusals the first in the order of the webhooks is told."""
        hooks = await self._hooks.current()
        if not hooks or is_exempt(attributes):
            return
        refusals = await asyncio.gather(*(self._refusal(hook, attributes, warnings) for hook in hooks))
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    async def _refusal(self, hook: AdmissionWebhook, attributes: Attributes, warnings: Warnings) -> StatusError | None:
        try:
            shown = await hook.shown(attributes, self._asking)
            if shown is not None:
                await hook.ask(attributes, shown, self._asking, warnings)
        except StatusError as refusal:
            return refusal
        return None


class WebhookCalls(msgspec.Struct):
    """The mutating webhooks of one request: those that were called, and those to call again after a later change."""

    hooks: tuple[AdmissionWebhook, ...]
    called: set[int] = msgspec.field(default_factory=set)
    to_repeat: set[int] = msgspec.field(default_factory=set)

    def object_changed(self) -> None:
        """Marks the webhooks that were called and ask for reinvocation: they have not seen the object as it is now."""
        self.to_repeat |= self.called
        self.called.clear()


class MutatingWebhooks:
    """The webhooks of all MutatingWebhookConfigurations in `configurations`."""

    def __init__(self, configurations: ObjectLister, asking: WebhookDeps) -> None:
        self._hooks = LatestCompiled(partial(compile_webhooks, is_mutating=True), configurations)
        self._asking = asking

    async def calls(self, attributes: Attributes) -> WebhookCalls:
        """Returns the webhooks that may be called for a request."""
        return WebhookCalls(() if is_exempt(attributes) else await self._hooks.current())

    async def mutate(
        self, attributes: Attributes, calls: WebhookCalls, warnings: Warnings, *, is_reinvocation: bool
    ) -> Attributes:
        """Calls the webhooks one after the other, or if it `is_reinvocation` those to repeat; applies their patches."""
        every = tuple(enumerate(calls.hooks))
        for index, hook in tuple(each for each in every if each[0] in calls.to_repeat) if is_reinvocation else every:
            shown = await hook.shown(attributes, self._asking)
            if shown is None:
                continue
            answer = await hook.ask(attributes, shown, self._asking, warnings)
            if answer is not None and answer.patch:
                value = await _patched(hook, attributes, shown, answer.patch)
                if not same_json(value, attributes.value):
                    attributes = replace(attributes, value=value)
                    calls.object_changed()
            if hook.is_asked_again:
                calls.called.add(index)
        return attributes


async def _patched(hook: AdmissionWebhook, attributes: Attributes, shown: Shown, patch: list[Any]) -> Json | None:
    """The object as the webhook wants it, in the version of the request."""
    if shown.value is None:
        why = "attempted to modify the object, which is not supported for this operation"
        raise internal_error(f"admission webhook {go_quoted(hook.name)} {why}")
    try:
        budget = current_budget()
        value = apply_json_patch(patch, shown.value, charge_copy=budget.charge_copy)
        budget.charge_value(value)
    except RecursionError:
        raise internal_error("exceeded max depth") from None
    except PatchError as error:
        raise internal_error(str(error)) from None
    if not isinstance(value, dict):
        raise internal_error("json: the patch leaves no object")
    if not attributes.subresource or value.get("kind") == shown.resource.kind:
        _fit(value, shown.resource)
    return await converted(value, shown.resource, attributes.resource)


def _fit(value: Json, resource: ResourceType) -> None:
    """Checks the patched object like one from a client: types must fit, and unknown fields are dropped."""
    if value.get("apiVersion") != resource.api_version or value.get("kind") != resource.kind:
        said = f"{value.get('apiVersion')}, Kind={value.get('kind')}"
        raise internal_error(f"expected {resource.api_version}, Kind={resource.kind}, got {said}")
    faults = resource.schema.faults(value)
    if faults:
        raise internal_error(faults[0].message)
    if not isinstance(value.get("metadata"), dict):
        raise internal_error("metadata: Required value")
    resource.schema.unknown_fields(value)
    resource.strategy.default(value)


def service_addresses(objects: ObjectReader) -> ResolveService:
    """Services by their cluster IP, or by the name that they stand for: what kube-apiserver itself does."""

    async def resolve(namespace: str, name: str, port: int) -> ServiceEndpoint:
        service = await objects.get(objects.resource("", "v1", "services"), namespace, name)
        if service is None:
            raise WebhookCallError(f'service "{name}" not found')
        return _address(service["spec"], name, port)

    return resolve


def _address(spec: Json, name: str, port: int) -> ServiceEndpoint:
    if spec.get("type") == "ExternalName":
        return ServiceEndpoint(str(spec.get("externalName", "")), port)
    if all(each.get("port") != port for each in spec.get("ports") or ()):
        raise WebhookCallError(f'no service port {port} found for service "{name}"')
    if spec.get("clusterIP") in {None, "", "None"}:
        raise WebhookCallError(f'service "{name}" has no cluster IP')
    return ServiceEndpoint(str(spec["clusterIP"]), port)
