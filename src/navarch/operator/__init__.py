"""Operators: controllers, election, definitions, permissions, health and metrics as one process."""

from navarch.operator.crds import CrdPolicy
from navarch.operator.endpoints import Endpoints
from navarch.operator.operator import Background, Operator
from navarch.operator.permissions import Uses, needed_by
from navarch.operator.process import serve
from navarch.operator.program import run
from navarch.operator.roles import roles_of

__all__ = ["Background", "CrdPolicy", "Endpoints", "Operator", "Uses", "needed_by", "roles_of", "run", "serve"]
