"""Credentials for object stores: from Secrets with CoreOS' fields, or the operator's own where a rule allows it.

A `DestinationError` names the field, never its value. obstore takes missing settings from the operator's environment, and
would send the operator's session token with the keys of a Secret; a credential provider replaces all of them.
Ambient credentials come from the operator's environment, metadata server or workload identity. Without a rule no namespace
may use them: every author of an EtcdBackup could read and write whatever the operator may.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from etcd_operator.backup.snapshot_store import DestinationError
from etcd_operator.destinations import BUCKET, GcsSource, S3Source, is_plain_path
from navarch.api.names import DNS_LABEL
from navarch.errors import ConfigError
from navarch.k8s.core.v1 import Secret

if TYPE_CHECKING:
    from obstore.store import GCSCredential


_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.full_control"
_LIFETIME: Final = timedelta(hours=1)
_LONGEST_KEY: Final = 8 * 1024
"""Limits a PEM key; one of 4096 bits has 3,300 bytes, and parsing a longer one takes seconds."""


@dataclass(frozen=True, slots=True, repr=False)
class ServiceAccount:
    """Signs tokens for obstore with the key of a Google service account. It ignores URLs in the key file."""

    email: str
    key_id: str
    key: RSAPrivateKey
    now: Callable[[], datetime]

    @classmethod
    def of(cls, fields: Mapping[str, Any], now: Callable[[], datetime], secret: str) -> ServiceAccount:
        """Reads the fields of `credentials.json`; raises `DestinationError`."""
        pem = str(fields["private_key"]).encode()
        try:
            key = load_pem_private_key(pem, password=None) if len(pem) <= _LONGEST_KEY else None
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, RSAPrivateKey):
            raise DestinationError(f"the store cannot be opened with what the Secret {secret} has") from None
        return cls(str(fields["client_email"]), str(fields.get("private_key_id", "")), key, now)

    def __call__(self) -> GCSCredential:
        """Returns a token that is valid for an hour."""
        now = self.now()
        claims = {
            "iss": self.email,
            "sub": self.email,
            "scope": _SCOPE,
            "iat": int(now.timestamp()),
            "exp": int((now + _LIFETIME).timestamp()),
        }
        head = {"alg": "RS256", "typ": "JWT", "kid": self.key_id}
        unsigned = f"{_base64url(msgspec.json.encode(head))}.{_base64url(msgspec.json.encode(claims))}"
        signature = self.key.sign(unsigned.encode(), PKCS1v15(), SHA256())
        return {"token": f"{unsigned}.{_base64url(signature)}", "expires_at": now + _LIFETIME}


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


_FORM: Final = re.compile(rf"(s3|gs)://({BUCKET})(?:/(.*))?", re.DOTALL)
_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class BucketPrefix:
    """A bucket, or a folder of one: `s3://bucket/team-a` contains `team-a/etcd.db`, but neither `team-ab/x` nor `team-a`."""

    scheme: str
    bucket: str
    folders: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> BucketPrefix:
        """Parses `s3://bucket/folder/` or `gs://bucket/folder/`; raises `ConfigError`."""
        found = _FORM.fullmatch(text)
        folders = (found[3] or "") if found else ""
        path = folders.removesuffix("/")
        if found is None or (folders and not is_plain_path(path)):
            raise ConfigError(
                f"expected a prefix such as s3://bucket/folder/ or gs://bucket/folder/, got {text[:100]!r}"
            )
        return cls(found[1], found[2], tuple(path.split("/")) if path else ())

    def covers(self, scheme: str, path: str) -> bool:
        """Reports whether the prefix contains the object at `bucket/path`, compared folder by folder."""
        bucket, *folders = path.split("/")
        inside = tuple(folders[: len(self.folders)]) == self.folders and len(folders) > len(self.folders)
        return (scheme, bucket) == (self.scheme, self.bucket) and inside


class AmbientCredentials:
    """The rules for the operator's own credentials: a YAML or JSON file with a list of prefixes per namespace.

    It reads the file at each use, so that a removed rule takes effect at once. Without a file there are no rules.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def rules(self) -> Mapping[str, tuple[BucketPrefix, ...]]:
        """Returns the prefixes per namespace; raises `ConfigError`."""
        if self._file is None:
            return {}
        try:
            with self._file.open("rb") as file:
                content = yaml.safe_load(file.read(_MAX_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, yaml.YAMLError, RecursionError, ValueError) as error:
            raise ConfigError(f"{self._file} cannot be read: {type(error).__name__}") from None
        if content is None:
            return {}
        if not isinstance(content, dict):
            raise ConfigError(f"expected namespaces with a list of prefixes each in {self._file}")
        return {_namespace(name): tuple(map(BucketPrefix.of, _texts(name, each))) for name, each in content.items()}

    def refuse_others(self, source: S3Source | GcsSource, namespace: str) -> None:
        """Raises `DestinationError` unless a rule allows the namespace that object and the source has no endpoint."""
        secret = "awsSecret" if isinstance(source, S3Source) else "gcpSecret"
        if source.endpoint:
            raise DestinationError(f"an endpoint needs a Secret of the same namespace: set {secret}")
        try:
            prefixes = self.rules().get(namespace, ())
        except ConfigError as error:
            raise DestinationError(f"the operator's own credentials cannot be used: {error}") from None
        scheme = "s3" if isinstance(source, S3Source) else "gs"
        if not any(prefix.covers(scheme, source.path) for prefix in prefixes):
            message = (
                f"the namespace {namespace} may not use the operator's own credentials for {scheme}://{source.path}"
            )
            raise DestinationError(
                f"{message}: set {secret}, or ask the operator's administrator to allow a prefix (ETCD_OPERATOR_AMBIENT)"
            )


def _namespace(name: object) -> str:
    if not isinstance(name, str) or not DNS_LABEL.allows(name):
        raise ConfigError(f"expected the name of a namespace, got {str(name)[:100]!r}; patterns are not supported")
    return name


def _texts(name: object, prefixes: object) -> list[str]:
    if not isinstance(prefixes, list) or not all(isinstance(each, str) for each in prefixes):
        raise ConfigError(f"expected a list of prefixes for {name}, such as [s3://bucket/folder/]")
    return prefixes


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


_LONGEST_FIELD: Final = 32 * 1024
_REGION: Final = "us-east-1"
_REGION_FORM: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ACCOUNT_FORM: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""Region and account become part of a host name."""
_GOOGLE: Final[GCSConfig] = {"skip_signature": False}
_CLOUDS: Final = {
    "": "",
    "AzurePublicCloud": "",
    "AzureChinaCloud": "blob.core.chinacloudapi.cn",
    "AzureGermanCloud": "blob.core.cloudapi.de",
    "AzureUSGovernmentCloud": "blob.core.usgovcloudapi.net",
}


def amazon(secret: Secret) -> tuple[S3Config, S3CredentialProvider]:
    """Reads the two files of AWS, `credentials` and `config`."""
    given = _profile(secret)
    region = given.get("region", _REGION)
    if _REGION_FORM.fullmatch(region) is None:
        raise DestinationError(f"expected `region` in the Secret {secret.name} to be one of AWS, such as {_REGION}")
    keys: S3Credential = {
        "access_key_id": given["aws_access_key_id"],
        "secret_access_key": given["aws_secret_access_key"],
        "token": given.get("aws_session_token"),
        "expires_at": None,
    }
    return {"region": region, "skip_signature": False}, lambda: keys


def _profile(secret: Secret) -> Mapping[str, str]:
    """Returns the default profile of the two files."""
    found = {**_options(_text(secret, "config")), **_options(_text(secret, "credentials"))}
    if not {"aws_access_key_id", "aws_secret_access_key"} <= found.keys():
        raise DestinationError(f"the Secret {secret.name} has no key of AWS in `credentials`, under [default]")
    return found


def _options(text: str) -> dict[str, str]:
    """Parses the section [default] in linear time; configparser is quadratic in spaces."""
    section, found = "", dict[str, str]()
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == "default" and not line.startswith(("#", ";")) and "=" in line:
            name, _, value = line.partition("=")
            found[name.strip().lower()] = value.strip()
    return found


def google(secret: Secret, now: Callable[[], datetime]) -> tuple[GCSConfig, GCSCredentialProvider]:
    """Reads `access-token` or `credentials.json`."""
    token, key = _text(secret, "access-token").strip(), _text(secret, "credentials.json")
    if token:
        found: GCSCredential = {"token": token, "expires_at": None}
        return _GOOGLE, lambda: found
    fields = _fields(key)
    if not {"client_email", "private_key"} <= fields.keys():
        message = "neither `access-token` nor the key of a service account as `credentials.json`"
        raise DestinationError(f"the Secret {secret.name} has {message}")
    return _GOOGLE, ServiceAccount.of(fields, now, secret.name)


def _fields(text: str) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def azure(secret: Secret) -> tuple[AzureConfig, AzureCredentialProvider]:
    """Reads `storage-account`, `storage-key` and `cloud`."""
    account, key, cloud = (_text(secret, name).strip() for name in ("storage-account", "storage-key", "cloud"))
    if not account or not key:
        raise DestinationError(f"the Secret {secret.name} has no `storage-account` or no `storage-key`")
    if cloud not in _CLOUDS:
        raise DestinationError(
            f"expected `cloud` in the Secret {secret.name} to be one of {', '.join(filter(None, _CLOUDS))}"
        )
    if _ACCOUNT_FORM.fullmatch(account) is None:
        raise DestinationError(
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
        raise DestinationError(f"the store cannot be opened with what the Secret {secret} has") from None


def _text(secret: Secret, name: str) -> str:
    data = (secret.data or {}).get(name, b"")
    if len(data) > _LONGEST_FIELD:
        raise DestinationError(f"expected `{name}` in the Secret {secret.name} to have at most {_LONGEST_FIELD} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DestinationError(f"`{name}` in the Secret {secret.name} is not UTF-8 text") from None
