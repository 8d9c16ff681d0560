"""Resolves a context, its cluster and its user to a Config."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from navarch.client.config.document import ConfigEntry, YamlScalar, kind_of
from navarch.client.config.model import EXEC_VERSIONS, Config, ExecPlugin, Impersonation
from navarch.errors import ConfigError

_MODES = ("Never", "IfAvailable", "Always")
_EXTENSION = "client.authentication.k8s.io/exec"
# Aliases can make a small file stand for an endless or an immense value.
_LARGEST_EXTENSION = 10_000
_DEEPEST_EXTENSION = 50


def resolve(context: ConfigEntry, cluster: ConfigEntry, user: ConfigEntry, origin: str) -> Config:
    """Returns the Config of these three. Raises ConfigError with the entry and the field that cannot be used."""
    _refuse_auth_provider(user)
    _check_cluster(cluster)
    _check_user(user)
    return Config(
        server=cluster.text("server"),
        namespace=context.text("namespace") or "default",
        token=user.text("token"),
        token_file=user.path("tokenFile"),
        username=user.text("username"),
        password=user.text("password"),
        exec_plugin=_exec_plugin(user, cluster),
        ca_file="" if cluster.text("certificate-authority-data") else cluster.path("certificate-authority"),
        ca_data=cluster.decoded("certificate-authority-data"),
        client_certificate_file="" if user.text("client-certificate-data") else user.path("client-certificate"),
        client_certificate_data=user.decoded("client-certificate-data"),
        client_key_file="" if user.text("client-key-data") else user.path("client-key"),
        client_key_data=user.decoded("client-key-data"),
        tls_server_name=cluster.text("tls-server-name"),
        insecure_skip_verify=cluster.flag("insecure-skip-tls-verify"),
        compression=not cluster.flag("disable-compression"),
        proxy_url=cluster.text("proxy-url"),
        impersonate=_impersonation(user),
        origin=origin,
    )


def _check_cluster(cluster: ConfigEntry) -> None:
    if not cluster.text("server"):
        raise ConfigError(f"{cluster.where}: expected a server such as https://HOST:6443, got none")
    ca = cluster.text("certificate-authority") or cluster.text("certificate-authority-data")
    if ca and cluster.flag("insecure-skip-tls-verify"):
        raise ConfigError(
            f"{cluster.where}: expected either a certificate-authority or insecure-skip-tls-verify, got both. "
            f"Remove insecure-skip-tls-verify."
        )


def _check_user(user: ConfigEntry) -> None:
    basic = user.text("username") or user.text("password")
    if basic and (user.text("token") or user.text("tokenFile")):
        raise ConfigError(f"{user.where}: expected one way to authenticate, got a token and a user name. Keep one.")
    certificate = user.text("client-certificate") or user.text("client-certificate-data")
    key = user.text("client-key") or user.text("client-key-data")
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise ConfigError(f"{user.where}: expected a client-certificate and its client-key, got no {missing}")


def _refuse_auth_provider(user: ConfigEntry) -> None:
    if user.has("auth-provider"):
        name = user.child("auth-provider").text("name")
        raise ConfigError(
            f"{user.where}: expected a token, a client certificate or an exec plugin, got the auth-provider {name!r}, "
            f"which Kubernetes removed in 1.26. Use its exec plugin, such as gke-gcloud-auth-plugin or kubelogin."
        )


def _impersonation(user: ConfigEntry) -> Impersonation | None:
    extra_entry = user.child("as-user-extra")
    extra = {key: extra_entry.texts(key) for key in extra_entry.keys()}  # noqa: SIM118 - an ConfigEntry is no dict
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    if not name and not uid and not groups and not extra:
        return None
    if not name:
        raise ConfigError(
            f"{user.where}: expected `as`, the user to impersonate, got only as-uid, as-groups or as-user-extra"
        )
    return Impersonation(user=name, uid=uid, groups=groups, extra=extra)


def _exec_plugin(user: ConfigEntry, cluster: ConfigEntry) -> ExecPlugin | None:
    if not user.has("exec"):
        return None
    plugin = user.child("exec")
    if not plugin.text("command"):
        raise ConfigError(f"{plugin.where}: expected a command, got none")
    provide = plugin.flag("provideClusterInfo")
    return ExecPlugin(
        command=_command(plugin),
        args=plugin.texts("args"),
        env=_environment(plugin),
        api_version=_api_version(plugin),
        interactive_mode=_interactive_mode(plugin),
        install_hint=plugin.text("installHint"),
        provide_cluster_info=provide,
        cluster_extension=_extension(cluster) if provide else b"",
    )


def _command(plugin: ConfigEntry) -> str:
    command = plugin.text("command")
    return plugin.path("command") if "/" in command else command


def _api_version(plugin: ConfigEntry) -> str:
    version = plugin.text("apiVersion")
    if version not in EXEC_VERSIONS:
        got = repr(version[:80]) if version else "none"
        raise ConfigError(
            f"{plugin.where}: expected apiVersion {' or '.join(EXEC_VERSIONS)}, got {got}. "
            f"Update the plugin and its entry in the kubeconfig."
        )
    return version


def _interactive_mode(plugin: ConfigEntry) -> str:
    mode = plugin.text("interactiveMode")
    if mode in _MODES:
        return mode
    if not mode and plugin.text("apiVersion") != EXEC_VERSIONS[0]:
        return "IfAvailable"
    got = repr(mode[:80]) if mode else "none"
    raise ConfigError(f"{plugin.where}: expected interactiveMode to be one of {', '.join(_MODES)}, got {got}")


def _environment(plugin: ConfigEntry) -> dict[str, str]:
    variables: dict[str, str] = {}
    for variable in plugin.children("env"):
        name = variable.text("name")
        if not name or "=" in name:
            raise ConfigError(f"{variable.where}: expected the name of an environment variable, got none")
        variables[name] = variable.text("value")
    return variables


def _extension(cluster: ConfigEntry) -> bytes:
    for extension in cluster.children("extensions"):
        if extension.text("name") == _EXTENSION:
            value = _plain(extension.raw("extension"), extension.where, count(), 0)
            return json.dumps(value).encode()
    return b""


def _plain(value: Any, where: str, seen: Iterator[int], depth: int) -> Any:
    """Returns the value as JSON values. Raises ConfigError if it is too large or JSON lacks such a value."""
    if next(seen) > _LARGEST_EXTENSION or depth > _DEEPEST_EXTENSION:
        raise ConfigError(f"{where}: expected at most {_LARGEST_EXTENSION} values, {_DEEPEST_EXTENSION} deep, got more")
    if isinstance(value, YamlScalar):
        return value.value
    if isinstance(value, dict):
        return {_key(key, where): _plain(item, where, seen, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, where, seen, depth + 1) for item in value]
    if value is None or isinstance(value, str | bool):
        return value
    raise ConfigError(f"{where}: expected plain data, got {kind_of(value)}")


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise ConfigError(f"{where}: expected names of fields to be text, got {kind_of(key)}")
    return str(key)
