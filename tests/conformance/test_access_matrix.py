"""Who may what: every verb on every sort of thing, asked for by several people, on both engines.

Nothing that is asked for exists or makes sense: whoever is let in gets another answer than 403, and nothing changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from http.client import HTTPSConnection
from typing import Any, NamedTuple

import msgspec
import pytest

from gadgets import installed
from navarch.api import Dynamic
from navarch.client import Client, Config
from navarch.k8s.authentication.v1 import TokenRequest, TokenRequestSpec
from navarch.k8s.core.v1 import ServiceAccount
from navarch.k8s.rbac.v1 import Role
from rig.waiting import wait_for
from wire import Wire

RBAC = "rbac.authorization.k8s.io"
LET_IN = "let in"
NAMED = ("get", "update", "patch", "delete")
UNNAMED = ("list", "watch", "create", "deletecollection")
SECONDS = 60.0
METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
QUERIES = {"watch": "?watch=1&resourceVersion=rubbish", "patch": "?dryRun=All"}
BODIES = {"DELETE": {"dryRun": ["All"]}}


class Thing(NamedTuple):
    """What may be asked for: a resource, or with a slash its subresource."""

    group: str
    resource: str
    namespaced: bool = True

    @property
    def subresource(self) -> str:
        return self.resource.partition("/")[2]

    def verbs(self) -> Sequence[str]:
        return ("create", *NAMED[:3]) if self.subresource else (*NAMED, *UNNAMED)

    def path(self, namespace: str, verb: str, name: str) -> str:
        """Where it is asked for with that verb."""
        root = f"/apis/{self.group}/v1" if self.group else "/api/v1"
        plural, _, subresource = self.resource.partition("/")
        place = f"/namespaces/{namespace}" if self.namespaced else ""
        named = f"/{name}" if verb in NAMED or subresource else ""
        return f"{root}{place}/{plural}{named}{f'/{subresource}' if subresource else ''}{QUERIES.get(verb, '')}"

    def forbidden(self, user: str, namespace: str, verb: str, name: str) -> str:
        """What whoever may not is told."""
        plural, _, subresource = self.resource.partition("/")
        kind = f"{plural}.{self.group}" if self.group else plural
        whose = f' "{name}"' if verb in NAMED or subresource else ""
        where = f'in the namespace "{namespace}"' if self.namespaced else "at the cluster scope"
        what = f'cannot {verb} resource "{self.resource}" in API group "{self.group}" {where}'
        return f'{kind}{whose} is forbidden: User "{user}" {what}'


MAPS = Thing("", "configmaps")
SECRETS = Thing("", "secrets")
NODES = Thing("", "nodes", namespaced=False)
SCALE = Thing("apps", "deployments/scale")
DEPLOYMENTS = Thing("apps", "deployments")
TOKENS = Thing("", "serviceaccounts/token")
EVICTIONS = Thing("", "pods/eviction")
POD_STATUS = Thing("", "pods/status")
GADGETS = Thing("test.example.com", "gadgets")
GADGET_STATUS = Thing("test.example.com", "gadgets/status")
ROLES = Thing(RBAC, "roles")
CLUSTER_ROLES = Thing(RBAC, "clusterroles", namespaced=False)
THINGS = (
    MAPS,
    SECRETS,
    NODES,
    SCALE,
    DEPLOYMENTS,
    TOKENS,
    EVICTIONS,
    POD_STATUS,
    GADGETS,
    GADGET_STATUS,
    ROLES,
    CLUSTER_ROLES,
)
PAGES = (
    "/healthz",
    "/livez",
    "/readyz",
    "/version",
    "/api",
    "/apis",
    "/openapi/v2",
    "/metrics",
    "/logs/a",
    "/x",
    "/x/y",
)
PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
DISCOVERY = (*PUBLIC, "/api", "/apis", "/openapi/v2")

Grant = tuple[str, Thing]


def every(*things: Thing, verbs: Sequence[str] = ()) -> set[Grant]:
    return {(verb, thing) for thing in things for verb in thing.verbs() if not verbs or verb in verbs}


READ = ("get", "list", "watch")
ALLOWED: dict[str, set[Grant]] = {
    "nobody": set(),
    "reader": every(MAPS, verbs=READ),
    "namer": every(MAPS, verbs=("get", "update", "delete")),
    "scaler": every(SCALE),
    "installer": every(GADGETS, GADGET_STATUS),
    "keeper": every(NODES, verbs=("get", "patch")),
    "viewer": every(MAPS, DEPLOYMENTS, verbs=READ) | every(SCALE, POD_STATUS, verbs=("get",)),
    "owner": every(MAPS, SECRETS, DEPLOYMENTS, SCALE, ROLES)
    | every(TOKENS, EVICTIONS, verbs=("create",))
    | every(POD_STATUS, verbs=("get",)),
    "chief": every(*THINGS),
}
"""By the roles of `roles`; a name is given away for the one object that is asked for."""


def _rule(groups: str, resources: str, verbs: str, **more: Any) -> dict[str, Any]:
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(","), **more}


def roles() -> dict[str, dict[str, Any]]:
    """What each of them is bound to: a rule of their own, or a role that Kubernetes has."""
    return {
        "reader": _rule("", "configmaps", "get,list,watch"),
        "namer": _rule("", "configmaps", "get,update,delete,list", resourceNames=["mine"]),
        "scaler": _rule("apps", "deployments/scale", "*"),
        "installer": _rule("test.example.com", "*", "*"),
        "keeper": _rule("", "nodes", "get,patch"),
    }


class Asker:
    """Requests on one connection, as somebody else."""

    def __init__(self, config: Config) -> None:
        address = config.server.removeprefix("https://")
        self._connection = HTTPSConnection(address, context=config.ssl_context(), timeout=SECONDS)
        self._token = config.token

    def message(self, user: str, method: str, path: str, body: Any = None, groups: Sequence[str] = ()) -> str:
        """`LET_IN`, or how the refusal is worded."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if method == "GET" else json.dumps(body or BODIES.get(method, {})).encode()
        self._connection.putrequest(method, path)
        for name, value in self._headers(user, groups, kind, data):
            self._connection.putheader(name, value)
        self._connection.endheaders(data)
        with self._connection.getresponse() as answer:
            content = answer.read()
        return str(json.loads(content)["message"]) if answer.status == 403 else LET_IN

    def _headers(self, user: str, groups: Sequence[str], kind: str, data: bytes | None) -> Iterator[tuple[str, str]]:
        yield "Authorization", f"Bearer {self._token}"
        yield "Impersonate-User", user
        yield from (("Impersonate-Group", group) for group in groups)
        if data is not None:
            yield "Content-Type", kind
            yield "Content-Length", str(len(data))

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def wire(config: Config) -> Wire:
    return Wire(config)


