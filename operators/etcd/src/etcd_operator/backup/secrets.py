"""What the Secrets of stores mean. Their fields are CoreOS'; raises `PlaceError` with the field, never with what is in it.

obstore takes what it is not given from the operator's environment: beside the keys of a Secret, the operator's own session
token or bearer token would be sent. A provider of credentials stands in the place of all of them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from etcd_operator.backup.faults import PlaceError
from etcd_operator.backup.service_account import ServiceAccount
from navarch.k8s.core.v1 import Secret

if TYPE_CHECKING:
    from obstore.store import (
        AzureAccessKey,
        AzureConfig,
        AzureCredentialProvider,
        GCSConfig,
        GCSCredential,
        GCSCredentialProvider,
        S3Config,
        S3Credential,
        S3CredentialProvider,
    )

__all__ = ["amazon", "azure", "google"]

_LONGEST_FIELD: Final = 32 * 1024
_REGION: Final = "us-east-1"
_REGION_FORM: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ACCOUNT_FORM: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""Both become part of the name of a host."""
_GOOGLE: Final[GCSConfig] = {"skip_signature": False}
_CLOUDS: Final = {
    "": "",
    "AzurePublicCloud": "",
    "AzureChinaCloud": "blob.core.chinacloudapi.cn",
    "AzureGermanCloud": "blob.core.cloudapi.de",
    "AzureUSGovernmentCloud": "blob.core.usgovcloudapi.net",
}


def amazon(secret: Secret) -> tuple[S3Config, S3CredentialProvider]:
    """From AWS' two files, `credentials` and `config`."""
    given = _profile(secret)
    region = given.get("region", _REGION)
    if _REGION_FORM.fullmatch(region) is None:
        raise PlaceError(f"expected `region` in the Secret {secret.name} to be one of AWS, such as {_REGION}")
    keys: S3Credential = {
        "access_key_id": given["aws_access_key_id"],
        "secret_access_key": given["aws_secret_access_key"],
        "token": given.get("aws_session_token"),
        "expires_at": None,
    }
    return {"region": region, "skip_signature": False}, lambda: keys


def _profile(secret: Secret) -> Mapping[str, str]:
    """What the files say of the default profile."""
    found = {**_options(_text(secret, "config")), **_options(_text(secret, "credentials"))}
    if not {"aws_access_key_id", "aws_secret_access_key"} <= found.keys():
        raise PlaceError(f"the Secret {secret.name} has no key of AWS in `credentials`, under [default]")
    return found


def _options(text: str) -> dict[str, str]:
    """The options of the section [default], in linear time: configparser's pattern is quadratic in spaces."""
    section, found = "", dict[str, str]()
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == "default" and not line.startswith(("#", ";")) and "=" in line:
            name, _, value = line.partition("=")
            found[name.strip().lower()] = value.strip()
    return found


def google(secret: Secret, now: Callable[[], datetime]) -> tuple[GCSConfig, GCSCredentialProvider]:
    """From `access-token` or `credentials.json`."""
    token, key = _text(secret, "access-token").strip(), _text(secret, "credentials.json")
    if token:
        found: GCSCredential = {"token": token, "expires_at": None}
        return _GOOGLE, lambda: found
    fields = _fields(key)
    if not {"client_email", "private_key"} <= fields.keys():
        words = "neither `access-token` nor the key of a service account as `credentials.json`"
        raise PlaceError(f"the Secret {secret.name} has {words}")
    return _GOOGLE, ServiceAccount.of(fields, now, secret.name)


def _fields(text: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def azure(secret: Secret) -> tuple[AzureConfig, AzureCredentialProvider]:
    """From `storage-account`, `storage-key` and `cloud`."""
    account, key, cloud = (_text(secret, name).strip() for name in ("storage-account", "storage-key", "cloud"))
    if not account or not key:
        raise PlaceError(f"the Secret {secret.name} has no `storage-account` or no `storage-key`")
    if cloud not in _CLOUDS:
        raise PlaceError(
            f"expected `cloud` in the Secret {secret.name} to be one of {', '.join(filter(None, _CLOUDS))}"
        )
    if _ACCOUNT_FORM.fullmatch(account) is None:
        raise PlaceError(
            f"expected `storage-account` in the Secret {secret.name} to have lower case letters and digits"
        )
    _refuse_no_key(key, secret.name)
    config: AzureConfig = {"account_name": account, "skip_signature": False, "use_emulator": False}
    if _CLOUDS[cloud]:
        config["endpoint"] = f"https://{account}.{_CLOUDS[cloud]}"
    keys: AzureAccessKey = {"access_key": key, "expires_at": None}
    return config, lambda: keys


def _refuse_no_key(key: str, secret: str) -> None:
    try:
        base64.b64decode(key, validate=True)
    except ValueError:
        raise PlaceError(f"the store cannot be opened with what the Secret {secret} has") from None


def _text(secret: Secret, name: str) -> str:
    data = (secret.data or {}).get(name, b"")
    if len(data) > _LONGEST_FIELD:
        raise PlaceError(f"expected `{name}` in the Secret {secret.name} to have at most {_LONGEST_FIELD} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise PlaceError(f"`{name}` in the Secret {secret.name} is no text") from None
