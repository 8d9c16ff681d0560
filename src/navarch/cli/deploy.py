"""`navarch deploy`: applies the operator of a project to a cluster, and waits until it works."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from navarch.cli.connection import Kubeconfig, KubeContext, OperatorNamespace, connected
from navarch.cli.deploy_report import Deployed, print_deployment
from navarch.cli.image_load import load_built_image
from navarch.cli.output import Output, notes
from navarch.cli.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from navarch.project.deploy.release import Release
    from navarch.project.project import Project


def deploy(
    *,
    image: Annotated[
        str,
        typer.Option(metavar="IMAGE", help="The image of the operator, by tag or digest; by default the project's."),
    ] = "",
    namespace: OperatorNamespace = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Let the server check everything, and show what would change.")
    ] = False,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long to wait until the operator works; 0: not.")
    ] = 120.0,
    force: Annotated[
        bool, typer.Option("--force", help="Also take over objects and fields of others, and change CRDs at any loss.")
    ] = False,
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
    context: KubeContext = None,
) -> None:
    """Apply the operator of this project to the cluster that kubectl would talk to, and wait until it works.

    On an embedded cluster the image that `navarch image build` has built is loaded first, and named by its digest.
    Everything is checked before the first object is written. Objects that the project no longer has are deleted. An
    interrupted deployment is completed by the next one. The exit code is 1 if the operator does not work in time.
    """
    project = _project(image, namespace)
    release = _release(project, image)
    try:
        with progress(notes()) as say:
            found = asyncio.run(
                _deploy(project.root, release, kubeconfig, context, dry_run=dry_run, wait=wait, force=force, say=say)
            )
    except KeyboardInterrupt:
        notes().print("interrupted; the next navarch deploy completes the deployment")
        raise
    print_deployment(found, output)


def _project(image: str, namespace: str) -> Project:
    from navarch.project.deploy.release import with_overrides  # noqa: PLC0415 - `navarch --help` starts sooner
    from navarch.project.project import Project  # noqa: PLC0415 - as above

    return with_overrides(Project.find(Path.cwd()), image=image, namespace=namespace)


def _release(project: Project, image: str) -> Release:
    from navarch.project.deploy.release import release_of  # noqa: PLC0415 - as above
    from navarch.project.generate import load_deployment  # noqa: PLC0415 - as above

    return release_of(load_deployment(project), image=image)


async def _deploy(
    root: Path,
    release: Release,
    kubeconfig: Path | None,
    context: str | None,
    *,
    dry_run: bool,
    wait: float,
    force: bool,
    say: Callable[[str], None],
) -> Deployed:
    from navarch.project.deploy.deployer import deploy_release, plan  # noqa: PLC0415 - as above

    async with connected(kubeconfig, context, say) as client:
        if built := load_built_image(client.host, root, release.image, dry_run=dry_run):
            say(f"loading {built}")
            release = release.with_image(built)
        say("checking permissions and objects")
        planned = await plan(client, release, force=force, say=say)
        if dry_run:
            return Deployed(release, planned.changes)
        revision, changes = await deploy_release(client, planned, wait=wait, force=force, say=say)
        return Deployed(release, changes, revision.number, ready=True if wait else None)
