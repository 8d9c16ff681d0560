"""`navarch rollback`: deploys an earlier revision again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from navarch.cli.connection import Kubeconfig, KubeContext, OperatorNamespace, connected
from navarch.cli.deploy_report import Deployed, print_deployment
from navarch.cli.output import Output, notes
from navarch.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable


def rollback(
    revision: Annotated[
        int | None,
        typer.Argument(help="Its number, as navarch status shows it; by default the last one that worked before."),
    ] = None,
    *,
    namespace: OperatorNamespace = "",
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long to wait until the operator works; 0: not.")
    ] = 120.0,
    force: Annotated[
        bool, typer.Option("--force", help="Also take over objects and fields of others, and restore CRDs at any loss.")
    ] = False,
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
    context: KubeContext = None,
) -> None:
    """Deploy an earlier revision of the operator again, as a new one.

    A CRD stays as it is where the older one lacks fields. A rollback that would lose a version in which objects are stored
    is refused.
    """
    from navarch.project.project import Project  # noqa: PLC0415 - the help of navarch starts sooner

    project = Project.find(Path.cwd())
    place = namespace or project.settings.namespace
    with progress(notes()) as say:
        found = asyncio.run(
            _rollback(project.file.project_name, place, revision, kubeconfig, context, wait=wait, force=force, say=say)
        )
    print_deployment(found, output)


async def _rollback(
    project: str,
    namespace: str,
    number: int | None,
    kubeconfig: Path | None,
    context: str | None,
    *,
    wait: float,
    force: bool,
    say: Callable[[str], None],
) -> Deployed:
    from navarch.project.deploy.deployer import deploy_release, plan  # noqa: PLC0415 - as above
    from navarch.project.deploy.rollback import choose_revision, release_to_restore  # noqa: PLC0415 - as above
    from navarch.project.deploy.status import read_revisions  # noqa: PLC0415 - as above

    async with connected(kubeconfig, context, say) as client:
        known = await read_revisions(client, project, namespace)
        chosen = choose_revision(known, number)
        release, kept = await release_to_restore(client, known, chosen, force=force)
        for name in kept:
            notes().print(f"CRD {name} stays as it is: that of revision {chosen.number} lacks fields", markup=False)
        say(f"restoring revision {chosen.number}")
        planned = await plan(client, release, force=force, say=say)
        revision, changes = await deploy_release(client, planned, wait=wait, force=force, say=say)
        return Deployed(release, changes, revision.number, ready=True if wait else None)
