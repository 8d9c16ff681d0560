"""What the Secrets of stores mean. Their fields are CoreOS'; raises `PlaceError` with the field, never with what is in it."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from etcd_operator.backup.faults import PlaceError
from navarch.k8s.core.v1 import Secret

if TYPE_CHECKING:
    from obstore.store import AzureConfig, GCSConfig, S3Config

__all__ = ["amazon", "azure", "google"]

_REGION: Final = "us-east-1"
_CLOUDS: Final = {
    "": "",
    "AzurePublicCloud": "",
    "AzureChinaCloud": "blob.core.chinacloudapi.cn",
    "AzureGermanCloud": "blob.core.cloudapi.de",
    "AzureUSGovernmentCloud": "blob.core.usgovcloudapi.net",
}


def amazon(secret: Secret | None) -> S3Config:
    """From AWS' two files, `credentials` and `config`; without a Secret, whatever the operator has."""
    if secret is None:
        return {"region": _REGION}
    given = _profile(secret)
    config: S3Config = {
        "region": given.get("region", _REGION),
        "access_key_id": given["aws_access_key_id"],
        "secret_access_key": given["aws_secret_access_key"],
    }
    if "aws_session_token" in given:
        config["session_token"] = given["aws_session_token"]
    return config


def _profile(secret: Secret) -> Mapping[str, str]:
    """What the files say of the default profile."""
    parser = configparser.ConfigParser(interpolation=None)
    try:
        for name in ("config", "credentials"):
            parser.read_string(_text(secret, name))
        found = dict(parser["default"])
    except (configparser.Error, KeyError):
        found = {}
    if not {"aws_access_key_id", "aws_secret_access_key"} <= found.keys():
        raise PlaceError(f"the Secret {secret.name} has no key of AWS in `credentials`, under [default]")
    return found


def google(secret: Secret | None) -> GCSConfig:
    """From `access-token` or `credentials.json`; without a Secret, whatever the operator has."""
    if secret is None:
        return {}
    token, key = _text(secret, "access-token").strip(), _text(secret, "credentials.json")
    if token:
        return {"bearer_token": token}
    if not {"client_email", "private_key"} <= _fields(key).keys():
        words = "neither `access-token` nor the key of a service account as `credentials.json`"
        raise PlaceError(f"the Secret {secret.name} has {words}")
    return {"service_account_key": key}


def _fields(text: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def azure(secret: Secret | None) -> AzureConfig:
    """From `storage-account`, `storage-key` and `cloud`."""
    if secret is None:
        raise PlaceError("expected a Secret with `storage-account` and `storage-key`, got none")
    account, key, cloud = (_text(secret, name).strip() for name in ("storage-account", "storage-key", "cloud"))
    if not account or not key:
        raise PlaceError(f"the Secret {secret.name} has no `storage-account` or no `storage-key`")
    if cloud not in _CLOUDS:
        raise PlaceError(
            f"expected `cloud` in the Secret {secret.name} to be one of {', '.join(filter(None, _CLOUDS))}"
        )
    config: AzureConfig = {"account_name": account, "account_key": key}
    if _CLOUDS[cloud]:
        config["endpoint"] = f"https://{account}.{_CLOUDS[cloud]}"
    return config


def _text(secret: Secret, name: str) -> str:
    try:
        return (secret.data or {}).get(name, b"").decode()
    except UnicodeDecodeError:
        raise PlaceError(f"`{name}` in the Secret {secret.name} is no text") from None
