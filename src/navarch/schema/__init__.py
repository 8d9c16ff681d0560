"""Structural schemas: CRDs from classes, and values validated, defaulted and pruned as the API server does it."""

from navarch.schema.compiled import Schema, check, default, prune, validate
from navarch.schema.definition import Webhook, crd, schema_of
from navarch.schema.faults import DefinitionFault
from navarch.schema.inspection import definition_faults

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
