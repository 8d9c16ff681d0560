"""One thing that is wrong with a CustomResourceDefinition."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DefinitionFault"]


@dataclass(frozen=True, slots=True)
class DefinitionFault:
    """`field` is the path in the manifest, `message` says what was expected and what came, `remedy` what to do."""

    field: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}; {self.remedy}"
