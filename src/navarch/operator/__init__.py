"""Operators: controllers, election, definitions, permissions, health and metrics as one process."""

from navarch.operator.crds import CrdPolicy
from navarch.operator.endpoints import Endpoints
from navarch.operator.operator import Background, Operator
from navarch.operator.permissions import Uses
from navarch.operator.process import serve
from navarch.operator.program import run

__all__ = ["Background", "CrdPolicy", "Endpoints", "Operator", "Uses", "run", "serve"]
