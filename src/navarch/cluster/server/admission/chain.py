"""Several parts of admission, one after the other."""

from __future__ import annotations

from dataclasses import replace

from navarch.cluster.server.admission.attributes import Admission, Attributes, Warnings
from navarch.cluster.server.request import Json

__all__ = ["Chain"]


class Chain:
    """Asks each part in its order; what one changes is what the next one sees."""

    def __init__(self, *parts: Admission) -> None:
        self._parts = parts

    async def mutate(self, attributes: Attributes, warnings: Warnings) -> Json | None:
        """See `Admission.mutate`."""
        for part in self._parts:
            value = await part.mutate(attributes, warnings)
            if value is not attributes.value:
                attributes = replace(attributes, value=value)
        return attributes.value

    async def validate(self, attributes: Attributes, warnings: Warnings) -> None:
        """See `Admission.validate`."""
        for part in self._parts:
            await part.validate(attributes, warnings)
