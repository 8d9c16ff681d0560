"""What a pod finds of its cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mount:
    """What a pod finds: a folder with the token of its ServiceAccount, and where the server is."""

    folder: Path
    environment: dict[str, str]

    @property
    def token(self) -> str:
        return str(self.folder / "token")

    @property
    def authority(self) -> str:
        return str(self.folder / "ca.crt")
