"""`pytest --record-permissions`, `pytest --as-operator` and `permission_tests`, as a project has them."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest
import yaml

from navarch import Operator
from navarch.operator import roles_of
from navarch.project.manifests.model import DeploymentModel
from navarch.project.permissions import granted_permissions
from navarch.project.project import Project
from navarch.project.recorded_calls import RECORDED_FILE, RecordedCall, Recording
from navarch.testing import permission_session, role_tests

pytest_plugins = ["pytester"]

LOADED = (permission_session, role_tests)
"""Imported once: pytester forgets what a session within a session imports."""

PROJECT = """
domain: example.com
layout: [python.navarch.dev/v1]
projectName: larder
version: "3"
"""
INI = "[pytest]\npythonpath = src\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\ntestpaths = tests\n"
PACKAGE = """
from navarch import Operator

operator = Operator("larder", crds="verify")
"""
API = """
from navarch import Resource, Spec, Status


class LarderStatus(Status):
    seen: bool = False


class Larder(Resource[Spec, LarderStatus], group="food.example.com", version="v1"): ...
"""
CONTROLLER = """
import asyncio

from larder import operator
from larder.api import Larder
from navarch import Context
from navarch.k8s.core.v1 import ConfigMap, Secret
from navarch.operator import Uses

operator.uses += (Uses(ConfigMap, ("create", "get", "list", "patch", "watch")),)


@operator.controller(Larder, owns=(ConfigMap,))
async def reconcile(larder: Larder, ctx: Context) -> None:
    await ctx.apply(ConfigMap(name=larder.name, data={"a": "b"}))
    # HERE
    larder.status.seen = True
"""
TEST = """
import pytest

from larder.api import Larder
from navarch import Operator
from navarch.errors import NavarchError
from navarch.testing import Cluster


@pytest.mark.cluster(controllers=False)
async def test_larder_is_seen(cluster: Cluster, operator: Operator) -> None:
    async with cluster.run(operator):
        await cluster.apply(Larder(name="a"))
        await cluster.until(Larder, "a", lambda it: it.status.seen)
"""
WEBHOOK = """
from larder import operator
from larder.api import Larder


@operator.validate(Larder)
async def check(larder, review):
    if larder.name == "bad":
        review.deny("bad")
"""
REFUSED = """

@pytest.mark.cluster(controllers=False)
async def test_bad_larder_is_refused(cluster: Cluster, operator: Operator) -> None:
    async with cluster.run(operator):
        with pytest.raises(NavarchError, match="bad"):
            await cluster.create(Larder(name="bad"))
