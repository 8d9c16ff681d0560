"""Exec plugins: what they are told, what they answer, and how they fail."""

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from navarch._base.clock import ManualClock, SystemClock
from navarch.client.config import Authenticator, Config, ExecPlugin
from navarch.client.config.exec_credential import ExecCredential
from navarch.errors import CredentialError

V1 = "client.authentication.k8s.io/v1"


def made(path: Path | str, clock: Any = None, **fields: Any) -> ExecCredential:
    plugin = ExecPlugin(**{"command": str(path), "interactive_mode": "Never", **fields})
    config = Config(server="https://api.example", exec_plugin=plugin, origin="here", tls_server_name="kubernetes")
    return ExecCredential(plugin, config, clock or SystemClock())


async def test_the_token_that_the_plugin_prints_is_sent(plugin: Any, printed: Any, runs: Callable[[], int]) -> None:
    """Once, for as long as the plugin sets no end."""
    credential = made(plugin(printed(token="abc")))
    assert await credential.headers() == {"Authorization": "Bearer abc"}
    assert await credential.headers() == {"Authorization": "Bearer abc"}
    assert (runs(), credential.certificate) == (1, None)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_both_versions_are_spoken(plugin: Any, printed: Any, version: str) -> None:
    """The version of the question is that of the answer."""
    credential = made(plugin(printed(version, token="abc")), api_version=f"client.authentication.k8s.io/{version}")
    assert await credential.headers()


async def test_arguments_and_environment_reach_the_plugin(plugin: Any, tmp_path: Path, printed: Any) -> None:
    """On top of this process's own environment."""
    body = f'echo "$1,$2,$NAME,$HOME" > {tmp_path}/seen; {printed(token="t")}'
    await made(plugin(body), args=("a b", "c"), env={"NAME": "value"}).headers()
    assert (tmp_path / "seen").read_text() == f"a b,c,value,{os.environ['HOME']}\n"


async def test_the_plugin_is_told_about_the_cluster_only_if_asked(plugin: Any, tmp_path: Path, printed: Any) -> None:
    """KUBERNETES_EXEC_INFO has the server, its name and the extension's configuration."""
    path = plugin(f'printf %s "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; {printed(token="t")}')
    await made(path).headers()
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False},
    }  # fmt: skip
    await made(path, provide_cluster_info=True, cluster_extension=b'{"audience":"me"}').headers()
    cluster = json.loads((tmp_path / "info").read_text())["spec"]["cluster"]
    assert cluster == {
        "server": "https://api.example", "tls-server-name": "kubernetes",
        "config": {"audience": "me"},
    }  # fmt: skip


async def test_a_client_certificate_raises_the_version(plugin: Any, printed: Any, pki: Any) -> None:
    """So that the transport makes new connections; the context is made of it."""
    status = {"clientCertificateData": pki.client.pem.decode(), "clientKeyData": pki.client.key.decode()}
    path = plugin(printed(**status))
    config = Config(
        server="https://a", ca_data=pki.ca.pem, exec_plugin=ExecPlugin(command=str(path), interactive_mode="Never")
    )
    authenticator = Authenticator(config, ManualClock())
    assert authenticator.tls_version == 0
    assert await authenticator.headers() == {}
    assert authenticator.tls_version == 1
    assert authenticator.ssl_context() is not None
    assert authenticator.diagnose() is None


async def test_a_token_is_renewed_shortly_before_it_expires(
    plugin: Any, tmp_path: Path, runs: Callable[[], int], printed: Any
) -> None:
    """Thirty seconds before; the same token again does not count as a new version."""
    clock = ManualClock()
    path = plugin(printed(token="abc", expirationTimestamp="2030-01-01T01:00:00Z"))
    credential = made(path, clock)
    await credential.headers()
    await clock.advance(3569)
    await credential.headers()
    assert runs() == 1
    await clock.advance(1)
    await credential.headers()
    assert runs() == 2


async def test_a_short_life_leaves_a_short_margin(plugin: Any, runs: Callable[[], int], printed: Any) -> None:
    """A tenth of what is left: a plugin that hands out its last seconds is not run for each request."""
    clock = ManualClock()
    credential = made(plugin(printed(token="abc", expirationTimestamp="2030-01-01T00:00:20+00:00")), clock)
    await credential.headers()
    await clock.advance(17)
    await credential.headers()
    assert runs() == 1
    await clock.advance(1)
    await credential.headers()
    assert runs() == 2


