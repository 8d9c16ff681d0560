"""What differs from run to run in the answers of an API server, replaced by words."""

from __future__ import annotations

import re
from typing import Any

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_VERSION = "resourceVersion"


def without_chance(value: Any) -> Any:
    """Returns a copy without uids, times and resourceVersions, in objects and in JSON patches.

    >>> without_chance({"resourceVersion": "7", "time": "2026-01-01T00:00:00Z"})
    {'resourceVersion': '<version>', 'time': '<time>'}
    """
    if isinstance(value, dict):
        varying = "value" if str(value.get("path", "")).endswith(f"/{_VERSION}") else _VERSION
        return {key: "<version>" if key == varying else without_chance(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_chance(item) for item in value]
    return _TIME.sub("<time>", _UID.sub("<uid>", value)) if isinstance(value, str) else value