"""
PLUGINS = (
    *("--assert=plain", "--disable-plugin-autoload", "-p", "no:cacheprovider"),
    *("-p", "asyncio", "-p", "navarch.testing.plugin", "-o", "asyncio_default_fixture_loop_scope=function"),
)
"""Without what else this machine has; assertions of the whole package would be rewritten."""
READ = 'await ctx.client.list(Secret, namespace="default")'
OWN = "larder-system"
ACCOUNT = f"system:serviceaccount:{OWN}:larder-controller-manager"
TEST_ID = "tests/test_larder.py::test_larder_is_seen"
LINE = "src/larder/controllers/larders.py:15"


CALLS = tuple(
    RecordedCall(group=group, resource=resource, subresource=below, verb=verb, where="cluster", by="x", test=TEST_ID)
    for group, resource, below, verbs in (
        ("", "configmaps", "", "create list patch watch"),
        ("food.example.com", "larders", "", "list watch"),
        ("food.example.com", "larders", "status", "update"),
    )
    for verb in verbs.split()
)
"""As `test_calls_are_recorded_with_test_and_line` has them."""


class Larders:
    """A project in a folder of its own."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.root = pytester.path
        self.write("PROJECT", PROJECT)
        self.write("pytest.ini", INI)
        self.write("src/larder/__init__.py", PACKAGE)
        self.write("src/larder/api.py", API)
        self.write("src/larder/controllers/__init__.py", "")
        self.reconciles("pass")
        self.write("tests/test_larder.py", TEST)
        self.write(
            "tests/test_roles.py", "from navarch.testing import permission_tests\ntest_it = permission_tests()\n"
        )

    def write(self, path: str, text: str) -> None:
        """Writes one file."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))

    def read(self, path: str) -> str:
        """Returns the text of one file."""
        return (self.root / path).read_text()

    def reconciles(self, line: str) -> None:
        """The reconciler has this line, with the number of `LINE`."""
        self.write("src/larder/controllers/larders.py", CONTROLLER.lstrip().replace("# HERE", line))

    def pytest(self, *arguments: str) -> pytest.RunResult:
        """Runs pytest in it."""
        return self._pytester.runpytest_inprocess(*PLUGINS, *arguments)

    def recorded(self) -> dict[str, RecordedCall]:
        """What is recorded, by its permission."""
        recording = Recording.read(self.root)
        assert recording is not None
        return {str(call.permission).removesuffix(" in the whole cluster"): call for call in recording.calls}

    def record(self, *more: RecordedCall) -> None:
        """Writes what the tests of the project record, and more."""
        Recording(calls=(*CALLS, *more)).write(self.root)

    def generate(self, operator: Operator) -> None:
        """Writes roles for an operator, as `navarch generate rbac` does for that of the project."""
        deployed = DeploymentModel.of(Project.find(self.root), operator, ()).operator
        granted = granted_permissions(deployed, Recording.read(self.root), own_namespace=OWN)
        roles = roles_of("larder-manager-role", [each.permission for each in granted], ACCOUNT)
        self.write("config/rbac/role.yaml", yaml.safe_dump_all(roles))


@pytest.fixture
def larders(pytester: pytest.Pytester) -> Larders:
    """A fresh project."""
    return Larders(pytester)


def declared(*, validates: bool = False) -> Operator:
    """The operator of the project, as its modules declare it: they belong to the inner session."""
    from navarch import Context, Resource, Review, Spec, Status
    from navarch.k8s.core.v1 import ConfigMap
    from navarch.operator import Uses

    class Larder(Resource[Spec, Status], group="food.example.com", version="v1"): ...

    operator = Operator("larder", crds="verify", uses=(Uses(ConfigMap, ("create", "get", "list", "patch", "watch")),))

    @operator.controller(Larder, owns=(ConfigMap,))
    async def reconcile(larder: Larder, ctx: Context) -> None: ...

    async def check(larder: Larder, review: Review[Larder]) -> None: ...

    if validates:
        operator.validate(Larder)(check)
    return operator


def test_calls_are_recorded_with_test_and_line(larders: Larders) -> None:
    """What the user's code does has its line, what the runtime does its controller; circumstances are left out."""
    larders.reconciles(READ)
    outcome = larders.pytest("--record-permissions")
    outcome.assert_outcomes(passed=1, skipped=2)
    outcome.stdout.fnmatch_lines([f"{RECORDED_FILE}: * permissions, recorded; next: navarch generate rbac"])
    recorded = larders.recorded()
    assert {name: call.by for name, call in recorded.items()} == {
        "create configmaps": "reconcile",
        "list configmaps": "Uses(ConfigMap, …); controller larder owns it",
        "list larders.food.example.com": "controller larder reconciles it",
        "list secrets": "reconcile",
        "patch configmaps": "reconcile",
        "update larders.food.example.com/status": "controller larder",
        "watch configmaps": "Uses(ConfigMap, …); controller larder owns it",
        "watch larders.food.example.com": "controller larder reconciles it",
    }
    assert recorded["list secrets"].line == LINE
    assert str(larders.root) not in larders.read(RECORDED_FILE)
    assert recorded["list secrets"].where == "namespace"
    assert {call.test for call in recorded.values()} == {TEST_ID}