async def test_a_credential_that_has_expired_already_is_used_with_a_warning(
    plugin: Any, printed: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """This machine's clock may be wrong; the server decides."""
    credential = made(plugin(printed(token="abc", expirationTimestamp="2029-01-01T00:00:00Z")), ManualClock())
    assert await credential.headers()
    assert "expired at 2029-01-01T00:00:00+00:00 already" in caplog.text


async def test_many_callers_run_the_plugin_once(plugin: Any, runs: Callable[[], int], printed: Any) -> None:
    """And all get its answer."""
    credential = made(plugin(printed(token="abc")))
    answers = await asyncio.gather(*(credential.headers() for _ in range(20)))
    assert all(answer == {"Authorization": "Bearer abc"} for answer in answers)
    assert runs() == 1


async def test_many_callers_share_one_failure(plugin: Any, runs: Callable[[], int]) -> None:
    """Those who waited are not made to wait for twenty failures; the next caller tries anew."""
    credential = made(plugin("exit 3"))
    answers = await asyncio.gather(*(credential.headers() for _ in range(20)), return_exceptions=True)
    assert all("exit code 3" in str(answer) for answer in answers)
    assert runs() == 1
    with pytest.raises(CredentialError):
        await credential.headers()
    assert runs() == 2


class Lifeline:
    """A pipe whose far end the plugin and its children hold: it ends when the last of them has."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path
        self.hold = f"exec 3> {path}; echo started >&3"

    async def started(self) -> None:
        self._file = await asyncio.to_thread(self._path.open)
        assert await asyncio.to_thread(self._file.readline) == "started\n"

    async def ended(self) -> None:
        assert await asyncio.to_thread(self._file.read) == ""
        self._file.close()


@pytest.fixture
def lifeline(tmp_path: Path) -> Lifeline:
    return Lifeline(tmp_path / "lifeline")


async def test_a_cancelled_caller_does_not_fail_the_others(
    plugin: Any, printed: Any, tmp_path: Path, lifeline: Lifeline
) -> None:
    """The plugin is killed with it, and the next in line runs it again."""
    once = f"if [ ! -e {tmp_path}/x ]; then : > {tmp_path}/x; {lifeline.hold}; sleep 1000; fi"
    credential = made(plugin(f"{once}\n{printed(token='abc')}"))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(credential.headers())
        second = group.create_task(credential.headers())
        await lifeline.started()
        first.cancel()
        await lifeline.ended()
    assert first.cancelled()
    assert second.result() == {"Authorization": "Bearer abc"}


async def test_a_caller_cancelled_while_the_plugin_starts_leaves_no_process(
    plugin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start is awaited, and then the plugin is killed."""
    started: list[asyncio.SubprocessTransport] = []
    loop, clock = asyncio.get_running_loop(), ManualClock()
    original = loop.subprocess_exec

    async def slow_start(*args: Any, **kwargs: Any) -> Any:
        found = await original(*args, **kwargs)
        started.append(found[0])
        await clock.sleep(1)
        return found

    monkeypatch.setattr(loop, "subprocess_exec", slow_start)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(made(plugin("sleep 1000")).headers())
        await clock.until_sleeping()
        task.cancel()
        await clock.advance(1)
    assert task.cancelled()
    assert started[0].get_returncode() == -9


async def test_a_daemon_that_a_plugin_leaves_behind_is_not_waited_for(
    plugin: Any, printed: Any, tmp_path: Path
) -> None:
    """Some keep an agent that holds the plugin's standard output open; it lives on."""
    os.mkfifo(tmp_path / "agent")
    clock = ManualClock()
    body = f"setsid sh -c 'read order < {tmp_path}/agent' & {printed(token='abc')}"
    async with asyncio.TaskGroup() as group:
        task = group.create_task(made(plugin(body), clock).headers())
        await clock.until_sleeping(2)
        await clock.advance(1)
    assert task.result() == {"Authorization": "Bearer abc"}
    await asyncio.to_thread((tmp_path / "agent").write_text, "retire\n")


class TestRefresh:
    """After the server has said 401."""

    @pytest.fixture
    def counting(self, plugin: Any, tmp_path: Path, printed: Any) -> Path:
        """A plugin whose token has the number of its run in it."""
        body = printed(token="token-N").replace("cat <<'END'", f"sed s/N/$(grep -c run {tmp_path}/runs)/ <<'END'")
        path: Path = plugin(body)
        return path

    async def test_the_plugin_runs_again(self, counting: Path, runs: Callable[[], int]) -> None:
        """Once for all who were refused with the same token, also for those who notice later."""
        plugin = ExecPlugin(command=str(counting), interactive_mode="Never")
        authenticator = Authenticator(Config(server="https://a", exec_plugin=plugin), ManualClock())
        assert await authenticator.headers() == {"Authorization": "Bearer token-1"}
        refused = authenticator.version
        assert await asyncio.gather(*(authenticator.refresh(refused) for _ in range(5))) == [True] * 5
        assert await authenticator.refresh(refused)
        assert runs() == 2
        assert await authenticator.headers() == {"Authorization": "Bearer token-2"}

    async def test_the_same_answer_again_is_nothing_to_try(
        self, plugin: Any, printed: Any, runs: Callable[[], int]
    ) -> None:
        """And the plugin is left in peace for a while."""
        clock = ManualClock()
        credential = made(plugin(printed(token="abc")), clock)
        await credential.headers()
        assert not await credential.refresh()
        assert not await credential.refresh()
        assert runs() == 2
        await clock.advance(5)
        assert not await credential.refresh()
        assert runs() == 3


ANSWERS: dict[str, tuple[str, str]] = {
    "nothing": ("true", "as JSON on standard output, got nothing"),
    "rubbish": ("echo hello", "got 6 bytes of something else: JSON is malformed"),
    "a list": ("echo []", "Expected `object`, got `array`"),
    "no kind": ("echo '{}'", "got kind ''"),
    "wrong kind": ('echo \'{"kind":"Pod"}\'', "got kind 'Pod'"),
    "wrong version": (
        f'echo \'{{"kind":"ExecCredential","apiVersion":"{V1}beta1"}}\'',
        r"of client.authentication.k8s.io/v1 as JSON .*got apiVersion '.*v1beta1'. Set apiVersion",
    ),
    "no status": (f'echo \'{{"kind":"ExecCredential","apiVersion":"{V1}"}}\'', "with a status, got one without"),
    "exit code": ("echo no luck >&2; exit 7", r"got exit code 7. Its last words: no luck"),
    "signal": ("kill -TERM $$", "got exit code -15"),
    "not text": ("printf '\\377\\376'", "bytes of something else"),
    "endless": ("cat /dev/zero", "got more than 1048576 bytes; it was killed"),
    "chatty": (
        "i=0; while [ $i -lt 5000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1",
        r"line 4990 \| .*line 4999$",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_an_answer_that_is_no_credential_is_told(plugin: Any, name: str) -> None:
    """What was expected and what came, with the plugin's name."""
    body, message = ANSWERS[name]
    path = plugin(body)
    with pytest.raises(CredentialError, match=message) as caught:
        await made(path).headers()
    assert str(caught.value).startswith(f"here: exec plugin '{path}': expected ")


STATUSES: dict[str, tuple[dict[str, Any], str]] = {
    "empty": ({}, "a token, or a client certificate and its key, got neither"),
    "type": ({"token": 5}, r"Expected `str \| null`, got `int` - at `\$.status.token`"),
    "no key": ({"clientCertificateData": "x"}, "got no clientKeyData"),
    "no certificate": ({"clientKeyData": "x"}, "got no clientCertificateData"),
    "date": ({"token": "x", "expirationTimestamp": "tomorrow"}, "Invalid RFC3339"),
    "zone": ({"token": "x", "expirationTimestamp": "2030-01-01T00:00:00"}, "timezone"),
    "header": ({"token": "a b"}, "cannot stand in an HTTP header"),
}


@pytest.mark.parametrize("name", STATUSES)
async def test_a_status_without_a_credential_is_told(plugin: Any, printed: Any, name: str) -> None:
    """The field, by its name on the wire."""
    status, message = STATUSES[name]
    with pytest.raises(CredentialError, match=message):
        await made(plugin(printed(**status))).headers()


async def test_a_missing_command_shows_the_install_hint(tmp_path: Path) -> None:
    """The kubeconfig's own remedy."""
    with pytest.raises(CredentialError, match=r"'no-such-plugin': .*no such file on the PATH. Get it from the shop."):
        await made("no-such-plugin", install_hint="Get it from the shop.\n").headers()


async def test_what_a_kubeconfig_or_a_plugin_says_does_not_steer_the_terminal(plugin: Any) -> None:
    """Their words are shown, their escape sequences are spelled out."""
    with pytest.raises(CredentialError, match=re.escape(r"\x1b[2Jget it")):
        await made("no-such-plugin", install_hint="\x1b[2Jget it").headers()
    with pytest.raises(CredentialError, match=re.escape(r"\x1b[2Jall is well")):
        await made(plugin(r"printf '\033[2Jall is well' >&2; exit 1")).headers()


async def test_a_command_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    """With the system's reason."""
    (tmp_path / "plain").write_text("text")
    with pytest.raises(CredentialError, match="Permission denied"):
        await made(tmp_path / "plain").headers()
    (tmp_path / "plain").chmod(0o700)
    with pytest.raises(CredentialError, match="Exec format error"):
        await made(tmp_path / "plain").headers()
    with pytest.raises(CredentialError, match="a NUL character"):
        await made(tmp_path / "plain", args=("a\0b",)).headers()


async def test_a_plugin_that_hangs_is_killed_with_its_children(plugin: Any, lifeline: Lifeline) -> None:
    """When the time is up; what it had said is told."""
    clock = ManualClock()
    credential = made(plugin(f"echo waiting for the moon >&2; {lifeline.hold}; sleep 1000 & wait"), clock, timeout=15)

    async def caller() -> None:
        with pytest.raises(CredentialError, match=r"within 15 s, got none; it was killed.*waiting for the moon"):
            await credential.headers()

    async with asyncio.TaskGroup() as group:
        group.create_task(caller())
        await lifeline.started()
        await clock.until_sleeping()
        await clock.advance(15)
        await lifeline.ended()


async def test_a_plugin_that_must_ask_needs_a_terminal(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """interactiveMode Always fails at once where nobody can answer."""
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(CredentialError, match=r"expected a terminal, since its interactiveMode is Always"):
        await made(plugin("true"), interactive_mode="Always").headers()


async def test_a_plugin_that_may_ask_gets_the_terminal(
    plugin: Any, printed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays in this session, and is told that it may."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    body = f'printf %s "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; {printed(token="t")}'
    assert await made(plugin(body), interactive_mode="IfAvailable").headers()
    assert json.loads((tmp_path / "info").read_text())["spec"]["interactive"] is True


def test_one_credential_serves_one_event_loop_after_another(plugin: Any, printed: Any) -> None:
    """Also if callers had to wait for each other in the first."""
    credential = made(plugin(printed(token="abc", expirationTimestamp="2000-01-01T00:00:00Z")))

    async def twice() -> None:
        await asyncio.gather(credential.headers(), credential.headers())

    asyncio.run(twice())
    asyncio.run(twice())


def test_plugins_run_on_uvloop_too(plugin: Any, printed: Any, tmp_path: Path) -> None:
    """Success, failure, too much output, a missing command, a time-out and a daemon left behind."""
    uvloop = pytest.importorskip("uvloop")
    os.mkfifo(tmp_path / "agent")
    bodies = {
        printed(token="abc"): "",
        "echo no luck >&2; exit 7": "exit code 7. Its last words: no luck",
        "cat /dev/zero": "it was killed",
        f"setsid sh -c 'read order < {tmp_path}/agent' & exit 4": "exit code 4",
    }

    async def scenario() -> None:
        for number, (body, message) in enumerate(bodies.items()):
            credential = made(plugin(body, f"plugin-{number}"))
            if not message:
                assert await credential.headers() == {"Authorization": "Bearer abc"}
                continue
            with pytest.raises(CredentialError, match=message):
                await credential.headers()
        with pytest.raises(CredentialError, match="no such file on the PATH"):
            await made("no-such-plugin").headers()
        with pytest.raises(CredentialError, match="it was killed"):
            await made(plugin("sleep 1000 & wait", "hanging"), timeout=0.1).headers()
        await asyncio.to_thread((tmp_path / "agent").write_text, "retire\n")

    uvloop.run(scenario())
