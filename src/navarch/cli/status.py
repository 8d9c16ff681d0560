"""`navarch status`: whether the deployed operator works, and if not, why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from navarch.cli.connection import Kubeconfig, KubeContext, OperatorNamespace, connected
from navarch.cli.output import Output, notes, print_json, print_table

if TYPE_CHECKING:
    from navarch.project.deploy.status import DeploymentState


def status(
    *,
    namespace: OperatorNamespace = "",
    output: Output = "table",
    kubeconfig: Kubeconfig = None,
    context: KubeContext = None,
) -> None:
    """Show revision, replicas, leader, CRDs and webhooks of the deployed operator, and why it does not work.

    The exit code is 1 if it does not work.
    """
    from navarch.project.project import Project  # noqa: PLC0415 - the help of navarch starts sooner

    project = Project.find(Path.cwd())
    found = asyncio.run(_state(project.file.project_name, namespace or project.settings.namespace, kubeconfig, context))
    if output == "json":
        print_json(msgspec.to_builtins(found))
    else:
        _print(found)
    if found.obstacle or found.faults:
        raise typer.Exit(1)


async def _state(project: str, namespace: str, kubeconfig: Path | None, context: str | None) -> DeploymentState:
    from navarch.project.deploy.status import deployment_state  # noqa: PLC0415 - as above

    async with connected(kubeconfig, context) as client:
        return await deployment_state(client, project, namespace)


def _print(found: DeploymentState) -> None:
    crds = [f"{each.name} ({'established' if each.established else 'missing'})" for each in found.crds]
    facts = {
        "operator": f"{found.namespace}/{found.project}",
        "revision": f"{found.revision} ({found.state})",
        "image": found.image,
        "replicas": f"{found.ready}/{found.replicas} ready",
        "leader": found.leader,
        "crds": ", ".join(crds),
        "webhooks": found.webhooks,
        "works": "yes" if not found.obstacle else f"no: {found.obstacle}",
    }
    print_table([{"": name, "state": value} for name, value in facts.items()])
    typer.echo()
    print_table([msgspec.to_builtins(each) for each in found.revisions])
    if found.warnings and found.obstacle:
        typer.echo()
        print_table([msgspec.to_builtins(each) for each in found.warnings])
    for fault in found.faults:
        notes().print(f"\n{fault}", markup=False)