def test_call_in_a_task_of_its_own_has_its_line(larders: Larders) -> None:
    """`asyncio.gather` hands coroutines to tasks that do not know who waits for them."""
    larders.reconciles('await asyncio.gather(ctx.client.get(Secret, "a", namespace="default"), return_exceptions=True)')
    larders.pytest("--record-permissions").assert_outcomes(passed=1, skipped=2)
    assert larders.recorded()["get secrets"].line == LINE


def test_call_in_the_operators_namespace_is_told_from_others(larders: Larders) -> None:
    """The operator runs in its own namespace, as it is deployed."""
    larders.reconciles("await ctx.client.list(Secret)")
    larders.pytest("--record-permissions").assert_outcomes(passed=1, skipped=2)
    assert larders.recorded()["list secrets"].where == "own"


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_same_tests_record_the_same_bytes_also_in_other_processes(larders: Larders, workers: str) -> None:
    """Two tests make the same calls; with pytest-xdist each process has its own part."""
    larders.write("tests/test_again.py", TEST.replace("is_seen", "is_seen_again"))
    larders.pytest("--record-permissions").assert_outcomes(passed=2, skipped=2)
    alone = (larders.root / RECORDED_FILE).read_bytes()
    (larders.root / RECORDED_FILE).unlink()
    larders.pytest("--record-permissions", "-p", "xdist", "-n", workers).assert_outcomes(passed=2, skipped=2)
    assert (larders.root / RECORDED_FILE).read_bytes() == alone
    assert {call.test for call in larders.recorded().values()} == {"tests/test_again.py::test_larder_is_seen_again"}


def test_failed_session_records_nothing(larders: Larders) -> None:
    """Of a test that fails nobody knows whether it did all that it should."""
    larders.write("tests/test_wrong.py", "def test_wrong():\n    assert False\n")
    outcome = larders.pytest("--record-permissions")
    outcome.assert_outcomes(passed=1, failed=1, skipped=2)
    outcome.stdout.fnmatch_lines([f"{RECORDED_FILE} is unchanged: *"])
    assert not (larders.root / RECORDED_FILE).exists()


@pytest.mark.parametrize(
    ("arguments", "deselected"),
    [(["tests/test_larder.py"], 0), pytest.param(["-k", "is_seen and not again"], 3, marks=pytest.mark.long)],
)
def test_run_of_one_test_keeps_what_others_recorded(larders: Larders, arguments: list[str], deselected: int) -> None:
    """A whole run drops it when the test is gone."""
    larders.write("tests/test_again.py", TEST.replace("is_seen", "is_seen_again"))
    larders.reconciles(READ)
    larders.pytest("--record-permissions").assert_outcomes(passed=2, skipped=2)
    larders.reconciles("pass")
    larders.pytest("--record-permissions", *arguments).assert_outcomes(passed=1, deselected=deselected)
    assert "list secrets" in larders.recorded()
    larders.pytest("--record-permissions").assert_outcomes(passed=2, skipped=2)
    assert "list secrets" not in larders.recorded()


def test_option_outside_of_a_project_says_what_is_expected(pytester: pytest.Pytester) -> None:
    """One sentence instead of a traceback."""
    pytester.makepyfile("def test_it(): ...")
    outcome = pytester.runpytest_inprocess(*PLUGINS, "--record-permissions")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: expected an operator project, *navarch init*"])


def test_roles_that_grant_what_is_recorded_pass(larders: Larders) -> None:
    """Those of `navarch generate rbac`: nothing is missing, nothing is too much, and the operator can work under them."""
    larders.reconciles(READ)
    larders.pytest("--record-permissions")
    program = (sys.executable, "-m", "navarch", "generate", "rbac")
    subprocess.run(program, cwd=larders.root, check=True, capture_output=True)
    assert f"#   list: reconcile in {LINE.partition(':')[0]} ({TEST_ID})\n" in larders.read("config/rbac/role.yaml")
    larders.pytest("--as-operator").assert_outcomes(passed=3)


