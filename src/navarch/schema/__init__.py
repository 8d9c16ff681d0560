"""Structural schemas: generates CRDs from classes, and validates, defaults and prunes values as the API server does.

Each submodule is imported when one of its names is first used: a server that validates values generates no CRDs.
"""

from typing import TYPE_CHECKING

from navarch._base.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from navarch.schema.compatibility import CrdChange, Verdict, compare_crds, compare_versions
    from navarch.schema.generation.definition import Webhook, check, crd, schema_of
    from navarch.schema.inspection.manifest import definition_faults
    from navarch.schema.inspection.structural import DefinitionFault
    from navarch.schema.values.schema import Schema, default, prune, validate
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "compatibility": ("CrdChange", "Verdict", "compare_crds", "compare_versions"),
            "generation.definition": ("Webhook", "check", "crd", "schema_of"),
            "inspection.manifest": ("definition_faults",),
            "inspection.structural": ("DefinitionFault",),
            "values.schema": ("Schema", "default", "prune", "validate"),
        },
    )

__all__ = [
    "CrdChange",
    "DefinitionFault",
    "Schema",
    "Verdict",
    "Webhook",
    "check",
    "compare_crds",
    "compare_versions",
    "crd",
    "default",
    "definition_faults",
    "prune",
    "schema_of",
    "validate",
]
