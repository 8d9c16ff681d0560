"""One webhook of a configuration, ready to be asked."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from navarch.cluster.server.pipeline.access.authorization import Authorizer
from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.admission.expressions import REQUEST_VARIABLES, Conditions, variables_of
from navarch.cluster.server.pipeline.admission.matching import (
    Equivalents,
    FindNamespace,
    Matcher,
    Shown,
    internal_error,
    shown_as,
)
from navarch.cluster.server.pipeline.admission.reviewing import review_of
from navarch.cluster.server.pipeline.admission.webhooks.answers import Answer, read_answer
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, forbidden
from navarch.cluster.server.wire.webhook_client import WebhookCallError, WebhookClient, WebhookTarget, target_of
from navarch.schema.values.violations import go_quoted

__all__ = ["Asking", "Hook", "compiled_hooks"]

_SECONDS: Final = 10
_HARMLESS: Final = frozenset({"None", "NoneOnDryRun"})


class Asking(msgspec.Struct, frozen=True):
    """What it takes to ask webhooks."""

    caller: WebhookClient
    equivalents: Equivalents
    find_namespace: FindNamespace
    authorizer: Authorizer
    rng: random.Random


class Hook(NamedTuple):
    """A webhook."""

    name: str
    matcher: Matcher
    conditions: Conditions
    place: WebhookTarget
    authority: str
    seconds: int
    fails: bool
    """Whether a request is refused if the webhook gives no answer."""
    is_harmless: bool
    """Whether it may be asked about a dry run."""
    is_asked_again: bool
    is_mutating: bool

    async def shown(self, attributes: Attributes, asking: Asking) -> Shown | None:
        """The request as the webhook wants to see it; None if it does not. Raises StatusError."""
        resource = await self.matcher.match(attributes, asking.equivalents, asking.find_namespace)
        if resource is None:
            return None
        shown = await shown_as(attributes, resource)
        if not self.conditions:
            return shown
        verdict = self.conditions.verdict(variables_of(attributes, shown, asking.authorizer))
        if verdict.error and self.fails:
            raise forbidden(attributes.resource.group, attributes.resource.plural, attributes.name, verdict.error)
        return shown if verdict.holds else None

    async def ask(self, attributes: Attributes, shown: Shown, asking: Asking, warnings: Warnings) -> Answer | None:
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

    async def _answer(self, attributes: Attributes, shown: Shown, asking: Asking) -> Answer:
        uid = str(uuid.UUID(int=asking.rng.getrandbits(128), version=4))
        body = msgspec.json.encode(review_of(attributes, shown, uid))
        reply = await asking.caller.post(self.place, self.authority, body, self.seconds)
        return read_answer(reply, uid, is_mutating=self.is_mutating)


def compiled_hooks(configurations: Iterable[Json], *, is_mutating: bool) -> tuple[Hook, ...]:
    """Every webhook, in the order of the configurations and within them."""
    found = (each for configuration in configurations for each in configuration.get("webhooks") or ())
    return tuple(_hook(each, is_mutating) for each in found)


def _hook(document: Json, is_mutating: bool) -> Hook:
    client = document.get("clientConfig") or {}
    return Hook(
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