def test_roles_without_a_recording_fail_with_the_remedy(larders: Larders) -> None:
    """The test does not pass because nothing is known."""
    outcome = larders.pytest("tests/test_roles.py")
    outcome.assert_outcomes(failed=2)
    outcome.stdout.fnmatch_lines([f"expected recorded permissions in {RECORDED_FILE}, *pytest --record-permissions"])


def test_verb_that_is_used_and_not_granted_fails(larders: Larders) -> None:
    """The message has verb, resource, line, test and remedy; with --as-operator the API server refuses it."""
    larders.record()
    larders.generate(declared())
    larders.reconciles(READ)
    larders.record(RecordedCall(resource="secrets", verb="list", where="namespace", line=LINE, by="x", test=TEST_ID))
    outcome = larders.pytest("tests/test_roles.py")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(
        [f"- list secrets in the whole cluster is not granted; used by {LINE} in {TEST_ID}; run: navarch generate rbac"]
    )
    outcome = larders.pytest("--as-operator", "tests/test_larder.py")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(
        [
            f"*expected {ACCOUNT} to be allowed to list secrets in namespace default, but * reconcile ({LINE}) asks for it. *",
        ]
    )


def test_refused_call_fails_a_test_that_would_pass(larders: Larders) -> None:
    """Code that swallows the refusal does not hide it."""
    larders.record()
    larders.generate(declared())
    larders.reconciles('await asyncio.gather(ctx.client.get(Secret, "a", namespace="default"), return_exceptions=True)')
    larders.pytest("tests/test_larder.py").assert_outcomes(passed=1)
    larders.pytest("--as-operator", "tests/test_larder.py").assert_outcomes(failed=1)


def test_verb_that_is_granted_and_not_used_fails(larders: Larders) -> None:
    """The operator declares more than it does."""
    larders.record()
    more = declared()
    more.uses = ()
    larders.generate(more)
    larders.write("src/larder/controllers/larders.py", CONTROLLER.replace("operator.uses +=", "unused ="))
    outcome = larders.pytest("tests/test_roles.py")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(
        ["- delete configmaps in the whole cluster is granted by ClusterRole larder-manager-role *why=*"]
    )


def test_declaration_that_roles_lack_fails_at_the_start(larders: Larders) -> None:
    """With --as-operator, the operator's own check has the reason and the command."""
    larders.record()
    less = declared()
    less.controllers.clear()
    larders.generate(less)
    outcome = larders.pytest("--as-operator", "tests/test_larder.py")
    outcome.assert_outcomes(failed=1)
    outcome.stdout.fnmatch_lines(
        ["*larders.food.example.com/finalizers*update*", "*config/rbac is older than the code: *"]
    )


@pytest.mark.parametrize("settings", ["namespaced: true\n", "watch-namespaces = ['team-a', 'team-b']\n"])
def test_operator_of_some_namespaces_is_enforced_in_the_namespace_of_the_tests(larders: Larders, settings: str) -> None:
    """Its roles are those of its namespaces; of the cluster it has CRDs and reviews alone."""
    if settings.startswith("namespaced"):
        larders.write("PROJECT", PROJECT + settings)
    else:
        larders.write("pyproject.toml", f"[tool.navarch]\n{settings}")
    larders.pytest("--record-permissions").assert_outcomes(passed=1, skipped=2)
    larders.generate(declared())
    roles = [*yaml.safe_load_all(larders.read("config/rbac/role.yaml"))]
    (rules,) = [each["rules"] for each in roles if each["kind"] == "ClusterRole"]
    assert {each["resources"][0] for each in rules} == {
        "customresourcedefinitions",
        "subjectaccessreviews",
        "tokenreviews",
    }
    larders.pytest("--as-operator", "tests/test_larder.py").assert_outcomes(passed=1)


