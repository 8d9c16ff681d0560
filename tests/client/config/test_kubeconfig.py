"""Kubeconfig files are found, merged and resolved as kubectl does it."""

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from navarch.client.config import Impersonation, load
from navarch.errors import ConfigError


def test_a_context_names_the_server_the_user_and_the_namespace(write: Any) -> None:
    """The plain case: one context, a token."""
    config = load(write(user={"token": "abc"}))
    assert (config.server, config.namespace, config.token) == ("https://api.example:6443", "shop", "abc")
    assert "context 'dev' (cluster 'c', user 'u') in " in config.origin


def test_the_namespace_is_default_if_the_context_names_none(write: Any) -> None:
    """A context without a namespace means `default`."""
    path = write(contexts=[{"name": "dev", "context": {"cluster": "c", "user": "u"}}])
    assert load(path).namespace == "default"


def test_a_context_may_be_named(write: Any) -> None:
    """`context` goes before current-context."""
    path = write(
        contexts=[
            {"name": "dev", "context": {"cluster": "c", "user": "u"}},
            {"name": "prod", "context": {"cluster": "p", "user": "u"}},
        ],
        clusters=[
            {"name": "c", "cluster": {"server": "https://c"}},
            {"name": "p", "cluster": {"server": "https://p"}},
        ],
    )
    assert (load(path).server, load(path, context="prod").server) == ("https://c", "https://p")


def test_a_context_without_a_user_is_anonymous(write: Any) -> None:
    """No user means no credential, as with kubectl."""
    config = load(write(contexts=[{"name": "dev", "context": {"cluster": "c"}}]))
    assert (config.token, config.exec_plugin) == ("", None)


def test_answers_are_compressed_unless_the_cluster_says_otherwise(write: Any) -> None:
    """As with kubectl: disable-compression is for fast networks and busy servers."""
    assert load(write()).compression
    assert not load(write(cluster={"disable-compression": True})).compression


def test_the_home_folder_is_searched_without_kubeconfig(write: Any, tmp_path: Path) -> None:
    """~/.kube/config is the default."""
    write("home/.kube/config", user={"token": "from-home"})
    assert load().token == "from-home"
    assert load("~/.kube/config").token == "from-home"


