"""No secret in any message, repr or log."""

import logging
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navarch._base.clock import ManualClock
from navarch.client.config import Authenticator, Config, ExecPlugin, load
from navarch.client.config.exec_plugin import PluginCredential
from navarch.client.config.masking import mask, without_password
from navarch.client.config.tls import ClientCertificate
from navarch.errors import ConfigError

SECRET = "hunter2secret"
V1 = "client.authentication.k8s.io/v1"


def exposures(error: BaseException) -> Iterator[str]:
    """Everything that a traceback would print of an error and what led to it."""
    seen: BaseException | None = error
    while seen is not None:
        yield from (str(seen), repr(seen))
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def rich_repr(value: Any) -> str:
    return repr(list(value.__rich_repr__()))


def test_no_struct_shows_its_secrets(pki: Any) -> None:
    """Neither to repr nor to rich, whose tracebacks show local variables."""
    plugin = ExecPlugin(command="x", args=("--token", SECRET), env={"TOKEN": SECRET})
    fields: dict[str, Any] = {"client_certificate_data": b"x", "client_key_data": SECRET.encode()}
    server = f"https://u:{SECRET}@h"
    structs = [
        Config(server=server, token=SECRET, exec_plugin=plugin, proxy_url=server, **fields),
        Config(server=server, username="u", password=SECRET),
        ClientCertificate(certificate=b"x", key=SECRET.encode(), certificate_name="c", key_name="k"),
        PluginCredential(token=SECRET),
    ]
    for struct in structs:
        assert SECRET not in repr(struct) + str(struct) + rich_repr(struct) + f"{struct}"
    assert pickle.loads(pickle.dumps(structs[1])) == structs[1]


BAD_USERS: list[Any] = [
    {"token": SECRET, "username": SECRET},
    {"token": [SECRET]},
    {"token": {SECRET: SECRET}},
    {"password": SECRET},
    {"client-certificate": "x", "client-key-data": SECRET + "!"},
    {"client-key-data": SECRET},
    {"token": SECRET, "as-groups": [SECRET]},
    {"token": f"{SECRET} {SECRET}"},
    {"exec": {"command": "x", "apiVersion": V1, "args": [SECRET], "env": [{"name": "", "value": SECRET}]}},
    {"exec": {"command": "x", "apiVersion": V1, "interactiveMode": "Never", "env": [{"name": "A", "value": [SECRET]}]}},
    [SECRET],
    SECRET,
]


@pytest.mark.parametrize("user", BAD_USERS)
async def test_no_error_about_a_user_shows_its_secrets(write: Any, user: Any) -> None:
    """However wrong the entry is."""
    with pytest.raises(ConfigError) as caught:
        await Authenticator(load(write(user=user)), ManualClock()).headers()
    assert not [text for text in exposures(caught.value) if SECRET in text]


@pytest.mark.parametrize("cluster", [{"server": f"u:{SECRET}@h"}, {"server": f"https://u:{SECRET}@h:port"},
                                     {"proxy-url": f"ftp://u:{SECRET}@h"}, {"proxy-url": f"http://u:{SECRET}@[h"}])  # fmt: skip
def test_no_error_about_a_cluster_shows_the_password_in_its_url(write: Any, cluster: Any) -> None:
    """User information in URLs is masked."""
    with pytest.raises(ConfigError) as caught:
        load(write(cluster=cluster))
    assert not [text for text in exposures(caught.value) if SECRET in text]


@pytest.mark.parametrize("content", [f"token: !{SECRET} x", f"token: *{SECRET}", f"token: {SECRET}\n {SECRET}: [",
                                     f"{SECRET}", f"- {SECRET}", f"? [{SECRET}]\n: x", f"a: %{SECRET}"])  # fmt: skip
def test_no_error_about_yaml_quotes_the_file(tmp_path: Path, content: str) -> None:
    """Only where it is wrong, never what stands there."""
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert not [text for text in exposures(caught.value) if SECRET in text]


PLUGINS: dict[str, str] = {
    "echoes its environment": 'echo "bad credential $MY_VALUE" >&2; exit 1',
    "echoes an inherited variable": 'echo "denied for $CLOUD_SECRET_KEY" >&2; exit 1',
    "echoes its argument": 'echo "unknown flag $2" >&2; exit 1',
    "names a token": f'echo "token={SECRET} is bad" >&2; exit 1',
    "prints JSON on stderr": f"""echo '{{"password": "{SECRET}"}}' >&2; exit 1""",
    "prints a bearer": f'echo "Authorization: Bearer {SECRET}" >&2; exit 1',
    "prints a URL": f'echo "https://user:{SECRET}@login" >&2; exit 1',
    "prints the token alone": f"echo {SECRET}",
    "prints the token in kind": f"""echo '{{"kind": "{SECRET * 4}"}}'""",
    "prints a broken answer": f"""echo '{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{"token": ["{SECRET}"]}}}}'""",
    "prints half an answer": f"""echo '{{"kind": "ExecCredential", "status": {{"token": "{SECRET}'""",
    "prints half a key pair": f"""echo '{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{"clientKeyData": "{SECRET}"}}}}'""",
}


@pytest.mark.parametrize("name", PLUGINS)
async def test_no_error_about_a_plugin_shows_what_it_knows(
    plugin: Any, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither from standard error nor from standard output, neither in errors nor in logs."""
    monkeypatch.setenv("CLOUD_SECRET_KEY", SECRET)
    entry = ExecPlugin(
        command=str(plugin(PLUGINS[name])), args=("--token", SECRET), env={"MY_VALUE": SECRET}, interactive_mode="Never"
    )
    authenticator = Authenticator(Config(server="https://a", exec_plugin=entry), ManualClock())
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError) as caught:
        await authenticator.headers()
    assert not [text for text in exposures(caught.value) if SECRET in text]
    assert SECRET not in caplog.text


def test_no_error_about_a_certificate_shows_the_key(pki: Any) -> None:
    """Not a line of it."""
    lines = pki.client.key.decode().splitlines()[1:-1]
    with pytest.raises(ConfigError) as caught:
        Config(server="https://a", client_certificate_data=pki.server.pem, client_key_data=pki.client.key).ssl_context()
    assert not [text for text in exposures(caught.value) for line in lines if line in text]


@given(st.text(alphabet="abcdefghijkmnopqrstuvwxyz0123456789", min_size=8, max_size=60), st.text(max_size=30))
def test_given_secrets_never_survive_masking(secret: str, around: str) -> None:
    """Wherever they stand."""
    assert secret not in mask(f"{around}{secret} {secret}{around}", [secret])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("exit status 255: profile dev not found", "exit status 255: profile dev not found"),
        ("token: abc, expired", "token: ***, expired"),
        ("jwt eyJhbGciOi.eyJzdWIi.sig here", "jwt *** here"),
        ("key -----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY----- end", "key *** end"),
        ("aws_secret_access_key=abc", "aws_secret_access_key=***"),
    ],
)
def test_masking_leaves_the_rest_readable(text: str, shown: str) -> None:
    """The reason of a failure must survive."""
    assert mask(text) == shown


def test_a_url_is_shown_without_its_user() -> None:
    """And not at all if it cannot be taken apart."""
    assert without_password("https://u:p@h:1/x") == "https://***@h:1/x"
    assert without_password("https://h") == "https://h"
    assert without_password("u:p@h") == "***"
    assert without_password("http://u:p@[h") == "***"