@pytest.mark.parametrize("certificates", ["cert-manager", pytest.param("self", marks=pytest.mark.long)])
def test_webhooks_are_registered_under_the_roles(larders: Larders, certificates: str) -> None:
    """By the operator itself or, in production, by the manifests: then the test alone lets it do so."""
    larders.write("pyproject.toml", f"[tool.navarch]\ncertificates = '{certificates}'\n")
    larders.write("src/larder/webhooks/__init__.py", "")
    larders.write("src/larder/webhooks/larders.py", WEBHOOK)
    larders.write("tests/test_larder.py", TEST + REFUSED)
    larders.pytest("--record-permissions", "tests/test_larder.py").assert_outcomes(passed=2)
    larders.generate(declared(validates=True))
    rules = yaml.safe_load(larders.read("config/rbac/role.yaml").partition("---")[0])["rules"]
    (verbs,) = [each["verbs"] for each in rules if each["resources"] == ["validatingwebhookconfigurations"]]
    assert ("create" in verbs) is (certificates == "self")
    larders.pytest("--as-operator").assert_outcomes(passed=4)


def test_other_operators_of_a_test_run_as_the_administrator(larders: Larders) -> None:
    """The roles are those of the project's operator alone, and so is the recording."""
    larders.write(
        "tests/test_other.py",
        """
        from navarch import Operator
        from navarch.k8s.core.v1 import ConfigMap, Node


        async def test_other(cluster):
            other = Operator("other")

            @other.controller(Node)
            async def reconcile(node, ctx):
                await ctx.client.create(ConfigMap(name="seen"))

            async with cluster.run(other):
                await cluster.create(Node(name="a"))
                await cluster.until(ConfigMap, "seen", bool)
        """,
    )
    larders.pytest("--record-permissions").assert_outcomes(passed=2, skipped=2)
    assert not any("nodes" in name for name in larders.recorded())
    larders.generate(declared())
    larders.pytest("--as-operator", "tests/test_other.py").assert_outcomes(passed=1)


def test_fixture_without_a_project_says_what_is_expected(pytester: pytest.Pytester) -> None:
    """One sentence instead of a traceback."""
    pytester.makepyfile("def test_it(operator): ...")
    outcome = pytester.runpytest_inprocess(*PLUGINS)
    outcome.assert_outcomes(errors=1)
    outcome.stdout.fnmatch_lines(["the fixture `operator`: expected an operator project, *navarch init*"])
    outcome.stdout.no_fnmatch_line("*Traceback*")


def test_fixture_of_the_user_takes_the_place_of_operator(larders: Larders) -> None:
    """A project that makes its operator in a function says so once."""
    larders.write("tests/conftest.py", "import pytest\n\n\n@pytest.fixture\ndef operator():\n    return 'mine'\n")
    larders.write("tests/test_mine.py", "def test_it(operator):\n    assert operator == 'mine'\n")
    larders.pytest("tests/test_mine.py").assert_outcomes(passed=1)


def test_calls_through_a_client_of_the_test_are_recorded_too(larders: Larders) -> None:
    """A test with failing requests shows what the operator does then."""
    larders.write(
        "tests/test_larder.py",
        TEST.replace(
            "cluster.run(operator)", "cluster.run(operator, client=faulty(cluster.client, lambda _: None))"
        ).replace("import Cluster", "import Cluster, faulty"),
    )
    larders.pytest("--record-permissions").assert_outcomes(passed=1, skipped=2)
    assert "create configmaps" in larders.recorded()


def test_roles_that_are_missing_end_the_session(larders: Larders) -> None:
    """--as-operator without roles would mean nothing."""
    outcome = larders.pytest("--as-operator")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: config/rbac: expected roles that are bound to *navarch generate rbac"])


def test_broken_recording_is_left_alone(larders: Larders) -> None:
    """Nobody's file is overwritten because it cannot be read."""
    larders.write(RECORDED_FILE, "broken")
    outcome = larders.pytest("--record-permissions")
    assert outcome.ret != pytest.ExitCode.OK
    assert larders.read(RECORDED_FILE) == "broken"
    assert "record anew" in outcome.stdout.str() + outcome.stderr.str()
