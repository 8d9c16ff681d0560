"""Fields that a write leaves as they were, so that its manager does not own them: status on an object, its spec on
status, and what some kinds add to that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from navarch.cluster.server.objects.fields.sets import LEAF, Tree, recursive_difference
from navarch.cluster.server.reset_fields import RESET_FIELDS, ResetFields

__all__ = ["NO_RESET", "Reset", "reset_of"]

_SPEC: Final = "f:spec"
_STATUS: Final = "f:status"
_SIGNING_REQUEST: Final = ("certificates.k8s.io", "CertificateSigningRequest")
_METADATA_AND_SPEC: Final[Tree] = {"f:metadata": LEAF, _SPEC: LEAF}
_DECLARED: Final[Mapping[tuple[str, str, str], Tree]] = {
    **{
        (group, kind, "status"): _METADATA_AND_SPEC
        for group, kind in (
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
            ("apiregistration.k8s.io", "APIService"),
            ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
            ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
            ("networking.k8s.io", "ServiceCIDR"),
            ("resource.k8s.io", "ResourceClaim"),
            ("storage.k8s.io", "VolumeAttachment"),
        )
    },
    ("", "Namespace", ""): {_STATUS: LEAF},
    ("", "Pod", "status"): {"f:metadata": {"f:deletionTimestamp": LEAF, "f:ownerReferences": LEAF}, _SPEC: LEAF},
    (*_SIGNING_REQUEST, "status"): {_SPEC: LEAF, _STATUS: {"f:conditions": LEAF}},
    ("networking.k8s.io", "ServiceCIDR", ""): {},
}
"""What some kinds declare otherwise than they do it."""
_RESIZED: Final[Tree] = {"*": {"f:resizePolicy": LEAF, "f:resources": LEAF}}
_ONLY: Final[Mapping[tuple[str, str, str], Tree]] = {
    ("", "Pod", "ephemeralcontainers"): {"f:spec": {"f:ephemeralContainers": LEAF}},
    ("", "Pod", "resize"): {"f:spec": {"f:containers": _RESIZED, "f:initContainers": _RESIZED}},
}


class Reset(msgspec.Struct, frozen=True):
    """What is left out of a set. `dropped` are names of members of the object: they need not be looked at at all."""

    dropped: frozenset[str]
    excluded: Tree
    only: Tree | None = None

    def kept(self, tree: Tree) -> Tree:
        """The fields that can be owned."""
        if self.only is not None:
            tree = _matching(tree, self.only)
        return recursive_difference(tree, self.excluded) if self.excluded else tree


NO_RESET: Final = Reset(frozenset(), {})
"""Everything can be owned."""


def reset_of(group: str, kind: str, subresource: str, *, is_custom: bool, has_status: bool) -> Reset:
    """The reset of a kind and subresource; "" is the object itself."""
    if is_custom:
        excluded = _of_custom(subresource, has_status)
    else:
        row = RESET_FIELDS.get((group, kind), ResetFields())
        excluded = _DECLARED.get((group, kind, subresource), _tree(row.of(subresource).keeps))
    dropped = frozenset(element[2:] for element, node in excluded.items() if not node)
    return Reset(dropped, excluded, _ONLY.get((group, kind, subresource)))


def _of_custom(subresource: str, has_status: bool) -> Tree:
    if subresource == "status":
        return _METADATA_AND_SPEC
    return {_STATUS: LEAF} if subresource == "" and has_status else {}


def _tree(paths: tuple[str, ...]) -> Tree:
    """Paths as a set of fields.

    >>> _tree(("spec", "metadata.labels"))
    {'f:spec': {}, 'f:metadata': {'f:labels': {}}}
    """
    tree: Tree = {}
    for path in paths:
        name, _, rest = path.partition(".")
        below = tree.get(f"f:{name}", {})
        tree[f"f:{name}"] = {**below, **_tree((rest,))} if rest else LEAF
    return tree


def _matching(tree: Tree, pattern: Tree) -> Tree:
    """The members on the way of a pattern, and everything behind its ends; "*" stands for any element."""
    found: Tree = {}
    for element, node in tree.items():
        further: Any = pattern.get(element, pattern.get("*"))
        if element == "." or further is None:
            continue
        kept = _matching(node, further) if node and further else node
        if kept or not node:
            found[element] = {".": LEAF, **kept} if "." in node and further else kept
        elif "." in node:
            found[element] = LEAF
    return found
