"""`navarch install` and `navarch uninstall`: the CRDs of a project in a cluster."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from navarch.cli.connection import Kubeconfig, KubeContext, connected
from navarch.cli.output import Output, notes, print_json, print_rows, print_table
from navarch.errors import ConfigError

if TYPE_CHECKING:
    from navarch.operator.foreign_kinds import ForeignKind
    from navarch.project.crd_installation import CrdObjects, InstalledCrd
    from navarch.project.generate import Deployment


def install(
    *,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also take over CRDs of others, and accept changes that take something away."),
    ] = False,
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
    context: KubeContext = None,
) -> None:
    """Apply the CRDs of the project to the cluster that kubectl would talk to.

    A change that would take a field away from stored objects is refused, and so is a CRD that somebody else applied. CRDs of
    other projects that the operator needs are not installed; those that the cluster does not have are named.
    """
    from navarch.operator.foreign_kinds import INSTALL_THEM  # noqa: PLC0415 - `navarch --help` needs no operator

    done, missing = asyncio.run(_install(_deployment(), kubeconfig, context, force=force))
    print_rows([msgspec.to_builtins(each) for each in done], output, empty="the project defines no kinds")
    if missing:
        notes().print(f"missing, from other projects: {', '.join(map(str, missing))}; {INSTALL_THEM}", markup=False)


def uninstall(
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also delete CRDs that somebody else applied.")] = False,
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
    context: KubeContext = None,
) -> None:
    """Delete the CRDs of the project from the cluster, with all of their objects.

    Shows how many objects that would be, and asks.
    """
    deployment = _deployment()
    stored = asyncio.run(_stored(deployment, kubeconfig, context))
    if not stored:
        _report([], output)
        return
    if not yes:
        print_table([_row(each) for each in stored], stderr=True)
        _confirm(stored)
    asyncio.run(_uninstall(deployment, stored, kubeconfig, context, force=force))
    _report(stored, output)


def _confirm(stored: list[CrdObjects]) -> None:
    total = sum(each.objects for each in stored)
    if not sys.stdin.isatty():
        raise ConfigError(
            f"expected somebody to ask whether to delete {len(stored)} CRDs with {total} objects, got no terminal; give --yes"
        )
    if not typer.confirm(f"Delete {len(stored)} CRDs with {total} objects?", err=True):
        raise typer.Abort


def _report(stored: list[CrdObjects], output: str) -> None:
    if output == "json":
        print_json(stored)
    for each in stored if output != "json" else ():
        typer.echo(f"deleted  {each.crd}  with {each.objects} objects")
    if not stored and output != "json":
        notes().print("the cluster has no CRD of this project")


def _row(each: CrdObjects) -> dict[str, object]:
    return {
        "crd": each.crd,
        "objects": each.objects,
        "with finalizers": each.with_finalizers,
        "applied by": ", ".join(each.applied_by),
    }


def _deployment() -> Deployment:
    from navarch.project.generate import load_deployment  # noqa: PLC0415 - imports the schema generator
    from navarch.project.project import Project  # noqa: PLC0415 - as above

    return load_deployment(Project.find(Path.cwd()))


async def _install(
    deployment: Deployment, kubeconfig: Path | None, context: str | None, *, force: bool
) -> tuple[list[InstalledCrd], list[ForeignKind]]:
    from navarch.project import crd_installation  # noqa: PLC0415 - as above

    async with connected(kubeconfig, context) as client:
        done = await crd_installation.install(client, deployment, force=force)
        missing = await crd_installation.missing_foreign_kinds(client, deployment)
    rows = [crd_installation.InstalledCrd(each.kind.resource, "missing") for each in missing]
    return [*done, *rows], missing


async def _stored(deployment: Deployment, kubeconfig: Path | None, context: str | None) -> list[CrdObjects]:
    from navarch.project import crd_installation  # noqa: PLC0415 - as above

    async with connected(kubeconfig, context) as client:
        return await crd_installation.stored_objects(client, crd_installation.crds_of(deployment))


async def _uninstall(
    deployment: Deployment,
    stored: list[CrdObjects],
    kubeconfig: Path | None,
    context: str | None,
    *,
    force: bool,
) -> None:
    from navarch.project import crd_installation  # noqa: PLC0415 - as above

    async with connected(kubeconfig, context) as client:
        await crd_installation.uninstall(client, deployment.model.operator.name, stored, force=force)
