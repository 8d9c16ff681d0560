"""The configuration of an image: how its container starts, and where its code comes from."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from navarch._version import __version__
from navarch.errors import ConfigError
from navarch.oci.documents import ImageConfig, LayerHistory, Platform, ProcessConfig, RootFs
from navarch.project.image.project_metadata import ProjectMetadata

USER: Final = "65532:65532"
"""The user of containers, who owns no file of the image; the Deployment's security context has the same."""
_SECONDS: Final = 30.0
# Of another user's folder too, and without programs that a repository's configuration names.
_GIT: Final = ("git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false")


class SourceRevision(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that an image is built from."""

    commit: str = ""
    """With `-dirty` if files differ from it; empty outside of git."""
    created: str
    """The commit's time: an image has no time of its own, so that the same commit gives the same digest."""


def revision_of(root: Path) -> SourceRevision:
    """Returns the commit of the folder; its time is `SOURCE_DATE_EPOCH` if that is set, and 1970 outside of git."""
    commit, _, seconds = _git(root, "log", "-1", "--format=%H %ct").partition(" ")
    changed = commit and _git(root, "status", "--porcelain", "--untracked-files=no", "--", ".")
    stated = os.environ.get("SOURCE_DATE_EPOCH", "") or seconds or "0"
    try:
        created = datetime.fromtimestamp(int(stated), UTC)
    except (ValueError, OverflowError, OSError):
        raise ConfigError(f"SOURCE_DATE_EPOCH: expected seconds since 1970, got {stated!r}") from None
    return SourceRevision(commit=f"{commit}-dirty" if changed else commit, created=f"{created:%Y-%m-%dT%H:%M:%SZ}")


def labels_of(metadata: ProjectMetadata, revision: SourceRevision, *, base: str, base_digest: str) -> dict[str, str]:
    """Returns the image's labels, those of OCI, as far as they are known."""
    found = {
        "title": metadata.name,
        "description": metadata.description,
        "version": metadata.version,
        "licenses": metadata.license_expression,
        "revision": revision.commit,
        "source": metadata.source,
        "created": revision.created,
        "base.name": base,
        "base.digest": base_digest,
    }
    return {f"org.opencontainers.image.{name}": value for name, value in found.items() if value}


def image_config(
    platform: Platform,
    package: str,
    layers: Sequence[tuple[str, str]],
    *,
    python: str,
    env: Sequence[str],
    labels: dict[str, str],
    created: str,
) -> ImageConfig:
    """Returns the configuration; `layers` are diff ids, with what each layer holds."""
    return ImageConfig(
        architecture=platform.architecture,
        os=platform.os,
        variant=platform.variant,
        created=created,
        author=f"navarch {__version__}",
        config=ProcessConfig(
            user=USER,
            env=list(env),
            entrypoint=[f"/{python}", "-m", package],
            working_dir="/",
            labels=labels,
        ),
        rootfs=RootFs(type="layers", diff_ids=[diff_id for diff_id, _ in layers]),
        history=[LayerHistory(created=created, created_by=f"navarch image build: {what}") for _, what in layers],
    )


def _git(root: Path, *arguments: str) -> str:
    """Returns what git prints; empty if there is no git, no repository or no commit."""
    try:
        done = subprocess.run(  # noqa: S603 - git, and arguments of ours
            [*_GIT, *arguments],
            cwd=root,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
