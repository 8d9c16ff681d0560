"""Custom objects in another version: by name alone, or by asking a webhook."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from navarch.cluster.server.kinds.custom.schema import CustomSchema
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError

__all__ = ["AskWebhook", "Conversion", "Converter"]

Converter = Callable[[Sequence[Json], str], Awaitable[list[Json]]]
AskWebhook = Callable[[Json, Json, Sequence[Json], str], Awaitable[list[Json]]]
"""Asks the webhook of a CRD (its `spec.conversion.webhook`) to bring objects into a version."""


class Conversion(msgspec.Struct, frozen=True):
    """How versions are converted. Without `ask`, CRDs with a webhook cannot be read in another version."""

    ask: AskWebhook | None = None

    def converter(self, definition: Json, schemas: Mapping[str, CustomSchema]) -> Converter:
        """The converter of one CRD: what comes out has the shape of its new version where that is the stored one."""
        spec = definition["spec"]
        stored = next(version["name"] for version in spec["versions"] if version.get("storage"))

        async def convert(values: Sequence[Json], api_version: str) -> list[Json]:
            _refuse_unknown(values, spec["group"], schemas)
            converted = await self._converted(definition, values, api_version)
            if api_version.rpartition("/")[2] == stored:
                for value in converted:
                    schemas[stored].reshape(value)
            return converted

        return convert

    async def _converted(self, definition: Json, values: Sequence[Json], api_version: str) -> list[Json]:
        conversion = definition["spec"].get("conversion") or {}
        if conversion.get("strategy") != "Webhook":
            return [{**value, "apiVersion": api_version} for value in values]
        if self.ask is None:
            kind = f"{values[0]['apiVersion']}, Kind={values[0]['kind']}"
            raise StatusError(500, "", f"conversion webhook for {kind} failed: no webhook can be reached from here")
        return await self.ask(definition, conversion["webhook"], values, api_version)


def _refuse_unknown(values: Sequence[Json], group: str, schemas: Mapping[str, CustomSchema]) -> None:
    for value in values:
        found, _, version = str(value["apiVersion"]).rpartition("/")
        if found != group or version not in schemas:
            raise StatusError(500, "", f"request to convert CR from an invalid group/version: {value['apiVersion']}")
