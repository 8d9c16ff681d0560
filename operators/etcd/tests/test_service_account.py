"""Keys of Google's service accounts, as tenants put them into Secrets."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from etcd_operator.backup.credentials import ServiceAccount
from etcd_operator.backup.snapshot_store import DestinationError


def test_key_that_is_longer_than_keys_are_is_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 47 KB, made of large numbers that are no primes, took 17 seconds to be refused."""

    def read(pem: bytes, password: None) -> None:
        raise AssertionError(f"expected a long key to be refused unread, got {len(pem)} bytes")

    monkeypatch.setattr("etcd_operator.backup.credentials.load_pem_private_key", read)
    fields = {"client_email": "a@example.com", "private_key": "x" * 9000}
    with pytest.raises(DestinationError, match="the Secret keys has"):
        ServiceAccount.of(fields, lambda: datetime(2026, 1, 1, tzinfo=UTC), "keys")
