"""Custom kinds: CustomResourceDefinitions, and the resource types, conversions and documents that they define."""

from navarch.cluster.server.kinds.custom.conversion import ConversionWebhooks
from navarch.cluster.server.kinds.custom.types import CallWebhook, Conversion

__all__ = ["CallWebhook", "Conversion", "ConversionWebhooks"]
