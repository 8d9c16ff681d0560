"""The conversions of an operator, with all versions of its kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navarch.api import Resource
from navarch.webhook.conversion_review import Conversions

if TYPE_CHECKING:
    from navarch.operator.declarations import DeclaredOperator


def conversions_of(operator: DeclaredOperator) -> Conversions:
    """Returns the conversions of all kinds. Raises `DefinitionError` for a version that the operator reconciles and nothing
    converts.
    """
    reconciled = [declared.primary for declared in operator.controllers]
    return Conversions(operator.conversions, [cls for cls in reconciled if issubclass(cls, Resource)])
