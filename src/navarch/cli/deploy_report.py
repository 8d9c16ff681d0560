"""Prints what `navarch deploy` and `navarch rollback` did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from navarch.cli.output import notes, print_json, print_table

if TYPE_CHECKING:
    from navarch.project.deploy.release import Release
    from navarch.project.deploy.server_side_apply import AppliedObject

_FIELDS: Final = 3


@dataclass(frozen=True, slots=True)
class Deployed:
    """The result of a deployment. `revision` is None after a dry run, `ready` is None if nobody waited for it."""

    release: Release
    changes: list[AppliedObject]
    revision: int | None = None
    ready: bool | None = None


def print_deployment(found: Deployed, output: str) -> None:
    """Prints the changes, and which revision is deployed."""
    release, changes = found.release, found.changes
    if output == "json":
        print_json(
            {
                "project": release.project,
                "namespace": release.namespace,
                "image": release.image,
                "revision": found.revision,
                "dryRun": found.revision is None,
                "ready": found.ready,
                "changes": [msgspec.to_builtins(each) for each in changes],
            }
        )
        return
    print_table([_row(each) for each in changes])
    if found.revision is None:
        notes().print("nothing was written: this was a dry run")
        return
    state = "works" if found.ready else "is applied; whether it works: navarch status"
    notes().print(
        f"{release.project}: revision {found.revision} with image {release.image} in namespace {release.namespace} {state}",
        markup=False,
    )


def _row(change: AppliedObject) -> dict[str, str]:
    more = f", and {len(change.fields) - _FIELDS} more" if len(change.fields) > _FIELDS else ""
    return {
        "kind": change.kind,
        "namespace": change.namespace,
        "name": change.name,
        "result": change.result,
        "fields": ", ".join(change.fields[:_FIELDS]) + more,
    }
