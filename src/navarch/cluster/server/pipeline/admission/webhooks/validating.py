"""Validating webhooks: all are asked at once, and each can refuse."""

from __future__ import annotations

import asyncio

from navarch.cluster.server.pipeline.admission.attributes import Attributes, Warnings
from navarch.cluster.server.pipeline.admission.kept import Compiled, Kept
from navarch.cluster.server.pipeline.admission.matching import is_exempt
from navarch.cluster.server.pipeline.admission.webhooks.hook import Asking, Hook, compiled_hooks
from navarch.cluster.server.wire.status_errors import StatusError

__all__ = ["ValidatingWebhooks"]


class ValidatingWebhooks:
    """The webhooks of all ValidatingWebhookConfigurations, which are `kept`."""

    def __init__(self, kept: Kept, asking: Asking) -> None:
        self._hooks = Compiled(lambda: compiled_hooks(kept.in_order(), is_mutating=False), kept)
        self._asking = asking

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """Refuses what a webhook refuses; of several refusals the first in the order of the webhooks is told."""
        hooks = self._hooks.current()
        if not hooks or is_exempt(attributes):
            return
        refusals = await asyncio.gather(*(self._refusal(hook, attributes, warnings) for hook in hooks))
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    async def _refusal(self, hook: Hook, attributes: Attributes, warnings: Warnings) -> StatusError | None:
        try:
            shown = await hook.shown(attributes, self._asking)
            if shown is not None:
                await hook.ask(attributes, shown, self._asking, warnings)
        except StatusError as refusal:
            return refusal
        return None
