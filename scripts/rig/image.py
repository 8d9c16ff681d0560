"""The image that test pods run, packed by hand as an OCI archive: no registry and no builder are needed."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path
from typing import Any

PROBE_IMAGE = "navarch.test/probe:1"
"""Runs `/probe`; use it with `imagePullPolicy: Never`. What it can do: scripts/rig/podimage/main.go."""

_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_archive(target: Path, program: Path, name: str = PROBE_IMAGE) -> Path:
    """Write an image whose only file is the program; the same input gives the same bytes."""
    layer = _tar({"probe": program.read_bytes()}, mode=0o755)
    return write_image(target, layer, name, {"Entrypoint": ["/probe"], "Cmd": ["pause"], "Env": ["PATH=/"]})


def write_image(target: Path, layer: bytes, name: str, settings: dict[str, Any]) -> Path:
    """Write an image whose files are those of a tar archive, and which runs as the settings say."""
    config = _json(_config(layer, settings))
    manifest = _json(_manifest(config, layer))
    index = {"schemaVersion": 2, "manifests": [_descriptor(_MANIFEST, manifest) | {"annotations": _names(name)}]}
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": _json(index)}
    blobs = {f"blobs/sha256/{_digest(blob)}": blob for blob in (config, layer, manifest)}
    target.write_bytes(_tar(files | blobs, mode=0o644))
    return target


def _config(layer: bytes, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(layer)}"]},
    }


def _manifest(config: bytes, layer: bytes) -> dict[str, Any]:
    parts = {"config": _descriptor(_CONFIG, config), "layers": [_descriptor(_LAYER, layer)]}
    return {"schemaVersion": 2, "mediaType": _MANIFEST, **parts}


def _names(name: str) -> dict[str, str]:
    """Name the image twice: the standard has only the tag, containerd reads the whole name."""
    return {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{_digest(blob)}", "size": len(blob)}


def _tar(files: dict[str, bytes], mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _digest(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()
