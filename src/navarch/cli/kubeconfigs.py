"""Two kubeconfigs as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from navarch.errors import ConfigError

__all__ = ["merged"]

_LISTS = ("clusters", "users", "contexts")


def merged(own: Path, other: Path) -> str:
    """`own` with everything of `other`, whose context is the current one; `own` may not be there yet."""
    first, second = _read(own) if own.is_file() else {}, _read(other)
    result = {"apiVersion": "v1", "kind": "Config", **first}
    for part in _LISTS:
        given = {entry["name"] for entry in second[part]}
        kept = [entry for entry in first.get(part) or [] if entry.get("name") not in given]
        result[part] = [*kept, *second[part]]
    result["current-context"] = second["current-context"]
    return yaml.safe_dump(result, sort_keys=False)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"expected a kubeconfig in {path}: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"expected a kubeconfig in {path}, got {type(found).__name__}")
    return found
