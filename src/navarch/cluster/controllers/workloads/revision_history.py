"""ControllerRevisions: the history of pod templates of StatefulSets and DaemonSets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from navarch.api import Labels, Model, ObjectMeta, from_builtins, to_builtins
from navarch.cluster.controllers.workloads.adoption import claimed
from navarch.controller import Context
from navarch.errors import AlreadyExists
from navarch.k8s.apps.v1 import ControllerRevision, DaemonSet, StatefulSet
from navarch.k8s.core.v1 import PodTemplateSpec

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' own: no vowels, so that no words come about."""


def hash_of(part: Model, collisions: int | None) -> str:
    """The same for the same content, always; with another number of collisions another.

    >>> from navarch.k8s.core.v1 import Container, PodSpec
    >>> hash_of(PodSpec(containers=[Container(name="a")]), None) == hash_of(PodSpec(containers=[Container(name="a")]), 0)
    True
    """
    content = msgspec.json.encode(to_builtins(part), order="sorted")
    digest = hashlib.blake2b(content + str(collisions or 0).encode(), digest_size=4).digest()
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(int.from_bytes(digest)))


_LONGEST_PREFIX = 223


@dataclass(frozen=True, slots=True)
class History:
    """The versions so far, the oldest first, of which `newest` stands for the template as it is now.

    `collisions` is how often another template was found under the same hash.
    """

    versions: Sequence[ControllerRevision]
    newest: ControllerRevision
    collisions: int

    def named(self, name: str | None) -> ControllerRevision | None:
        """The version of that name."""
        return next((each for each in self.versions if each.name == name), None)


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The template that the version stands for."""
    template = {key: value for key, value in (revision.data or {})["spec"]["template"].items() if key != "$patch"}
    return from_builtins(PodTemplateSpec, template)


def _data_of(template: PodTemplateSpec) -> dict[str, Any]:
    """A patch that brings an object back to that template: `kubectl rollout undo` sends it."""
    return {"spec": {"template": {**_plain(template), "$patch": "replace"}}}


def _plain(template: PodTemplateSpec) -> dict[str, Any]:
    plain = to_builtins(template)
    assert isinstance(plain, dict)
    return plain


async def history_of(owner: StatefulSet | DaemonSet, selector: Labels, ctx: Context, *, hash_label: str) -> History:
    """The owner's versions; one for its template is made if there is none, and becomes the newest if it is not.

    `hash_label` is where a version notes its hash.
    """
    known = sorted(await claimed(ctx, owner, ControllerRevision, selector), key=_age)
    same = [each for each in known if template_of(each) == owner.spec.template]
    collisions = owner.status.collision_count or 0
    if not same:
        newest, collisions = await _created(owner, _next(known), collisions, ctx, hash_label)
        return History([*known, newest], newest, collisions)
    newest = same[-1]
    if newest is not known[-1]:
        others = [each for each in known if each is not newest]
        newest = await ctx.patch(newest, {"revision": _next(known)})
        known = [*others, newest]
    return History(known, newest, collisions)


def _age(revision: ControllerRevision) -> tuple[int, float, str]:
    created = revision.metadata.creation_timestamp
    return revision.revision, (created.timestamp() if created else 0.0), revision.name


def _next(known: Sequence[ControllerRevision]) -> int:
    return known[-1].revision + 1 if known else 1


async def _created(
    owner: StatefulSet | DaemonSet, number: int, collisions: int, ctx: Context, hash_label: str
) -> tuple[ControllerRevision, int]:
    """The version that was made, and how many others had its name before."""
    template = owner.spec.template
    while True:
        digest = hash_of(template, collisions)
        metadata = ObjectMeta(
            name=f"{owner.name[:_LONGEST_PREFIX]}-{digest}",
            labels={**template.metadata.labels, hash_label: digest},
            annotations=dict(owner.annotations),
        )
        wanted = ControllerRevision(metadata=metadata, revision=number, data=_data_of(template))
        try:
            return await ctx.create(wanted), collisions
        except AlreadyExists:
            found = await ctx.client.get(ControllerRevision, wanted.name, namespace=owner.namespace)
            if template_of(found) == template:
                return found, collisions
            collisions += 1


async def forget_versions(
    versions: Iterable[ControllerRevision], live: set[str], limit: int | None, ctx: Context
) -> None:
    """Deletes the oldest versions that are not `live`, as far as there are more than `limit`."""
    idle = [each for each in versions if each.name not in live]
    for each in idle[: max(len(idle) - (10 if limit is None else limit), 0)]:
        await ctx.delete(each)
