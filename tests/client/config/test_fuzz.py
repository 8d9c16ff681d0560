"""Whatever stands in the file: a Config or a ConfigError, and nothing else."""

from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from example_counts import examples
from navarch.client.config import Config, load
from navarch.client.config.tls import validity
from navarch.errors import ConfigError

relaxed = examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

FIELDS = [
    "server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name",
    "proxy-url", "extensions", "token", "tokenFile", "username", "password", "client-certificate", "client-key",
    "client-certificate-data", "client-key-data", "exec", "auth-provider", "as", "as-uid", "as-groups",
    "as-user-extra", "cluster", "user", "namespace",
]  # fmt: skip
EXEC = ["command", "args", "env", "apiVersion", "interactiveMode", "installHint", "provideClusterInfo"]

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates() | st.binary(max_size=4)
)
texts = st.sampled_from(["c", "https://h", "client.authentication.k8s.io/v1", "Never", "Zm9v", "http://p"]) | st.text(
    max_size=8
)
values = st.recursive(
    scalars | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(EXEC + FIELDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
entries = st.dictionaries(st.sampled_from(FIELDS), values, max_size=6) | values


def loads_or_says_why(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        config = load(path)
    except ConfigError as error:
        assert str(path) in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert isinstance(config, Config)
        assert repr(config)


@relaxed
@given(content=st.binary(max_size=200))
def test_any_bytes_load_or_raise_config_error(tmp_path: Path, content: bytes) -> None:
    """Rubbish is told, not crashed upon."""
    loads_or_says_why(tmp_path / "config", content)


@relaxed
@given(content=st.text(alphabet="[]{}:,-&*!|>'\"?%@`#\n ab<0.~=", max_size=80))
def test_any_yaml_like_text_loads_or_raises_config_error(tmp_path: Path, content: str) -> None:
    """So is what nearly is YAML."""
    loads_or_says_why(tmp_path / "config", content.encode())


@relaxed
@given(context=entries, cluster=entries, user=entries)
def test_any_values_in_the_entries_load_or_raise_config_error(
    tmp_path: Path, context: Any, cluster: Any, user: Any
) -> None:
    """Values of any type in any known field, with everything else in order."""
    if isinstance(context, dict):
        context = {**context, "cluster": "c", "user": "u"}
    if isinstance(cluster, dict):
        cluster = {"server": "https://h", **cluster}
    document = {
        "current-context": "d",
        "contexts": [{"name": "d", "context": context}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    loads_or_says_why(tmp_path / "config", yaml.safe_dump(document).encode())


@relaxed
@given(data=st.data())
def test_any_damage_to_a_good_file_loads_or_raises_config_error(tmp_path: Path, write: Any, data: Any) -> None:
    """A file with a few bytes changed."""
    content = bytearray(write(user={"token": "abc", "as": "x"}).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    loads_or_says_why(tmp_path / "config", bytes(content))


@given(server=st.text(max_size=30) | st.text(max_size=20).map(lambda rest: f"https://{rest}"))
def test_any_server_is_taken_or_raises_config_error(server: str) -> None:
    """By hand as well."""
    try:
        Config(server=server, proxy_url=server)
    except ConfigError as error:
        assert "server" in str(error) or "proxy_url" in str(error)  # noqa: PT017 - both outcomes are right


@given(der=st.binary(max_size=64))
def test_no_bytes_break_the_reader_of_certificates(der: bytes) -> None:
    """A period or none."""
    import ssl

    assert validity(ssl.DER_cert_to_PEM_cert(der).encode()) is None
    assert validity(der) is None
