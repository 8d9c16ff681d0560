"""Timestamps and durations.

The expected types and values are what the CEL library of Kubernetes 1.36 answers.
"""

from __future__ import annotations

from navarch.schema.cel import CelDuration, Timestamp

VALUES: list[tuple[str, str, object]] = [
    ("timestamp('2020-01-01T00:00:00Z')", "google.protobuf.Timestamp", Timestamp(1_577_836_800_000_000_000)),
    ("timestamp('2020-01-01T00:00:00+02:00')", "google.protobuf.Timestamp", Timestamp(1_577_829_600_000_000_000)),
    ("timestamp('2020-01-01T00:00:00.123456789Z')", "google.protobuf.Timestamp", Timestamp(1_577_836_800_123_456_789)),
    ("timestamp(1577836800)", "google.protobuf.Timestamp", Timestamp(1_577_836_800_000_000_000)),
    ("timestamp(timestamp(0))", "google.protobuf.Timestamp", Timestamp(0)),
    ("string(timestamp('2020-01-01T00:00:00+02:00'))", "string", "2020-01-01T00:00:00+02:00"),
    ("string(timestamp('2020-01-01T00:00:00-05:30'))", "string", "2020-01-01T00:00:00-05:30"),
    ("string(timestamp('2020-01-01T00:00:00.120Z'))", "string", "2020-01-01T00:00:00.12Z"),
    ("string(timestamp('0001-01-01T00:00:00Z'))", "string", "0001-01-01T00:00:00Z"),
    ("int(timestamp('2020-01-01T00:00:00Z'))", "int", 1577836800),
    ("int(timestamp('1969-12-31T23:59:59.5Z'))", "int", -1),
    ("duration('1h30m')", "google.protobuf.Duration", CelDuration(5_400_000_000_000)),
    ("duration('1.5s')", "google.protobuf.Duration", CelDuration(1_500_000_000)),
    ("duration('-2ms')", "google.protobuf.Duration", CelDuration(-2_000_000)),
    ("duration('+1h')", "google.protobuf.Duration", CelDuration(3_600_000_000_000)),
    ("duration('.5s')", "google.protobuf.Duration", CelDuration(500_000_000)),
    ("duration('1us')", "google.protobuf.Duration", CelDuration(1_000)),
    ("duration('1\xb5s')", "google.protobuf.Duration", CelDuration(1_000)),
    ("duration('0')", "google.protobuf.Duration", CelDuration(0)),
    ("duration('1h1m1s1ms1us1ns')", "google.protobuf.Duration", CelDuration(3_661_001_001_001)),
    ("string(duration('1.5s'))", "string", "1.5s"),
    ("string(duration('90m'))", "string", "5400s"),
    ("string(duration('1ns'))", "string", "0.000000001s"),
    ("string(duration('-1.000000001s'))", "string", "-1.000000001s"),
    ("string(duration('0'))", "string", "0s"),
    ("int(duration('1s'))", "int", 1000000000),
    ("duration('1h') + duration('1m')", "google.protobuf.Duration", CelDuration(3_660_000_000_000)),
    ("duration('1h') - duration('2h')", "google.protobuf.Duration", CelDuration(-3_600_000_000_000)),
    (
        "timestamp('2020-01-01T00:00:00Z') + duration('24h')",
        "google.protobuf.Timestamp",
        Timestamp(1_577_923_200_000_000_000),
    ),
    (
        "duration('24h') + timestamp('2020-01-01T00:00:00Z')",
        "google.protobuf.Timestamp",
        Timestamp(1_577_923_200_000_000_000),
    ),
    (
        "timestamp('2020-01-02T00:00:00Z') - duration('24h')",
        "google.protobuf.Timestamp",
        Timestamp(1_577_836_800_000_000_000),
    ),
    (
        "timestamp('2020-01-02T00:00:00Z') - timestamp('2020-01-01T00:00:00Z')",
        "google.protobuf.Duration",
        CelDuration(86_400_000_000_000),
    ),
    ("timestamp('2020-01-01T00:00:00Z') == timestamp('2020-01-01T02:00:00+02:00')", "bool", True),
    ("timestamp('2020-05-17T10:20:30.123Z').getFullYear()", "int", 2020),
    ("timestamp('2020-05-17T10:20:30.123Z').getMonth()", "int", 4),
    ("timestamp('2020-05-17T10:20:30.123Z').getDayOfYear()", "int", 137),
    ("timestamp('2020-05-17T10:20:30.123Z').getDayOfMonth()", "int", 16),
    ("timestamp('2020-05-17T10:20:30.123Z').getDate()", "int", 17),
    ("timestamp('2020-05-17T10:20:30.123Z').getDayOfWeek()", "int", 0),
    ("timestamp('2020-05-17T10:20:30.123Z').getHours()", "int", 10),
    ("timestamp('2020-05-17T10:20:30.123Z').getMinutes()", "int", 20),
    ("timestamp('2020-05-17T10:20:30.123Z').getSeconds()", "int", 30),
    ("timestamp('2020-05-17T10:20:30.123Z').getMilliseconds()", "int", 123),
    ("timestamp('2020-05-17T10:20:30+02:00').getHours()", "int", 8),
    ("timestamp('2020-05-17T10:20:30Z').getHours('America/New_York')", "int", 6),
    ("timestamp('2020-05-17T10:20:30Z').getHours('+05:30')", "int", 15),
    ("timestamp('2020-05-17T10:20:30Z').getMinutes('-05:30')", "int", 50),
    ("timestamp('2020-05-17T10:20:30Z').getHours('05:30')", "int", 15),
    ("timestamp('2020-05-17T02:00:00Z').getDate('-08:00')", "int", 16),
    ("timestamp('2020-05-17T02:00:00Z').getHours('UTC')", "int", 2),
    ("timestamp('1969-12-31T23:59:59.250Z').getMilliseconds()", "int", 250),
    ("duration('3723.456s').getHours()", "int", 1),
    ("duration('3723.456s').getMinutes()", "int", 62),
    ("duration('3723.456s').getSeconds()", "int", 3723),
    ("duration('3723.456s').getMilliseconds()", "int", 3723456),
    ("duration('-1.5s').getSeconds()", "int", -1),
    ("duration('-90m').getHours()", "int", -1),
    ("[duration('1s'), duration('2s')].sum()", "google.protobuf.Duration", CelDuration(3_000_000_000)),
]
"""Expression, type, value."""