def test_an_empty_kubeconfig_variable_means_the_default(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBECONFIG="" and KUBECONFIG=":" are as good as unset."""
    write("home/.kube/config", user={"token": "from-home"})
    monkeypatch.setenv("KUBECONFIG", os.pathsep)
    assert load().token == "from-home"


class TestMerging:
    """Several files in KUBECONFIG."""

    @pytest.fixture
    def three(self, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first: dict[str, Any] = {"current-context": "", "contexts": [], "clusters": None}
        write("a/one", users=[{"name": "u", "user": {"token": "first"}}], **first)
        write("b/two", user={"username": "second", "password": "never"}, cluster={"tls-server-name": "second"})
        write(
            "c/three",
            cluster={"server": "https://third", "proxy-url": "http://third"},
            **{"current-context": "third"},
        )
        names = ["", "a/one", "missing", "b/two", "c/three", "b/two"]
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(str(tmp_path / name) if name else "" for name in names))

    @pytest.mark.usefixtures("three")
    def test_the_first_file_with_an_entry_counts_and_later_ones_add_nothing_to_it(self) -> None:
        """An entry comes whole from one file; missing files and empty names are skipped."""
        config = load()
        assert (config.token, config.username) == ("first", "")
        assert (config.tls_server_name, config.proxy_url) == ("second", "")

    @pytest.mark.usefixtures("three")
    def test_the_first_current_context_counts(self) -> None:
        """An empty current-context leaves it to the next file."""
        assert "context 'dev'" in load().origin

    def test_relative_paths_belong_to_the_file_they_stand_in(
        self, write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each file's own folder is where its paths start, whatever the working directory."""
        user = {
            "client-certificate": "pki/c.pem",
            "client-key": "../k.pem",
            "exec": {"command": "bin/x", "apiVersion": "client.authentication.k8s.io/v1beta1"},
        }
        write("a/one", cluster={"certificate-authority": "ca.pem"}, users=[])
        write("b/two", clusters=[], users=[{"name": "u", "user": user}])
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("KUBECONFIG", "a/one:b/two")
        config = load()
        assert config.ca_file == f"{tmp_path}/a/ca.pem"
        assert config.client_certificate_file == f"{tmp_path}/b/pki/c.pem"
        assert os.path.normpath(config.client_key_file) == f"{tmp_path}/k.pem"
        assert config.exec_plugin is not None
        assert config.exec_plugin.command == f"{tmp_path}/b/bin/x"

    def test_a_command_without_a_slash_and_an_absolute_path_stay_as_they_are(self, write: Any) -> None:
        """What the PATH is to find, and what is absolute already, is not touched."""
        plugin = {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1beta1"}
        config = load(write(user={"tokenFile": "/run/token", "exec": plugin}))
        assert config.token_file == "/run/token"
        assert config.exec_plugin is not None
        assert config.exec_plugin.command == "aws"


def test_every_field_of_a_cluster_and_a_user_arrives(write: Any) -> None:
    """Inline data is decoded, also when it is broken over lines; file names yield to it."""
    data = base64.b64encode(b"PEM").decode()
    config = load(
        write(
            cluster={
                "certificate-authority-data": f"{data[:2]}\n  {data[2:]}\n",
                "tls-server-name": "kubernetes",
                "proxy-url": "http://user:pass@proxy:3128",
            },
            user={
                "client-certificate-data": data,
                "client-key-data": data,
                "client-certificate": "unused",
                "as": "jane",
                "as-uid": "7",
                "as-groups": ["dev", "ops"],
                "as-user-extra": {"scopes": ["read"]},
            },
        )
    )
    assert (config.ca_data, config.client_certificate_data, config.client_key_data) == (b"PEM",) * 3
    assert config.client_certificate_file == ""
    assert (config.tls_server_name, config.proxy_url) == ("kubernetes", "http://user:pass@proxy:3128")
    assert config.impersonate == Impersonation(user="jane", uid="7", groups=("dev", "ops"), extra={"scopes": ("read",)})


@pytest.mark.parametrize("written", ["0123456", "1_000", "2030-01-01", "1e3", "0x10", "12345678901234567890"])
def test_numbers_and_dates_stay_as_written_where_text_is_wanted(tmp_path: Path, write: Any, written: str) -> None:
    """A token or password of digits needs no quotes."""
    path = write(user={"token": "PLACE"})
    path.write_text(path.read_text().replace("PLACE", written))
    assert load(path).token == written


def test_json_is_yaml_too(tmp_path: Path) -> None:
    """A kubeconfig may be JSON, and need not name its kind."""
    path = tmp_path / "config"
    path.write_text(
        '{"current-context":"d","contexts":[{"name":"d","context":{"cluster":"c"}}],'
        '"clusters":[{"name":"c","cluster":{"server":"https://c"}}]}'
    )
    assert load(path).server == "https://c"


def test_a_broken_entry_does_not_matter_to_other_contexts(write: Any) -> None:
    """Only what the context uses has to be right."""
    users = [{"name": "u", "user": {"token": "abc"}}, {"name": "broken", "user": {"token": ["x"]}}]
    assert load(write(users=users)).token == "abc"


NOTHING: dict[str, Any] = {"contexts": [], "clusters": [], "users": [], "current-context": ""}

PROBLEMS: dict[str, tuple[dict[str, Any], str]] = {
    "no current context": ({"current-context": None}, r"expected a current-context, got none.*there is 'dev'"),
    "no contexts": ({"current-context": "x", "contexts": []}, r"expected a context named 'x', got none.*none at all"),
    "unknown cluster": ({"clusters": [{"name": "other"}]}, r"expected a cluster named 'c', got none. There is 'other'"),
    "unknown user": ({"users": [{"name": "other"}]}, r"expected a user named 'u', got none. There is 'other'"),
    "no cluster": ({"contexts": [{"name": "dev", "context": {}}]}, r"expected the name of a cluster, got none"),
    "no server": ({"clusters": [{"name": "c", "cluster": None}]}, r"cluster 'c' in .*expected a server"),
    "duplicate user": ({"users": [{"name": "u"}, {"name": "u"}]}, r"each name in users once, got 'u' twice"),
    "no name": ({"users": [{"user": {}}]}, r"users\[0\] of .*expected a name, got none"),
    "list of text": ({"users": ["u"]}, r"users\[0\] of .*expected a mapping, got text"),
    "not a list": ({"clusters": {"c": {}}}, r"expected clusters to be a list, got a mapping"),
    "wrong kind": ({"kind": "Pod"}, r"expected a kubeconfig of kind Config, got 'Pod'"),
    "wrong version": ({"apiVersion": "v2"}, r"expected a kubeconfig of apiVersion v1, got 'v2'"),
    "nothing in it": (NOTHING, r"expected a kubeconfig with contexts.*got an empty file"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_wrong_with_the_file_is_told(write: Any, name: str) -> None:
    """Each says what was expected, what came, and in which file."""
    fields, message = PROBLEMS[name]
    path = write(**fields)
    with pytest.raises(ConfigError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


CLUSTERS: dict[str, tuple[dict[str, Any], str]] = {
    "no scheme": ({"server": "api:6443"}, r"begin with https:// or http://, got 'api:6443'. Write it as"),
    "no host": ({"server": "https://"}, r"expected server as https://HOST:PORT"),
    "query": ({"server": "https://a?x=1"}, r"expected server as https://HOST:PORT"),
    "bad port": ({"server": "https://a:port"}, r"host or port is malformed"),
    "bad address": ({"server": "https://[::1"}, r"host or port is malformed|\*\*\*"),
    "spaces": ({"server": "https://a b"}, r"spaces, control"),
    "number": ({"server": True}, r"expected server to be text, got true or false. Put it in quotes"),
    "flag": ({"insecure-skip-tls-verify": "yes please"}, r"insecure-skip-tls-verify to be true or false, got text"),
    "conflict": (
        {"insecure-skip-tls-verify": True, "certificate-authority": "x"},
        r"either a certificate-authority or insecure-skip-tls-verify, got both",
    ),
    "no base64": ({"certificate-authority-data": "!!"}, r"certificate-authority-data to be base64.*base64 -w0"),
    "socks": ({"proxy-url": "socks5://p:1080"}, r"got a SOCKS proxy. SOCKS is not supported"),
    "proxy": ({"proxy-url": "p:3128"}, r"expected proxy_url as http://HOST:PORT"),
    "path": ({"certificate-authority": "a\0b"}, r"certificate-authority to be a path, got text with a NUL"),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_what_is_wrong_with_the_cluster_is_told(write: Any, name: str) -> None:
    """Each names the cluster or the context."""
    cluster, message = CLUSTERS[name]
    with pytest.raises(ConfigError, match=message) as caught:
        load(write(cluster=cluster))
    assert "cluster 'c'" in str(caught.value)


V1 = "client.authentication.k8s.io/v1"

USERS: dict[str, tuple[Any, str]] = {
    "provider": ({"auth-provider": {"name": "gcp"}}, r"got the auth-provider 'gcp'.*gke-gcloud-auth-plugin"),
    "both": ({"token": "t", "username": "n"}, r"expected one way to authenticate, got a token and a user name"),
    "no key": ({"client-certificate": "c"}, r"got no client-key"),
    "no certificate": ({"client-key-data": "a2V5"}, r"got no client-certificate"),
    "only groups": ({"as-groups": ["g"]}, r"expected `as`"),
    "groups": ({"as": "x", "as-groups": "g"}, r"as-groups to be a list, got text"),
    "group": ({"as": "x", "as-groups": [["g"]]}, r"as-groups\[0\] to be text, got a list"),
    "extra": ({"as": "x", "as-user-extra": {"k": "v"}}, r"expected k to be a list, got text"),
    "extra key": ({"as": "x", "as-user-extra": {None: ["v"]}}, r"names of fields to be text, got nothing"),
    "no command": ({"exec": {"apiVersion": V1}}, r"exec of user 'u'.*expected a command, got none"),
    "no version": ({"exec": {"command": "x"}}, r"expected apiVersion .*v1 or .*v1beta1, got none"),
    "old version": ({"exec": {"command": "x", "apiVersion": f"{V1}alpha1"}}, r"got '.*v1alpha1'. Update the plugin"),
    "no mode": ({"exec": {"command": "x", "apiVersion": V1}}, r"interactiveMode to be one of Never.*got none"),
    "mode": ({"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Maybe"}}, r"got 'Maybe'"),
    "env": (
        {"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Never", "env": [{"value": "v"}]}},
        r"env\[0\] of exec of user 'u'.*name of an environment variable",
    ),
    "a list": ([], r"user 'u' in .*expected a mapping, got a list"),
    "exec": ({"exec": "aws"}, r"exec of user 'u' in .*expected a mapping, got text"),
}


@pytest.mark.parametrize("name", USERS)
def test_what_is_wrong_with_the_user_is_told(write: Any, name: str) -> None:
    """Each names the user."""
    user, message = USERS[name]
    with pytest.raises(ConfigError, match=message) as caught:
        load(write(user=user))
    assert "user 'u'" in str(caught.value)


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", r"got an empty file"),
    "comment": (b"# nothing\n", r"got an empty file"),
    "text": (b"hello", r"expected a kubeconfig \(a mapping of kind Config\), got text"),
    "list": (b"- a", r"got a list"),
    "binary": (b"\x7fELF\x02\x01\x00\xff", r"bytes that are no text"),
    "broken": (b"a: b\nc: [d\ne: f\n", r"expected YAML, got something else at line \d+, column \d+"),
    "tag": (b"a: !!python/name:os.system x", r"line 1, column 4: a value that is no plain data"),
    "two": (b"a: b\n---\nc: d\n", r"line 2, column 1: .*a second document"),
    "deep": (b"[" * 5000, r"more than 100 nested levels at line 1"),
    "deep blocks": (b"- " * 200_000, r"more than 100 nested levels at line 1"),
    "wrong tags": (b"!!int {a: b}", r"line 1, column 1"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_kubeconfig_is_told_by_name_and_place(tmp_path: Path, name: str) -> None:
    """File, line and column, where there are any."""
    content, message = FILES[name]
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_files_that_cannot_be_read_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file, a folder, a link to nothing."""
    with pytest.raises(ConfigError, match=r"nowhere: expected a kubeconfig, got: no such file"):
        load(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="got: is a directory"):
        load(tmp_path)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "dangling"))
    with pytest.raises(ConfigError, match=r"expected a kubeconfig in .*dangling, got no such file"):
        load()


def test_a_link_to_nothing_is_a_missing_file(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for kubectl, it does not stand in the way of the files after it; a folder does."""
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    good = write()
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'dangling'}:{good}")
    assert load().origin.endswith(str(good))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}:{good}")
    with pytest.raises(ConfigError, match="is a directory"):
        load()


@pytest.fixture
def nobody() -> Iterator[None]:
    """Whoever runs the test, without root's right to read every file."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    yield
    os.seteuid(before)


def test_a_file_without_permission_is_told(write: Any, request: pytest.FixtureRequest) -> None:
    """The system's own reason is part of the message."""
    path = write()
    path.chmod(0)
    request.getfixturevalue("nobody")
    with pytest.raises(ConfigError, match="permission denied"):
        load(path)


def test_without_any_configuration_the_error_says_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that were tried, and that this is not a pod."""
    with pytest.raises(ConfigError, match=r"\.kube/config.*not a pod.*Set KUBECONFIG"):
        load()
    monkeypatch.setenv("KUBECONFIG", "/nowhere/a:/nowhere/b")
    with pytest.raises(ConfigError, match=r"context 'x' in /nowhere/a, /nowhere/b"):
        load(context="x")


def test_a_cluster_extension_reaches_the_plugin_as_plain_json(write: Any) -> None:
    """Numbers are numbers again, and aliases are followed."""
    shared = {"audience": "me", "depth": 3, "ratio": 0.5, "on": True, "not": None}
    cluster = {"extensions": [{"name": "client.authentication.k8s.io/exec", "extension": [shared, shared]}]}
    plugin = {"command": "x", "apiVersion": f"{V1}beta1", "provideClusterInfo": True}
    found = load(write(cluster=cluster, user={"exec": plugin})).exec_plugin
    assert found is not None
    assert yaml.safe_load(found.cluster_extension) == [shared, shared]


@pytest.mark.parametrize("text", ["&x [*x]", "!!set {a}", "{[a]: b}", "{true: a}"])
def test_a_cluster_extension_that_is_no_json_is_told(write: Any, text: str) -> None:
    """Endless and strange values are refused instead of followed."""
    cluster = {"extensions": [{"name": "client.authentication.k8s.io/exec", "extension": "PLACE"}]}
    plugin = {"command": "x", "apiVersion": f"{V1}beta1", "provideClusterInfo": True}
    path = write(cluster=cluster, user={"exec": plugin})
    path.write_text(path.read_text().replace("PLACE", text))
    with pytest.raises(ConfigError):
        load(path)
