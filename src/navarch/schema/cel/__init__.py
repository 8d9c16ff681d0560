"""CEL as Kubernetes' API server uses it for the validation rules of CustomResourceDefinitions.

>>> from navarch.schema import cel
>>> schema = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
>>> rule = cel.compile("self.replicas <= 3", {"self": cel.type_of_schema(schema)}, result=cel.BOOL)
>>> rule.evaluate({"self": cel.value_of({"replicas": 5}, schema)})
False

The compiler and its library are imported when a rule is first compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from navarch._base.lazy_exports import lazy_exports
from navarch.schema.cel.cost_tracker import (
    CALL_COST_LIMIT,
    MATCH_CONDITIONS_COST_BUDGET,
    RUNTIME_COST_BUDGET,
    CostBudget,
    CostTracker,
)
from navarch.schema.cel.errors import CelBudgetError, CelCostError, CelError, CelEvaluationError
from navarch.schema.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    list_of,
    map_of,
    optional_of,
)
from navarch.schema.cel.values import NONE, Built, CelDuration, Optional, Timestamp, Uint, some

if TYPE_CHECKING:
    from navarch.schema.cel.cost_estimate import CRD_COST_LIMIT, RULE_COST_LIMIT, cardinality_of
    from navarch.schema.cel.program import Program, compile  # noqa: A004 - read as cel.compile, like re.compile
    from navarch.schema.cel.schema_types import type_of_schema
    from navarch.schema.cel.schema_values import Converter, converter_of, value_of
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "cost_estimate": ("CRD_COST_LIMIT", "RULE_COST_LIMIT", "cardinality_of"),
            "program": ("Program", "compile"),
            "schema_types": ("type_of_schema",),
            "schema_values": ("Converter", "converter_of", "value_of"),
        },
    )

__all__ = [
    "BOOL",
    "BYTES",
    "CALL_COST_LIMIT",
    "CRD_COST_LIMIT",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "MATCH_CONDITIONS_COST_BUDGET",
    "NONE",
    "RULE_COST_LIMIT",
    "RUNTIME_COST_BUDGET",
    "STRING",
    "TIMESTAMP",
    "UINT",
    "Built",
    "CelBudgetError",
    "CelCostError",
    "CelDuration",
    "CelError",
    "CelEvaluationError",
    "CelType",
    "Converter",
    "CostBudget",
    "CostTracker",
    "Optional",
    "Program",
    "Timestamp",
    "Uint",
    "cardinality_of",
    "compile",
    "converter_of",
    "list_of",
    "map_of",
    "optional_of",
    "some",
    "type_of_schema",
    "value_of",
]
