"""Operators: controllers, election, definitions, permissions, health and metrics as one process."""

from navarch.operator.declarations import Background
from navarch.operator.endpoints import Endpoints
from navarch.operator.operator import Operator
from navarch.operator.permissions import needed_by
from navarch.operator.process import serve
from navarch.operator.program import run
from navarch.operator.roles import CrdPolicy, Uses, roles_of

__all__ = ["Background", "CrdPolicy", "Endpoints", "Operator", "Uses", "needed_by", "roles_of", "run", "serve"]
