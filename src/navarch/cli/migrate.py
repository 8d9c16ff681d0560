"""`navarch migrate`: rewrites stored objects in the stored version of their kind."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from navarch.cli.connection import connected
from navarch.cli.output import Output, notes, print_json, print_table
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from navarch.operator.migration import Migration


def migrate(
    kinds: Annotated[
        list[str],
        typer.Argument(metavar="KIND...", help="Names of CRDs, such as caches.example.com; kinds or short names."),
    ],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the server convert and check every object, but store nothing.")
    ] = False,
    output: Output = "table",
    rate: Annotated[float, typer.Option(min=0.1, help="The number of objects that are rewritten in a second.")] = 100.0,
    kubeconfig: Annotated[Path | None, typer.Option(help="The kubeconfig; by default the one of kubectl.")] = None,
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig.")] = None,
) -> None:
    """Rewrite stored objects in the stored version of their kind, and remove old versions from the status of its CRD.

    Run it once the operator with the new stored version has rolled out. It can be interrupted at any time: the next run
    continues, because the server writes no object twice. An object that somebody changes meanwhile is left to that write.
    The exit code is 1 if an object could not be rewritten; the old versions stay in the status then.
    """
    console = notes()
    with console.status("") as shown:

        def show(state: Migration) -> None:
            shown.update(f"{state.crd}: {state.seen} objects, {state.rewritten} rewritten as {state.version} ...")

        found = asyncio.run(
            _migrated(kinds, kubeconfig, context, dry_run=dry_run, rate=rate, report=show, connecting=shown.update)
        )
    if output == "json":
        print_json([_result(state) for state in found])
    else:
        print_table([_row(state) for state in found])
    for state in found:
        for failure in state.failures:
            console.print(f"{state.crd}: {failure}", markup=False)
    failed = sum(state.failed for state in found)
    if failed:
        raise ConfigError(
            f"objects that could not be {'converted' if dry_run else 'rewritten'}: {failed}; repair them and migrate again: "
            f"what is done already is not written twice"
        )


async def _migrated(
    kinds: list[str],
    kubeconfig: Path | None,
    context: str | None,
    *,
    dry_run: bool,
    rate: float,
    report: Callable[[Migration], None],
    connecting: Callable[[str], None],
) -> list[Migration]:
    from navarch.operator import migration  # noqa: PLC0415 - commands without requests start sooner

    options = migration.MigrationOptions(per_second=rate, dry_run=dry_run)
    async with connected(kubeconfig, context, connecting) as client:
        crds = await migration.find_crds(client, kinds)
        return [await migration.migrate(client, crd.name, options, report=report) for crd in crds]


def _row(state: Migration) -> dict[str, Any]:
    return {
        "crd": state.crd,
        "version": state.version,
        "rewritten": state.rewritten,
        "unchanged": state.unchanged,
        "written by others": state.written_by_others,
        "deleted": state.deleted,
        "failed": state.failed,
        "stored versions": ", ".join([state.version] if state.completed else [*state.old_versions, state.version]),
    }


def _result(state: Migration) -> dict[str, Any]:
    return {
        "crd": state.crd,
        "version": state.version,
        "oldVersions": state.old_versions,
        "rewritten": state.rewritten,
        "unchanged": state.unchanged,
        "writtenByOthers": state.written_by_others,
        "deleted": state.deleted,
        "failed": state.failed,
        "failures": state.failures,
        "completed": state.completed,
    }
