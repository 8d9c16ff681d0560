"""A project that is shipped: its commands as a user types them, and the images that its pods need."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rig
from navarch.oci.documents import (
    CONFIG,
    INDEX,
    MANIFEST,
    ImageConfig,
    ImageIndex,
    ImageManifest,
    Platform,
    ProcessConfig,
    RootFs,
    encode,
)
from navarch.oci.file_tree import FileTree
from navarch.oci.layers import pack
from navarch.oci.layout import Layout
from navarch.oci.reference import Reference
from navarch.oci.registry import RegistryClient, RegistryOptions, push
from navarch.project.image.debian import DebianArchive, DebianOptions, base_tree

SECONDS = 300
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_NAVARCH = str(Path(sys.executable).with_name("navarch"))
_PASSING = ("Event", "Lease", "EndpointSlice", "Endpoints")
"""Kinds of which the cluster itself makes objects all the time."""


@dataclass(frozen=True)
class ShippedProject:
    """A project in a folder, a cluster to deploy it to, and the folder of wheels that are on no index."""

    folder: Path
    cluster: rig.Cluster
    wheels: Path

    def navarch(self, *arguments: str, code: int = 0) -> str:
        """Runs a command in the project, and returns what it prints on both of its outputs."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KUBE"))},
            "KUBECONFIG": str(self.cluster.kubeconfig),
            "PIP_FIND_LINKS": " ".join(filter(None, (str(self.wheels), os.environ.get("PIP_FIND_LINKS")))),
        }
        done = subprocess.run(
            [_NAVARCH, *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, f"$ navarch {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}"
        assert "Traceback" not in done.stdout, done.stdout
        return done.stdout

    def pushed(self, repository: str, tag: str) -> str:
        """Builds and pushes the project as it is now, and returns the name under which the cluster pulls it."""
        name = f"{self.cluster.registry}/{repository}:{tag}"
        self.navarch("image", "build", name)
        self.navarch("image", "push", name, "--plain-http")
        return f"{rig.REGISTRY_NAME}/{repository}:{tag}"

    def deploy(self, image: str, *arguments: str, code: int = 0) -> str:
        """Deploys the image, and waits until the operator works."""
        return self.navarch("deploy", f"--image={image}", *arguments, code=code)


def push_image(cluster: rig.Cluster, folder: Path, name: str, tree: FileTree, entrypoint: Sequence[str]) -> str:
    """Pushes an image with these files to the cluster's registry, and returns the name under which the cluster pulls it."""
    assert cluster.registry is not None
    layout = Layout.create(folder)
    layer = pack(tree)
    layout.add(layer.content, layer.descriptor.media_type)
    platform = Platform(architecture=_MACHINES[os.uname().machine])
    config = ImageConfig(
        architecture=platform.architecture,
        os=platform.os,
        config=ProcessConfig(
            entrypoint=list(entrypoint), env=["PATH=/usr/local/bin:/usr/bin:/bin"], user="65532:65532"
        ),
        rootfs=RootFs(type="layers", diff_ids=[layer.diff_id]),
    )
    stored = layout.add(encode(config), CONFIG)
    manifest = ImageManifest(schema_version=2, media_type=MANIFEST, config=stored, layers=[layer.descriptor])
    images = [layout.add_document(manifest, platform=platform)]
    root = layout.add_document(ImageIndex(schema_version=2, media_type=INDEX, manifests=images))

    async def send() -> None:
        async with RegistryClient(RegistryOptions(plain_http=True)) as client:
            await push(client, layout, root, Reference.parse(f"{cluster.registry}/{name}"))

    asyncio.run(send())
    return f"{rig.REGISTRY_NAME}/{name}"


def debian_tree(cache: Path, *names: str) -> FileTree:
    """The files of Debian packages, with all that they depend on."""

    async def fetched() -> list[Path]:
        async with DebianArchive(DebianOptions(), cache) as archive:
            return await archive.fetch(await archive.resolve(["base-files", *names], _MACHINES[os.uname().machine]))

    return base_tree(asyncio.run(fetched()))


def objects_of(cluster: rig.Cluster) -> set[str]:
    """The names of all objects of the cluster, but for those that it makes itself all the time."""
    kinds = [
        *cluster.kubectl("api-resources", "--verbs=list", "--namespaced=true", "--output=name").split(),
        *cluster.kubectl("api-resources", "--verbs=list", "--namespaced=false", "--output=name").split(),
    ]
    listed = json.loads(cluster.kubectl("get", ",".join(sorted(set(kinds))), "--all-namespaces", "--output=json"))
    return {_identity(each) for each in listed["items"] if each["kind"] not in _PASSING}


def _identity(found: Mapping[str, Any]) -> str:
    metadata = found["metadata"]
    return f"{found['apiVersion']} {found['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
