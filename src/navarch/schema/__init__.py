"""Structural schemas: CRDs from classes, and values validated, defaulted and pruned as the API server does it."""

from navarch.schema.generation.definition import Webhook, crd, schema_of
from navarch.schema.inspection.faults import DefinitionFault
from navarch.schema.inspection.manifest import definition_faults
from navarch.schema.objects import check
from navarch.schema.values.compiled import Schema, default, prune, validate

__all__ = [
    "DefinitionFault",
    "Schema",
    "Webhook",
    "check",
    "crd",
    "default",
    "definition_faults",
    "prune",
    "schema_of",
    "validate",
]
