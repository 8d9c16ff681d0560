"""A Config made by hand, and what it refuses."""

from typing import Any

import msgspec
import pytest

import navarch
from navarch.client.config import Config, ExecPlugin, Impersonation, default_user_agent
from navarch.errors import ConfigError


def test_a_config_by_hand_needs_only_the_server() -> None:
    """Everything else has a default."""
    config = Config(server="https://127.0.0.1:6443", token="abc", ca_file="ca.crt")
    assert (config.namespace, config.compression, config.timeout) == ("default", True, 30.0)
    assert msgspec.structs.replace(config, namespace="shop").namespace == "shop"


def test_a_server_may_have_a_path_and_loses_its_last_slash() -> None:
    """Paths of the API are put behind it."""
    assert Config(server="https://rancher/k8s/clusters/c1/").server == "https://rancher/k8s/clusters/c1"


def test_a_config_cannot_be_changed_in_place() -> None:
    """It may be shared."""
    with pytest.raises(AttributeError):
        Config(server="https://a").server = "https://b"  # type: ignore[misc]  # that is what is tested


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "insecure": ({"insecure_skip_verify": True, "ca_file": "x"}, "either a CA certificate or insecure_skip_verify"),
    "two CAs": ({"ca_data": b"x", "ca_file": "x"}, "expected one CA certificate"),
    "no key": ({"client_certificate_data": b"x"}, "a client certificate without its key"),
    "no certificate": ({"client_key_file": "x"}, "a client key without its certificate"),
    "two ways": ({"token": "x", "username": "y"}, "one way to authenticate"),
    "no name": ({"password": "x"}, "a user name with the password"),
    "timeout": ({"timeout": 0}, "a timeout above 0 seconds, got 0"),
    "nobody": ({"impersonate": Impersonation(user="")}, "the user to impersonate"),
    "no timeout": ({"timeout": float("nan")}, "a timeout above 0 seconds, got nan"),
    "endless timeout": ({"timeout": float("inf")}, "a timeout above 0 seconds, got inf"),
    "two lines": ({"user_agent": "a\r\nX-Admin: yes"}, "user_agent in one line"),
    "user of two lines": ({"impersonate": Impersonation(user="a\nb")}, "Impersonate-User in one line"),
    "group of two lines": (
        {"impersonate": Impersonation(user="a", groups=("b\n", "c"))},
        "Impersonate-Group in one line",
    ),
    "no host name": ({"tls_server_name": ".example.com"}, "tls_server_name to be a host name"),
    "no label": ({"tls_server_name": "a" * 64}, "tls_server_name to be a host name"),
    "not ASCII": ({"proxy_url": "http://prox\u00fd"}, "non-ASCII"),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_fields_that_contradict_each_other_are_told(name: str) -> None:
    """At once, and not at the first request."""
    fields, message = CONTRADICTIONS[name]
    with pytest.raises(ConfigError, match=f"this Config: expected .*{message}|this Config: .*{message}"):
        Config(server="https://a", **fields)


@pytest.mark.parametrize("server", ["https://a..b", f"https://{'a' * 64}:6443", "https://.a"])
def test_host_that_no_resolver_would_take_is_told(server: str) -> None:
    """Python's own resolver fails over it with an error of another kind."""
    with pytest.raises(ConfigError, match="expected server as https://HOST:PORT"):
        Config(server=server)


def test_impersonation_becomes_headers() -> None:
    """Groups and extra values repeat their header; keys are escaped."""
    user = Impersonation(user="jane", uid="7", groups=("a", "b"), extra={"acme.com/scope": ("x", "y")})
    assert user.headers() == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-acme.com%2Fscope", "x"),
        ("Impersonate-Extra-acme.com%2Fscope", "y"),
    )


def test_the_user_agent_names_navarch_and_its_version() -> None:
    """So that audit logs can be read."""
    assert default_user_agent().startswith(f"navarch/{navarch.__version__} (")


def test_a_config_is_printed_without_what_it_does_not_have() -> None:
    """Short, and complete but for secrets."""
    plugin = ExecPlugin(command="aws", api_version="v", interactive_mode="Never", timeout=5)
    config = Config(server="https://a", exec_plugin=plugin, timeout=3, ca_data=b"12345", origin="here")
    assert repr(config) == (
        "Config(server='https://a', namespace='default', exec_plugin=ExecPlugin(command='aws', api_version='v', "
        "interactive_mode='Never', timeout=5), ca_data='5 bytes', compression=True, timeout=3, origin='here')"
    )
