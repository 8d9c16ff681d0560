"""`permission_tests`: the roles of a project grant what its operator needs, and nothing else, in one line.

test_permissions = permission_tests()
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest

from navarch.errors import ConfigError
from navarch.operator import Operator
from navarch.project.least_privilege import missing_permissions, unused_permissions
from navarch.project.manifests.model import DeploymentModel
from navarch.project.project import Project
from navarch.project.recorded_calls import RECORDED_FILE, Recording
from navarch.project.role_files import ROLES_FOLDER, ProjectRoles

Case = Literal["used-verbs-are-granted", "granted-verbs-are-used"]


def permission_tests() -> Callable[..., None]:
    """Returns a test of the roles in `config/rbac`; give it a name that begins with `test`.

    It fails for a verb that the operator declares or that `pytest --record-permissions` recorded, and that no role grants;
    and for a verb that is granted and was never recorded, unless `Uses(..., why="...")` or the runtime explains it. It is
    skipped while permissions are recorded.
    """

    @pytest.mark.parametrize("case", ["used-verbs-are-granted", "granted-verbs-are-used"])
    def test(case: Case, operator: Operator, pytestconfig: pytest.Config) -> None:
        if pytestconfig.getoption("record_permissions", default=False):
            pytest.skip("permissions are being recorded; the next run of pytest compares them with the roles")
        try:
            faults = _faults(case, operator, Project.find(pytestconfig.rootpath))
        except ConfigError as error:
            pytest.fail(str(error), pytrace=False)
        if faults:
            expected = "to grant what the operator uses" if case == "used-verbs-are-granted" else "to grant no more"
            pytest.fail("\n- ".join([f"expected the roles in {ROLES_FOLDER} {expected}:", *faults]), pytrace=False)

    test.__doc__ = "The roles grant what the operator needs, and nothing else."
    return test


def _faults(case: Case, operator: Operator, project: Project) -> list[str]:
    recording = Recording.read(project.root)
    if recording is None:
        raise ConfigError(
            f"expected recorded permissions in {RECORDED_FILE}, got none; run: pytest --record-permissions"
        )
    granted = ProjectRoles.read(project).granted()
    own = project.settings.namespace
    deployed = DeploymentModel.of(project, operator, ()).operator
    if case == "used-verbs-are-granted":
        return missing_permissions(deployed, recording, granted, own_namespace=own)
    used = [call.permission for call in recording.calls]
    return unused_permissions(deployed, used, granted, own_namespace=own)
