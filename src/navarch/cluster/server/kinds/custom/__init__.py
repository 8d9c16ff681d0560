"""Custom kinds: CustomResourceDefinitions, the objects they define, and what the server publishes of them."""

from navarch.cluster.server.kinds.custom.conversion import AskWebhook, Conversion
from navarch.cluster.server.kinds.custom.kinds import CustomKinds
from navarch.cluster.server.kinds.custom.reviews import ConversionWebhooks
from navarch.cluster.server.kinds.custom.scale import scale

__all__ = ["AskWebhook", "Conversion", "ConversionWebhooks", "CustomKinds", "scale"]
