"""Structural schemas: CRDs from classes, and values validated, defaulted and pruned as the API server does it.

Each part is imported when something of it is first asked for: a server that checks values makes no CRDs.
"""

from typing import TYPE_CHECKING

from navarch._base.lazy import names_of_parts

if TYPE_CHECKING:
    from navarch.schema.compatibility import CrdChange, Verdict, compare_crds, compare_versions
    from navarch.schema.generation.definition import Webhook, crd, schema_of
    from navarch.schema.inspection.faults import DefinitionFault
    from navarch.schema.inspection.manifest import definition_faults
    from navarch.schema.objects import check
    from navarch.schema.values.compiled import Schema, default, prune, validate
else:
    __getattr__ = names_of_parts(
        __name__,
        {
            "compatibility": ("CrdChange", "Verdict", "compare_crds", "compare_versions"),
            "generation.definition": ("Webhook", "crd", "schema_of"),
            "inspection.faults": ("DefinitionFault",),
            "inspection.manifest": ("definition_faults",),
            "objects": ("check",),
            "values.compiled": ("Schema", "default", "prune", "validate"),
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
