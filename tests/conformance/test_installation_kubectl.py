"""kubectl installs what `navarch generate` has written, from the kustomize folders and from the one file alike."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import yaml

import rig
from consoles import Kubectl
from navarch.client import Client, Config
from navarch.project.generate import generate
from navarch.testing import Cluster
from project.small_project import forgotten_code, write_project


async def test_folders_and_file_are_applied_as_the_same_objects(
    client: Client, config: Config, rig_or_none: rig.Cluster | None, embedded: Cluster | None, tmp_path: Path
) -> None:
    """`apply -k config/default` creates everything, and `apply -f dist/install.yaml` finds nothing to change."""
    kubeconfig = tmp_path / "kubeconfig"
    if rig_or_none is not None:
        kubeconfig.write_bytes(rig_or_none.kubeconfig.read_bytes())
    else:
        assert embedded is not None
        assert embedded.access is not None
        kubeconfig.write_bytes(embedded.access.kubeconfig_file())
    kubectl = Kubectl(kubeconfig, tmp_path)
    root = tmp_path / "project"
    with forgotten_code():
        generate(write_project(root, settings="network-policy = true", webhook=True))
    count = len(list(yaml.safe_load_all((root / "dist/install.yaml").read_text())))

    async def results(*arguments: str) -> Counter[str]:
        said = await asyncio.to_thread(kubectl.answer, list(arguments), "cache-operator-system", root)
        return Counter(line.rpartition(" ")[2] for line in said.splitlines())

    try:
        assert await results("apply", "-k", "config/default") == {"created": count}
        assert await results("apply", "-f", "dist/install.yaml") == {"unchanged": count}
        assert await results("apply", "-k", "config/samples") == {"created": 1}
    finally:
        await results("delete", "--ignore-not-found", "--wait=false", "-k", "config/samples")
        await results("delete", "--ignore-not-found", "--wait=false", "-f", "dist/install.yaml")