@pytest.fixture
def asker(config: Config) -> Iterator[Asker]:
    asker = Asker(config)
    yield asker
    asker.close()


def _object(kind: str, name: str, **rest: Any) -> Dynamic:
    return Dynamic({"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": name}, **rest})


async def bind(client: Client, user: str, kind: str, role: str, *, everywhere: bool = False) -> None:
    """Gives a role to a user: in the client's namespace, or everywhere."""
    subjects = [{"kind": "User", "name": user, "apiGroup": RBAC}]
    reference = {"kind": kind, "name": role, "apiGroup": RBAC}
    scope = "ClusterRoleBinding" if everywhere else "RoleBinding"
    await client.create(_object(scope, user, subjects=subjects, roleRef=reference))


async def prepare(client: Client, suffix: str) -> None:
    """Roles and bindings of all; `prepared` waits for the last one of each kind."""
    for name, rule in roles().items():
        role = "ClusterRole" if name == "keeper" else "Role"
        await client.create(_object(role, f"{name}{suffix}", rules=[rule]))
        await bind(client, f"{name}{suffix}", role, f"{name}{suffix}", everywhere=name == "keeper")
    paths = [{"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]}]
    await client.create(_object("ClusterRole", f"caller{suffix}", rules=paths))
    await bind(client, f"caller{suffix}", "ClusterRole", f"caller{suffix}", everywhere=True)
    await bind(client, f"viewer{suffix}", "ClusterRole", "view")
    await bind(client, f"owner{suffix}", "ClusterRole", "admin")
    await bind(client, f"chief{suffix}", "ClusterRole", "cluster-admin", everywhere=True)


def until_known(asker: Asker, user: str, method: str, path: str) -> None:
    """The real server learns of roles a moment later."""
    wait_for(f"{user} to be let in", lambda: asker.message(user, method, path) == LET_IN, seconds=SECONDS)


@pytest.fixture
async def prepared(client: Client, asker: Asker) -> str:
    """The end of everybody's name, which is another in each test: others have roles everywhere, too.

    The real server hears of Roles, RoleBindings, ClusterRoles and ClusterRoleBindings apart.
    """
    namespace, suffix = str(client.options.namespace), f"-{client.options.namespace}"
    await installed(client)
    await prepare(client, suffix)
    until_known(asker, f"installer{suffix}", "GET", GADGETS.path(namespace, "list", ""))
    until_known(asker, f"owner{suffix}", "GET", MAPS.path(namespace, "list", ""))
    until_known(asker, f"caller{suffix}", "GET", "/metrics")
    until_known(asker, f"chief{suffix}", "GET", "/x")
    return suffix


@pytest.mark.parametrize("person", ALLOWED)
async def test_every_verb_is_allowed_or_forbidden(client: Client, asker: Asker, prepared: str, person: str) -> None:
    """As the roles say, and whoever may not is told in Kubernetes' words."""
    namespace, user = client.options.namespace, f"{person}{prepared}"
    assert namespace is not None
    expected, found = {}, {}
    for thing in THINGS:
        for verb in thing.verbs():
            path, about = thing.path(namespace, verb, "mine"), (verb, f"{thing.resource}.{thing.group}")
            may = (verb, thing) in ALLOWED[person]
            expected[about] = LET_IN if may else thing.forbidden(user, namespace, verb, "mine")
            found[about] = asker.message(user, METHODS[verb], path)
    assert found == expected


async def test_a_role_for_one_name_is_for_no_other(client: Client, asker: Asker, prepared: str) -> None:
    """And for a list only if it asks for that name alone."""
    namespace, user = str(client.options.namespace), f"namer{prepared}"
    for verb in NAMED:
        refused = MAPS.forbidden(user, namespace, verb, "other")
        assert asker.message(user, METHODS[verb], MAPS.path(namespace, verb, "other")) == refused
    path = MAPS.path(namespace, "list", "")
    assert asker.message(user, "GET", f"{path}?fieldSelector=metadata.name%3Dmine") == LET_IN
    assert asker.message(user, "GET", path) == MAPS.forbidden(user, namespace, "list", "")


async def test_a_role_in_one_namespace_is_in_no_other(client: Client, asker: Asker, prepared: str) -> None:
    """Not even for who may everything there."""
    user = f"owner{prepared}"
    assert asker.message(user, "GET", MAPS.path("default", "get", "x")) == MAPS.forbidden(user, "default", "get", "x")
    everywhere = (
        f'configmaps is forbidden: User "{user}" cannot list resource "configmaps" in API group "" at the cluster scope'
    )
    assert asker.message(user, "GET", "/api/v1/configmaps") == everywhere


@pytest.mark.parametrize(
    ("person", "allowed"),
    [("nobody", DISCOVERY), ("caller", (*DISCOVERY, "/metrics", "/logs/a")), ("chief", PAGES)],
)
async def test_pages_are_allowed_or_forbidden(asker: Asker, prepared: str, person: str, allowed: Sequence[str]) -> None:
    """Everybody who is somebody may see what there is; the rest is given by path and verb."""
    user = f"{person}{prepared}"
    refused = {page: f'forbidden: User "{user}" cannot get path "{page}"' for page in PAGES}
    found = {page: asker.message(user, "GET", page) for page in PAGES}
    assert found == {page: LET_IN if page in allowed else refused[page] for page in PAGES}
    if person != "chief":
        assert asker.message(user, "POST", "/metrics") == f'forbidden: User "{user}" cannot post path "/metrics"'


async def test_masters_may_everything(client: Client, asker: Asker) -> None:
    """Whoever they are."""
    namespace = str(client.options.namespace)
    for thing in THINGS:
        for verb in thing.verbs():
            path = thing.path(namespace, verb, "mine")
            assert asker.message("eve", METHODS[verb], path, groups=("system:masters",)) == LET_IN


SECRET_RULE = _rule("", "secrets", "get")
NOT_HELD = (
    "is attempting to grant RBAC permissions not currently held:\n"
    '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
)


async def test_nobody_gives_away_what_they_do_not_have(client: Client, asker: Asker, prepared: str) -> None:
    """Neither in a role nor by binding one, unless they may escalate or bind."""
    namespace = str(client.options.namespace)
    root = f"/apis/{RBAC}/v1/namespaces/{namespace}"
    role = _object("Role", "more", rules=[SECRET_RULE])
    reference = {"kind": "Role", "name": "more", "apiGroup": RBAC}
    subjects = [{"kind": "User", "name": "eve", "apiGroup": RBAC}]
    binding = _object("RoleBinding", "more", subjects=subjects, roleRef=reference)
    for person, verbs in {"plain": "create", "lender": "create,bind", "climber": "create,escalate"}.items():
        user = f"{person}{prepared}"
        await client.create(_object("Role", user, rules=[_rule(RBAC, "roles,rolebindings", verbs)]))
        await bind(client, user, "Role", user)
        until_known(asker, user, "POST", f"{root}/roles")
        refused = f'user "{user}" (groups=["system:authenticated"]) {NOT_HELD}'
        may_write = asker.message(user, "POST", f"{root}/roles?dryRun=All", role)
        assert may_write == (LET_IN if person == "climber" else f'roles.{RBAC} "more" is forbidden: {refused}')
        await client.apply(_object("Role", "more", rules=[SECRET_RULE]))
        may_bind = asker.message(user, "POST", f"{root}/rolebindings?dryRun=All", binding)
        assert may_bind == (LET_IN if person == "lender" else f'rolebindings.{RBAC} "more" is forbidden: {refused}')
        await client.delete(Role, "more")


async def test_only_who_may_impersonate_does(client: Client, config: Config, asker: Asker) -> None:
    """Users, groups and ServiceAccounts are each given by name."""
    namespace = str(client.options.namespace)
    await client.create(ServiceAccount(name="actor"))
    request = TokenRequest(spec=TokenRequestSpec(audiences=[]))
    answered = await client.create_subresource(ServiceAccount, "actor", "token", request)
    actor = Asker(msgspec.structs.replace(config, token=answered.status.token))
    name = f"system:serviceaccount:{namespace}:actor"
    rules = [_rule("", "users", "impersonate", resourceNames=["jane"])]
    await client.create(_object("ClusterRole", f"acting-{namespace}", rules=rules))
    await bind(client, name, "ClusterRole", f"acting-{namespace}", everywhere=True)
    until_known(actor, "jane", "GET", "/version")
    refused = f'User "{name}" cannot impersonate resource "{{}}" in API group "" {{}}'
    everywhere = "at the cluster scope"
    assert actor.message("jane", "GET", "/version") == LET_IN
    assert actor.message("joe", "GET", "/version") == f'users "joe" is forbidden: {refused.format("users", everywhere)}'
    grouped = actor.message("jane", "GET", "/version", groups=("dev",))
    assert grouped == f'groups "dev" is forbidden: {refused.format("groups", everywhere)}'
    account = actor.message("system:serviceaccount:default:default", "GET", "/version")
    where = 'in the namespace "default"'
    assert account == f'serviceaccounts "default" is forbidden: {refused.format("serviceaccounts", where)}'
    actor.close()


async def test_without_a_credential_only_health_and_version_are_shown(client: Client, wire: Wire) -> None:
    """To the anonymous user; whoever shows one that nobody knows sees not even those."""
    wire.authorization = "X-Nothing: here"
    for page in PAGES:
        expected = 200 if page in PUBLIC else 403
        assert wire.ask(f"GET {page}").status == expected, page
    wire.authorization = "Authorization: Bearer nobody-knows-it"
    for page in (*PAGES, "/api/v1/namespaces"):
        assert wire.ask(f"GET {page}").status == 401, page
