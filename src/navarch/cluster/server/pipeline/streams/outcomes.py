"""How a command ended, as a Status."""

from __future__ import annotations

from collections.abc import Sequence

from navarch.cluster.server.wire.request import Json

__all__ = ["exited", "failed"]


def exited(code: int, command: Sequence[str]) -> Json:
    """A command that ran to its end."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    said = f"error executing command [{' '.join(command)}], exit code {code}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: {said}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failed(why: str) -> Json:
    """A command that could not be run."""
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {why}",
        "reason": "InternalError",
        "details": {"causes": [{"message": why}]},
        "code": 500,
    }
