"""The options `--record-permissions` and `--as-operator`: what they do with the clusters of a session's tests.

Only a session with one of them imports this module.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final

import msgspec
import pytest

from navarch.errors import ConfigError
from navarch.operator import Operator, load_operator
from navarch.project.manifests.model import DeploymentModel
from navarch.project.permissions import declared_permissions
from navarch.project.project import Project
from navarch.project.recorded_calls import RECORDED_FILE, RecordedCall, Recording, recording_of
from navarch.project.role_files import ProjectRoles
from navarch.testing.call_recorder import CallRecorder, ObservedCall
from navarch.testing.cluster import Cluster
from navarch.testing.operator_cluster import DeployedOperator, OperatorCluster

_FROM_WORKERS: Final = "navarch_permissions"
_ORIGIN_DEPTH: Final = 12
"""How many frames of its creation each coroutine remembers while calls are recorded."""


class _WorkerReport(msgspec.Struct):
    """What one process of pytest-xdist reports to the one that writes the file."""

    calls: list[RecordedCall]
    deselected: list[str]


class PermissionSession:
    """The hooks of one session of pytest."""

    def __init__(self, config: pytest.Config, *, records: bool, as_operator: bool) -> None:
        try:
            self._project = Project.find(config.rootpath)
            self._roles = ProjectRoles.read(self._project) if as_operator else None
        except ConfigError as error:
            raise pytest.UsageError(str(error)) from None
        self.records = records
        self._config = config
        self._recorders: dict[tuple[str, str], CallRecorder] = {}
        self._calls: set[RecordedCall] = set()
        self._passed: set[str] = set()
        self._skipped: set[str] = set()
        self._deselected: set[str] = set()
        self._summary = ""
        self._origin_depth = sys.get_coroutine_origin_tracking_depth()
        if records:
            sys.set_coroutine_origin_tracking_depth(_ORIGIN_DEPTH)

    @cached_property
    def _deployed(self) -> DeployedOperator:
        project = self._project
        operator = load_operator(project.settings.package)
        deployed = DeploymentModel.of(project, operator, ()).operator
        is_limited = deployed.namespaces.patterns != operator.namespaces.patterns
        return DeployedOperator(
            name=operator.name,
            root=project.root.resolve(),
            namespace=project.settings.namespace,
            watched=(deployed.namespaces.names or frozenset()) if is_limited else frozenset(),
            declared=frozenset(declared_permissions(deployed, project.settings.namespace)),
            roles=self._roles,
        )

    def pytest_unconfigure(self) -> None:
        """Coroutines remember as much of their creation as before."""
        sys.set_coroutine_origin_tracking_depth(self._origin_depth)

    def cluster_of(self, cluster: Cluster, test: str) -> Cluster:
        """Returns the cluster with which the test runs."""

        def observe(running: Operator, own_namespace: str, call: ObservedCall) -> None:
            if self.records:
                recorder = self._recorders.setdefault((test, own_namespace), CallRecorder(running, test, own_namespace))
                recorder(call)

        return OperatorCluster(cluster, self._deployed, observe)

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """Keeps which tests exist and are not run."""
        self._deselected.update(item.nodeid for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps which tests ran; a process of pytest-xdist reports them to the one that writes."""
        if report.skipped:
            self._skipped.add(report.nodeid)
        elif report.when == "call":
            self._passed.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Takes over what a process of pytest-xdist recorded."""
        report = getattr(node, "workeroutput", {}).get(_FROM_WORKERS)
        if report is not None:
            found = msgspec.json.decode(report, type=_WorkerReport)
            self._calls.update(found.calls)
            self._deselected.update(found.deselected)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Writes the file if all tests passed."""
        if not self.records:
            return
        self._calls.update(call for recorder in self._recorders.values() for call in recorder.calls)
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            report = _WorkerReport(sorted(self._calls), sorted(self._deselected))
            output[_FROM_WORKERS] = msgspec.json.encode(report).decode()
        elif exitstatus != pytest.ExitCode.OK:
            self._summary = f"{RECORDED_FILE} is unchanged: permissions are recorded when all tests pass"
        else:
            self._write()

    def _write(self) -> None:
        root = self._project.root
        try:
            before = Recording.read(root)
            left_out = {call.test for call in (before.calls if before else ()) if self._is_left_out(call.test)}
            recording = recording_of(self._calls, before, ran=self._passed, left_out=left_out)
            changed = recording.write(root)
        except (ConfigError, OSError) as error:
            raise pytest.UsageError(str(error)) from None
        count = len({call.permission for call in recording.calls})
        self._summary = f"{RECORDED_FILE}: {count} permissions" + (
            ", recorded; next: navarch generate rbac" if changed else ", unchanged"
        )

    def _is_left_out(self, test: str) -> bool:
        """Returns whether the test exists, but was not run: it was skipped or deselected, or others were asked for."""
        if test in self._passed:
            return False
        if test in self._deselected or test in self._skipped:
            return True
        is_limited = self._config.args_source is pytest.Config.ArgsSource.ARGS
        return is_limited and (self._config.rootpath / test.partition("::")[0]).is_file()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Says what was recorded."""
        if self._summary:
            terminalreporter.write_line(self._summary)
