"""Operators: controllers, election, definitions, permissions, health and metrics as one process."""

from typing import TYPE_CHECKING

from navarch._base.lazy_exports import lazy_exports
from navarch.operator.declarations import Background
from navarch.operator.endpoints import Endpoints
from navarch.operator.loader import load_operator
from navarch.operator.main import main
from navarch.operator.operator import Operator
from navarch.operator.permissions import needed_by
from navarch.operator.process import serve
from navarch.operator.program import run
from navarch.operator.roles import CrdPolicy, Uses, WebhookPolicy, roles_of
from navarch.operator.webhook_server import WebhookServer

if TYPE_CHECKING:
    from navarch.operator.webhooks import configurations_of, remove_webhooks
else:
    __getattr__ = lazy_exports(__name__, {"webhooks": ("configurations_of", "remove_webhooks")})

__all__ = [
    "Background",
    "CrdPolicy",
    "Endpoints",
    "Operator",
    "Uses",
    "WebhookPolicy",
    "WebhookServer",
    "configurations_of",
    "load_operator",
    "main",
    "needed_by",
    "remove_webhooks",
    "roles_of",
    "run",
    "serve",
]
