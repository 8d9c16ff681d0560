"""What is left in a namespace that is being deleted, in Kubernetes' words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from navarch.api import Kind


@dataclass(frozen=True, slots=True)
class Remaining:
    """Objects of one kind that are still there, and the finalizers that they wait for."""

    kind: Kind
    count: int
    finalizers: list[str]


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind whose objects could not be deleted."""

    kind: Kind
    error: str


@dataclass(slots=True)
class Content:
    """What came of an attempt to empty a namespace.

    While `pods` are there, nothing else has been looked at, and the conditions say what they said of it before: in
    Kubernetes, too, they do not name the pods.
    """

    undiscovered: str = ""
    pods: int = 0
    faults: list[Fault] = field(default_factory=list)
    remaining: list[Remaining] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left, for sure."""
        return not (self.undiscovered or self.pods or self.faults or self.remaining)

    @property
    def summary(self) -> str:
        """What is left, in a few words."""
        left = [f"{each.count} {each.kind.resource}" for each in self.remaining]
        left += [f"{self.pods} pods"] if self.pods else []
        return ", ".join([*left, *(fault.error for fault in self.faults), *filter(None, [self.undiscovered])])

    def conditions(self) -> Iterator[tuple[str, str, str, str]]:
        """Type, status, reason and message of each condition."""
        yield self._discovery()
        yield (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        )
        yield self._deletion()
        yield self._left()
        yield self._waiting()

    def _discovery(self) -> tuple[str, str, str, str]:
        type_ = "NamespaceDeletionDiscoveryFailure"
        if self.undiscovered:
            return type_, "True", "DiscoveryFailed", f"Discovery failed for some groups: {self.undiscovered}"
        return type_, "False", "ResourcesDiscovered", "All resources successfully discovered"

    def _deletion(self) -> tuple[str, str, str, str]:
        type_ = "NamespaceDeletionContentFailure"
        if self.faults:
            said = ", ".join(sorted(fault.error for fault in self.faults))
            return (
                type_,
                "True",
                "ContentDeletionFailed",
                f"Failed to delete all resource types, {len(self.faults)} remaining: {said}",
            )
        return type_, "False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"

    def _left(self) -> tuple[str, str, str, str]:
        type_ = "NamespaceContentRemaining"
        if not self.remaining:
            return type_, "False", "ContentRemoved", "All content successfully removed"
        said = sorted(
            f"{each.kind.plural}.{each.kind.group} has {each.count} resource instances" for each in self.remaining
        )
        return type_, "True", "SomeResourcesRemain", f"Some resources are remaining: {', '.join(said)}"

    def _waiting(self) -> tuple[str, str, str, str]:
        type_ = "NamespaceFinalizersRemaining"
        counted = Counter(name for each in self.remaining for name in each.finalizers)
        if not counted:
            return type_, "False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"
        said = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(counted.items()))
        message = f"Some content in the namespace has finalizers remaining: {said}"
        return type_, "True", "SomeFinalizersRemain", message
