"""`navarch undeploy`: removes the operator of a project from a cluster; CRDs and custom objects stay unless asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from navarch.cli.connection import Kubeconfig, KubeContext, OperatorNamespace, connected
from navarch.cli.output import Output, notes, print_json, print_table
from navarch.cli.progress import progress
from navarch.cli.questions import ask

if TYPE_CHECKING:
    from collections.abc import Callable

    from navarch.project.deploy.removal import DeploymentRemoval


def undeploy(
    *,
    delete_crds: Annotated[
        bool, typer.Option("--delete-crds", help="Also delete the CRDs and all custom objects, these first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    namespace: OperatorNamespace = "",
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="How long finalizers and pods may take, each.")
    ] = 120.0,
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
    context: KubeContext = None,
) -> None:
    """Delete the operator of this project from the cluster; shows how many objects that are, and asks.

    CRDs and custom objects stay, and so does a namespace that has objects of others. With --delete-crds custom objects are
    deleted first, while the operator still runs and removes its finalizers.
    """
    from navarch.project.project import Project  # noqa: PLC0415 - the help of navarch starts sooner

    project = Project.find(Path.cwd())
    place = namespace or project.settings.namespace
    with progress(notes()) as say:
        found = asyncio.run(
            _plan(project.file.project_name, place, kubeconfig, context, delete_crds=delete_crds, say=say)
        )
    _show(found)
    counts = found.counts()
    if not yes and not ask(f"Delete these objects ({sum(counts.values())}) [y/n]", "--yes"):
        notes().print("nothing was deleted")
        raise typer.Exit(1)
    with progress(notes()) as say:
        asyncio.run(_remove(found, kubeconfig, context, wait=wait, say=say))
    if output == "json":
        print_json({"deleted": counts, "keptCrds": _kept_crds(found), "keptNamespaceFor": found.foreign})
    else:
        print_table([{"kind": kind, "deleted": count} for kind, count in counts.items()])


async def _plan(
    project: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str | None,
    *,
    delete_crds: bool,
    say: Callable[[str], None],
) -> DeploymentRemoval:
    from navarch.project.deploy.removal import plan_removal  # noqa: PLC0415 - as above

    async with connected(kubeconfig, context, say) as client:
        return await plan_removal(client, project, namespace, delete_crds=delete_crds, say=say)


async def _remove(
    found: DeploymentRemoval, kubeconfig: Path | None, context: str | None, *, wait: float, say: Callable[[str], None]
) -> None:
    from navarch.project.deploy.removal import remove  # noqa: PLC0415 - as above

    async with connected(kubeconfig, context, say) as client:
        await remove(client, found, seconds=wait, say=say)


def _show(found: DeploymentRemoval) -> None:
    print_table([{"kind": kind, "to delete": count} for kind, count in found.counts().items()], stderr=True)
    console = notes()
    for each in [] if found.deletes_crds else found.crds:
        console.print(f"kept: CRD {each.crd} with {each.objects} objects (--delete-crds deletes them)", markup=False)
    for name in [] if found.deletes_crds else found.release.converted:
        console.print(
            f"kept: the conversion of CRD {name}; until the operator is deployed again, its objects can be read only in the "
            f"version in which they are stored",
            markup=False,
        )
    if found.foreign:
        shown = ", ".join(found.foreign[:5]) + (", ..." if len(found.foreign) > 5 else "")
        console.print(f"kept: namespace {found.release.namespace}, which also has {shown}", markup=False)
    elif not found.deletes_namespace:
        console.print(f"kept: namespace {found.release.namespace}, which somebody else created", markup=False)


def _kept_crds(found: DeploymentRemoval) -> list[str]:
    return [] if found.deletes_crds else [each.crd for each in found.crds]
