"""Custom kinds: CustomResourceDefinitions, the objects they define, and what the server publishes of them."""

from navarch.cluster.server.kinds.custom.conversion import AskWebhook, Conversion
from navarch.cluster.server.kinds.custom.reviews import ConversionWebhooks

__all__ = ["AskWebhook", "Conversion", "ConversionWebhooks"]
