"""How a cluster is, by its own account: what `/healthz` says, check by check."""

from __future__ import annotations

import re
from http.client import HTTPException, HTTPSConnection
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from navarch.cluster.embedded.cluster_folder import ClusterFolder
from navarch.errors import NavarchError

__all__ = ["ClusterHealth", "Problem", "ask_health"]

ClusterState = Literal["running", "degraded", "not answering", "stopped"]

_SECONDS: Final = 3.0
_MOST_BYTES: Final = 2**20
_LINE: Final = re.compile(
    r"\[(?P<sign>[+-])\](?P<check>\S+) (?:ok|failed: (?P<cause>.*?))(?: \(restarts: (?P<restarts>\d+)\))?"
)


class Problem(NamedTuple):
    """A check that fails, and how often the task behind it was restarted."""

    check: str
    cause: str
    restarts: int


class ClusterHealth(NamedTuple):
    """The state of a cluster, why it is not `running` in the full sense, and how many restarts of tasks there were."""

    state: ClusterState
    problems: list[Problem]
    restarts: int = 0

    @property
    def is_well(self) -> bool:
        """Whether nobody has to do anything."""
        return not self.problems


def ask_health(folder: ClusterFolder) -> ClusterHealth:
    """Asks the cluster of a folder; one that does not answer within three seconds is `not answering`."""
    if folder.running() is None:
        return ClusterHealth("stopped", [])
    try:
        text = _healthz(folder)
    except (OSError, HTTPException, NavarchError) as error:
        return ClusterHealth("not answering", [Problem("healthz", str(error) or type(error).__name__, 0)])
    found = [match for line in text.splitlines() if (match := _LINE.fullmatch(line)) is not None]
    problems = [
        Problem(match["check"], match["cause"], int(match["restarts"] or 0)) for match in found if match["sign"] == "-"
    ]
    restarts = sum(int(match["restarts"] or 0) for match in found)
    return ClusterHealth("degraded" if problems else "running", problems, restarts)


def _healthz(folder: ClusterFolder) -> str:
    from navarch.client import load  # noqa: PLC0415 - commands that ask the cluster nothing start sooner

    config = load(folder.kubeconfig)
    place = urlsplit(config.server)
    connection = HTTPSConnection(place.netloc, context=config.ssl_context(), timeout=_SECONDS)
    try:
        connection.request("GET", "/healthz?verbose")
        return connection.getresponse().read(_MOST_BYTES).decode("utf-8", "replace")
    finally:
        connection.close()
