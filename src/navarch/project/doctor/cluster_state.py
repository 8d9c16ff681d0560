"""Checks of the cluster: it answers, its clock, CRDs, and the permissions of the user."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

from navarch._base.clock import Clock
from navarch._base.tasks import within
from navarch.api import Resource
from navarch.client import Client, Config, Request, Response, Transport, connect, load
from navarch.client.transport import WrappedTransport
from navarch.errors import ConfigError, NavarchError, Unauthorized
from navarch.operator import Operator, needed_by
from navarch.operator.crds import CrdFindings, inspect_crds
from navarch.operator.foreign_kinds import INSTALL_THEM, foreign_kinds, missing_kinds
from navarch.operator.permissions import missing_permissions
from navarch.operator.roles import Permission
from navarch.project.doctor.finding import Finding, Health
from navarch.project.doctor.project_state import ProjectState

_SECONDS: Final = 5.0
_SKEW_WARNED, _SKEW_REFUSED = 5.0, 60.0
"""Seconds between the clocks from which on tokens, certificates and leases begin to fail."""
_SHOWN: Final = 4
T = TypeVar("T")


@dataclass(slots=True)
class ClusterCheck:
    """What was found of the cluster; `minor` is its minor version, None if it does not answer."""

    findings: list[Finding] = field(default_factory=list)
    minor: int | None = None


async def check_cluster(context: str | None, project: ProjectState, clock: Clock) -> ClusterCheck:
    """Checks the cluster of kubectl, or of another context. Each request is bounded in time."""
    found = ClusterCheck()
    try:
        config = load(context=context)
    except ConfigError as error:
        found.findings.append(Finding("cluster", "fail", str(error), _START))
        return found
    dates = _Dates(clock)
    async with connect(config) as plain:
        client = plain.through(lambda transport: _DatedTransport(transport, dates)).using(timeout=_SECONDS)
        await _check_version(client, config, clock, found)
        if found.minor is None:
            return found
        found.findings.append(_clock_finding(dates.skew))
        if project.operator is not None:
            found.findings.append(await _check_crds(client, project, clock))
            found.findings.extend(await _check_foreign_kinds(client, project, clock))
            found.findings.append(await _check_permissions(client, project.operator, clock))
    return found


_START: Final = 'eval "$(navarch cluster up)"'


async def _bounded(clock: Clock, work: Coroutine[Any, Any, T]) -> T:
    """Returns the result; a call that is retried ends in time, and several calls together may take twice as long."""
    return await within(clock, 2 * _SECONDS, work)


async def _check_version(client: Client, config: Config, clock: Clock, found: ClusterCheck) -> None:
    try:
        version = await _bounded(clock, client.discovery.version())
    except Unauthorized as error:
        fix = "log in again, or renew the token of this context: kubectl config view --minify"
        found.findings.append(Finding("cluster", "fail", f"{config.origin}: {error}", fix))
    except (NavarchError, TimeoutError) as error:
        found.findings.append(Finding("cluster", "fail", f"{config.origin}: {error}", _START))
    else:
        digits = "".join(each for each in version.minor if each.isdigit())
        found.minor = int(digits or 0)
        found.findings.append(Finding("cluster", "ok", f"{version.git_version} at {config.server}"))


def _inspected(project: ProjectState) -> list[Any]:
    """Returns the classes whose CRDs are compared with those of the cluster."""
    assert project.operator is not None
    primaries = [each.primary for each in project.operator.controllers if issubclass(each.primary, Resource)]
    return list(dict.fromkeys([*project.kinds, *primaries]))


async def _check_crds(client: Client, project: ProjectState, clock: Clock) -> Finding:
    kinds = _inspected(project)
    try:
        found = await _bounded(clock, inspect_crds(client, kinds))
    except (NavarchError, TimeoutError) as error:
        return Finding("CRDs", "fail", str(error), "ask for permission to get customresourcedefinitions")
    return _crd_finding(found, len({each.__kind__.resource for each in kinds}))  # versions share one


def _crd_finding(found: CrdFindings, count: int) -> Finding:
    if found.missing:
        return Finding("CRDs", "fail", f"not installed: {', '.join(found.missing)}", "navarch install")
    if found.faults:
        return Finding("CRDs", "fail", "; ".join(found.faults), "navarch install")
    if found.differences:
        differing = "; ".join(f"{each.crd} {each.version} at {each.differs_at}" for each in found.differences)
        return Finding("CRDs", "warn", f"other schemas than those of the code: {differing}", "navarch install")
    return Finding("CRDs", "ok", f"{count} installed, with the schemas of the code")


async def _check_foreign_kinds(client: Client, project: ProjectState, clock: Clock) -> list[Finding]:
    """Checks that the server serves the kinds of other projects that the operator needs; no finding if it needs none."""
    assert project.operator is not None
    needed = foreign_kinds(project.operator, {each.__kind__.resource for each in _inspected(project)})
    if not needed:
        return []
    check = "CRDs of others"
    try:
        missing = await _bounded(clock, missing_kinds(client, needed))
    except (NavarchError, TimeoutError) as error:
        return [Finding(check, "fail", str(error), "kubectl api-resources")]
    if missing:
        return [Finding(check, "fail", f"not installed: {', '.join(map(str, missing))}", INSTALL_THEM)]
    return [Finding(check, "ok", f"all {len(needed)} that the operator needs")]


async def _check_permissions(client: Client, operator: Operator, clock: Clock) -> Finding:
    """Checks what the user may do who runs the operator from here, without an election."""
    needed = needed_by(operator, election_namespace=None, webhook_namespace=client.options.namespace)
    try:
        missing = await _bounded(clock, missing_permissions(client, needed))
    except (NavarchError, TimeoutError) as error:
        return Finding("permissions", "fail", str(error), "kubectl auth can-i --list")
    if not missing:
        return Finding("permissions", "ok", f"all {len(needed)} that the operator needs")
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    listed = ", ".join(map(_permission, missing[:_SHOWN]))
    fix = "use a context that has them: kubectl config use-context; or navarch run --cluster"
    return Finding("permissions", "fail", f"missing: {listed}{more}", fix)


def _permission(permission: Permission) -> str:
    resource = ".".join(filter(None, (permission.resource, permission.group)))
    part = f"/{permission.subresource}" if permission.subresource else ""
    place = f" in {permission.namespace}" if permission.namespace else ""
    return f"{permission.verb} {resource}{part}{place}"


# The clock


class _Dates:
    """How far the server's clock is away, by the Date header of its answers, which has whole seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.skew: float | None = None

    def now(self) -> datetime:
        """Returns the time of this machine."""
        return self._clock.now()

    def note(self, header: str, sent: datetime) -> None:
        """Takes the header of an answer whose request was sent then: the server wrote it between these moments."""
        try:
            theirs = parsedate_to_datetime(header)
        except ValueError:
            return
        early = (theirs - self._clock.now()).total_seconds()
        late = (theirs - sent).total_seconds() + 1.0
        self.skew = early if early > 0 else min(late, 0.0)


class _DatedTransport(WrappedTransport):
    """Notes the dates of answers."""

    def __init__(self, transport: Transport, dates: _Dates) -> None:
        super().__init__(transport)
        self._dates = dates

    async def send(self, request: Request) -> Response:
        """See `Transport.send`."""
        sent = self._dates.now()
        response = await self._transport.send(request)
        if header := response.headers.get("Date"):
            self._dates.note(header, sent)
        return response


def _clock_finding(skew: float | None) -> Finding:
    if skew is None:
        return Finding("clock", "warn", "the server sends no Date, so that its clock is unknown")
    if abs(skew) <= _SKEW_WARNED:
        return Finding("clock", "ok", "as the server's")
    state: Health = "fail" if abs(skew) > _SKEW_REFUSED else "warn"
    side = "behind" if skew > 0 else "ahead of"
    return Finding("clock", state, f"{abs(skew):.0f} s {side} the server's", "sudo timedatectl set-ntp true")
