"""Custom kinds: CustomResourceDefinitions, and the resource types and documents that they define."""

from navarch.cluster.server.kinds.custom.controller import DefinitionController, DefinitionDeps, DefinitionWriter
from navarch.cluster.server.kinds.custom.types import CallWebhook, Conversion

__all__ = ["CallWebhook", "Conversion", "DefinitionController", "DefinitionDeps", "DefinitionWriter"]
