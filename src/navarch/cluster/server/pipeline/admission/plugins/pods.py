"""What the parts that look at pods share."""

from __future__ import annotations

from typing import Final

from navarch.cluster.server.pipeline.admission.attributes import Attributes
from navarch.cluster.server.wire.status_errors import StatusError, forbidden

__all__ = ["PODS", "forbid"]

PODS: Final = frozenset({("", "pods")})


def forbid(attributes: Attributes, why: str) -> StatusError:
    """403 for the object of the request."""
    return forbidden(attributes.resource.group, attributes.resource.plural, attributes.told_name, why)
