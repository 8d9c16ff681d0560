"""Health, readiness and metrics, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from navarch._base.clock import ManualClock
from navarch.errors import ConfigError
from navarch.observe.metrics import LeaderMetrics, Metrics
from navarch.operator.endpoint_server import EndpointServer
from navarch.operator.endpoints import Address, Check, Endpoints
from scripted import scripted
from served_endpoints import get, served


async def test_process_without_faults_is_well() -> None:
    """The answer that probes know."""
    async with served() as at:
        assert await get(at.health, "/healthz") == (200, "ok")
        assert await get(at.health, "/readyz") == (200, "ok")


async def test_failing_check_says_why() -> None:
    """Beside those that pass; health and readiness are apart."""
    ready = {"watches": lambda: "Pod: no news\nfor 62 s", "leader": lambda: None}
    async with served(alive={"loop": lambda: None}, ready=ready) as at:
        status, text = await get(at.health, "/readyz")
        assert status == 503
        assert text == "[-]watches failed: Pod: no news for 62 s\n[+]leader ok\nreadyz check failed\n"
        assert await get(at.health, "/healthz") == (200, "ok")


async def test_verbose_names_every_check() -> None:
    """Also when all is well."""
    async with served(ready={"watches": lambda: None}) as at:
        assert await get(at.health, "/readyz?verbose") == (200, "[+]watches ok\nreadyz check passed\n")


async def test_one_check_can_be_asked_for() -> None:
    """By its name; a name that is not there is said."""
    checks: dict[str, Check] = {"a": lambda: None, "b": lambda: "broken"}
    async with served(alive=checks) as at:
        assert await get(at.health, "/healthz/a") == (200, "ok")
        assert (await get(at.health, "/healthz/b"))[0] == 503
        assert await get(at.health, "/healthz/c") == (404, "expected one of ['a', 'b'], got 'c'\n")


async def test_check_that_raises_fails() -> None:
    """And does not show what it raised, which may be anything."""

    def check() -> str | None:
        raise KeyError("hunter2")

    async with served(alive={"odd": check}) as at:
        status, text = await get(at.health, "/healthz")
    assert status == 503
    assert "[-]odd failed: the check itself raised KeyError" in text
    assert "hunter2" not in text


async def test_checks_may_come_and_go() -> None:
    """They are looked up for each probe."""
    checks: dict[str, Check] = {}
    async with served(ready=checks) as at:
        assert (await get(at.health, "/readyz"))[0] == 200
        checks["cache"] = lambda: "not filled yet"
        assert (await get(at.health, "/readyz"))[0] == 503


async def test_metrics_are_served_on_their_own_address() -> None:
    """And nothing else there; nor are they on the address of health."""
    metrics = Metrics()
    metrics.add(LeaderMetrics("memcached-operator", lambda: False))
    async with served(metrics=metrics) as at:
        status, text = await get(at.metrics, "/metrics")
        assert status == 200
        assert 'leader_election_master_status{name="memcached-operator"} 0.0' in text
        assert (await get(at.metrics, "/healthz"))[0] == 404
        assert (await get(at.health, "/metrics"))[0] == 404


async def test_endpoint_that_is_left_out_is_not_served() -> None:
    """None means none."""
    async with served(Endpoints(health="127.0.0.1:0", metrics=None)) as at:
        assert at.metrics is None
        assert (await get(at.health, "/healthz"))[0] == 200


async def test_port_that_is_taken_is_said() -> None:
    """With the address and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = Endpoints(health=f"127.0.0.1:{port}", metrics=None)
        server = EndpointServer(
            options, alive={}, ready={}, metrics=Metrics(), client=scripted()[0], clock=ManualClock()
        )
        with pytest.raises(ConfigError, match=rf"listen at 127.0.0.1:{port} for health.*Endpoints\(health=…\)"):
            await server.run()


async def test_nothing_listens_afterwards() -> None:
    """The port is free again, even if a client still holds a connection."""
    async with served() as at:
        assert at.health is not None
        reader, writer = await asyncio.open_connection(at.health.host, at.health.port)
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(at.health, "/healthz")


@pytest.mark.parametrize("address", [":8080", "0.0.0.0:8080", "10.0.0.1:8080", "[::]:8080", "example.com:8080"])
def test_metrics_leave_the_machine_only_with_tokens(address: str) -> None:
    """What is counted tells much about a cluster; the remedy is said."""
    with pytest.raises(ConfigError, match=r'set token_review=True, or metrics="127.0.0.1:8080"'):
        Endpoints(metrics=address)
    assert Endpoints(metrics=address, token_review=True).metrics == address


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "127.1.2.3:8080", "[::1]:8080", "localhost:8080"])
def test_metrics_on_this_machine_need_no_token(address: str) -> None:
    """Loopback in all its forms."""
    assert Endpoints(metrics=address).metrics_address is not None


def test_health_may_listen_anywhere() -> None:
    """A kubelet asks at the pod's own address."""
    assert Endpoints(health=":8081").health_address == Address("", 8081)


@pytest.mark.parametrize("address", ["", "8080", "127.0.0.1", "127.0.0.1:http", "::1:8080", "127.0.0.1:65536"])
def test_address_that_is_none_is_refused(address: str) -> None:
    """With how one looks."""
    with pytest.raises(ConfigError, match="expected an address to listen at such as"):
        Endpoints(health=address)


def test_options_that_contradict_each_other_are_refused() -> None:
    """One port for two servers; half of a certificate."""
    with pytest.raises(ConfigError, match="expected two addresses"):
        Endpoints(health="127.0.0.1:8080", metrics="127.0.0.1:8080")
    with pytest.raises(ConfigError, match="give both or neither"):
        Endpoints(certificate=Path("tls.crt"))


def test_server_is_imported_only_when_it_runs() -> None:
    """aiohttp's server takes memory that an operator without endpoints does not need."""
    script = "import sys, navarch.operator.endpoints; print('aiohttp.web' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
