"""Answers without what no two servers have in common: uids, times, versions, generated names, addresses."""

from __future__ import annotations

import json
import re
from typing import Any

from differential.engines import Answer
from differential.steps import Json

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"^(\d+[smhd])+$|^<invalid>$")
_NUMBER = re.compile(r"\b\d+\b")
_MADE_UP = re.compile(r"\b(kube-api-access-|[a-z0-9-]*\bg-|Bad_)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_ADMIN = re.compile(r"\b(rig|kubernetes)-admin\b")
_ADDRESS = re.compile(r"\b10\.0\.0\.\d+\b")
_PORT = re.compile(r":3\d{4}/")
_RECORD = re.compile(r"\bin record \(\d+\)")
_OBJECT = re.compile(r'(.*Invalid value: )("\{.*\}")(: .*)', re.DOTALL)
_YEAR = ' as "2006"'
"""What Go says of a text that is no time; the year may be a version, too."""
_ADDRESSES = frozenset({"clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"})


class Normal:
    """The eye with which the answers of one server in one sequence are read; it remembers what it has seen."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self._versions: dict[str, str] = {}

    def begin(self, version: str) -> None:
        """Takes note of the version at which the sequence begins."""
        self._versions[version] = "<beginning>"

    def answer(self, answer: Answer) -> Json:
        """The answer as it is compared."""
        body = answer.body
        if isinstance(body, list):
            body = [self._value(event) for event in body if event.get("type") != "BOOKMARK"]
        elif isinstance(body, dict) and body.get("kind") == "Status":
            body = self._status(body)
        else:
            body = self._value(body)
        return {
            "status": answer.status,
            "type": answer.content_type,
            "warnings": [self._text(each) for each in answer.warnings],
            "body": body,
        }

    def _status(self, body: Json) -> Json:
        """Causes about one field come in the order of a Go map, in any; and some that Kubernetes finds twice come twice."""
        body = self._value(body)
        details, message = body.get("details") or {}, body.get("message", "")
        if details.get("causes"):
            said = list(dict.fromkeys(f"{each.get('field')}: {each.get('message')}" for each in details["causes"]))
            details["causes"] = sorted({_cause(each) for each in details["causes"]})
            if message.endswith(f" is invalid: [{', '.join(said)}]"):
                body["message"] = message.partition(" is invalid: [")[0] + " is invalid: [the causes]"
        elif "errors:\n" in message:
            head, *errors = message.splitlines()
            body["message"] = "\n".join([head, *sorted(errors)])
        return body

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if key == "managedFields" and isinstance(value, list):
            return sorted((self._value(each) for each in value), key=_manager)
        if key in _ADDRESSES and value not in (None, "None", ["None"]):
            return f"<{key}>"
        if isinstance(value, list):
            return [self._value(each, key) for each in value]
        return self._text(value, key) if isinstance(value, str) else value

    def _object(self, value: Json) -> Json:
        if "items" in value or value.get("kind") == "Table":
            value = {**value, "metadata": _of_list(value.get("metadata") or {})}
            value |= {name: value[name] or [] for name in ("items", "rows") if name in value}  # which may be null
        # Metadata first: its versions are seen in the order of the objects, whatever the order of their fields.
        return {name: self._value(value[name], name) for name in sorted(value)}

    def _text(self, text: str, key: str = "") -> str:
        if found := _OBJECT.match(text):
            return f"{found[1]}{self._object_text(found[2])}{found[3]}"
        if key == "token":
            return "<token>"
        if key == "resourceVersion":
            return self._versions.setdefault(text, f"<version {len(self._versions)}>") if text.isdecimal() else text
        if key == "cells":
            text = _PORT.sub(":<port>/", _ADDRESS.sub("<address>", "<age>" if _AGE.match(text) else text))
        text = _UUID.sub(lambda found: self._uids.setdefault(found[0], f"<uid {len(self._uids)}>"), text)
        text = _MADE_UP.sub(r"\1<any>", _ADMIN.sub("admin", _TIME.sub("<time>", text)))
        if "ersion" in text:
            text = _RECORD.sub("in record", text)
            text = _NUMBER.sub(lambda found: self._versions.get(found[0], found[0]), text.replace(_YEAR, ""))
        return text

    def _object_text(self, quoted: str) -> str:
        """An object in a message, whose fields may come in another order."""
        try:
            return json.dumps(self._value(json.loads(json.loads(quoted))), sort_keys=True)
        except ValueError:
            return quoted


def _of_list(metadata: Json) -> Json:
    """A list is of whatever version the server was at."""
    known = {"resourceVersion": "<any>", "continue": "<token>"}
    return {name: known.get(name, value) if value else value for name, value in metadata.items()}


def _cause(cause: Json) -> str:
    return f"{cause.get('field')} ({cause.get('reason')}): {cause.get('message')}"


def _manager(entry: Json) -> tuple[str, ...]:
    return tuple(str(entry.get(name, "")) for name in ("manager", "operation", "subresource", "apiVersion"))
