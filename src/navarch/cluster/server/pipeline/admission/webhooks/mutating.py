"""Mutating webhooks: asked one after the other, and some of them again if others changed the object after them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from navarch.api import apply_json_patch
from navarch.api.json_patch import same_json
from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.admission.kept import Compiled, Kept
from navarch.cluster.server.pipeline.admission.matching import Shown, converted, internal_error, is_exempt
from navarch.cluster.server.pipeline.admission.plugins.table import Plugins
from navarch.cluster.server.pipeline.admission.policies.mutating import MutatingPolicies
from navarch.cluster.server.pipeline.admission.webhooks.hook import Asking, Hook, compiled_hooks
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.request import Json
from navarch.errors import PatchError
from navarch.schema.values.violations import go_quoted

__all__ = ["MutatingWebhooks"]


class _Round(msgspec.Struct):
    """What has been asked about one request: the places of webhooks that want to be asked again if need be."""

    asked: set[int] = msgspec.field(default_factory=set)
    to_ask_again: set[int] = msgspec.field(default_factory=set)

    def changed(self) -> None:
        """The object is no longer what those who were asked have seen."""
        self.to_ask_again |= self.asked
        self.asked.clear()


class MutatingWebhooks:
    """The webhooks of all MutatingWebhookConfigurations, which are `kept`, after the parts that go `before` them and
    the mutating policies.

    If a policy or a webhook changed the object, those parts look at it a second time, and so does every policy and
    webhook that saw it as it was before and asks for that.
    """

    def __init__(self, before: Plugins, policies: MutatingPolicies, kept: Kept, asking: Asking) -> None:
        self._before = before
        self._policies = policies
        self._hooks = Compiled(lambda: compiled_hooks(kept.in_order(), is_mutating=True), kept)
        self._asking = asking

    async def mutate(self, attributes: Attributes, warnings: Warnings) -> Json | None:
        """See `Admission.mutate`."""
        attributes = await self._prepared(attributes, warnings)
        hooks = () if is_exempt(attributes) else self._hooks.current()
        round_ = _Round()
        first = await self._policies.mutate(attributes, is_again=False)
        first = await self._asked(first, tuple(enumerate(hooks)), round_, warnings)
        if first.value is attributes.value:
            return first.value
        return await self._again(first, hooks, round_, warnings)

    async def _prepared(self, attributes: Attributes, warnings: Warnings) -> Attributes:
        value = await self._before.mutate(attributes, warnings)
        return attributes if value is attributes.value else replace(attributes, value=value)

    async def _again(
        self, attributes: Attributes, hooks: tuple[Hook, ...], round_: _Round, warnings: Warnings
    ) -> Json | None:
        prepared = await self._prepared(attributes, warnings)
        prepared = await self._policies.mutate(prepared, is_again=True)
        if prepared.value is not attributes.value and not same_json(prepared.value, attributes.value):
            round_.changed()
        again = tuple((place, hook) for place, hook in enumerate(hooks) if place in round_.to_ask_again)
        return (await self._asked(prepared, again, round_, warnings)).value

    async def _asked(
        self, attributes: Attributes, hooks: tuple[tuple[int, Hook], ...], round_: _Round, warnings: Warnings
    ) -> Attributes:
        for place, hook in hooks:
            shown = await hook.shown(attributes, self._asking)
            if shown is None:
                continue
            answer = await hook.ask(attributes, shown, self._asking, warnings)
            if answer is not None and answer.patch:
                value = await _patched(hook, attributes, shown, answer.patch)
                if not same_json(value, attributes.value):
                    attributes = replace(attributes, value=value)
                    round_.changed()
            if hook.is_asked_again:
                round_.asked.add(place)
        return attributes


async def _patched(hook: Hook, attributes: Attributes, shown: Shown, patch: list[Any]) -> Json | None:
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
    """What a webhook made is read as what a client sends: types must fit, and unknown fields are gone."""
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