FAILING: list[str] = [
    "timestamp('9999-12-31T23:59:59Z') + duration('1s')",
    "timestamp('0001-01-01T00:00:00Z') - duration('1s')",
    "timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')",
    "duration('9223372036854775807ns') + duration('1ns')",
    "timestamp('2020-05-17T10:20:30Z').getHours('Nowhere/City')",
    "timestamp('2020-05-17T10:20:30Z').getHours('x:y')",
    "duration('1' + 'x')",
    "timestamp('20' + '20')",
]
"""Expressions that compile, but give no value."""

REJECTED: list[str] = [
    "timestamp('2020-01-01')",
    "timestamp('2020-01-01t00:00:00z')",
    "timestamp('2020-02-30T00:00:00Z')",
    "timestamp('2020-01-01T24:00:00Z')",
    "timestamp('0000-01-01T00:00:00Z')",
    "timestamp(253402300800)",
    "duration('1d')",
    "duration('1')",
    "duration('')",
    "duration('1h-1m')",
    "duration(1000)",
    "duration('10000000000h')",
    "timestamp(0) + timestamp(0)",
    "duration('1s') + 1",
    "timestamp(0) - 1",
    "timestamp('2020-01-01T00:00:00Z').getHours(1)",
    "duration('1s').getFullYear()",
    "timestamp(1.5)",
]
"""Expressions that do not compile."""
