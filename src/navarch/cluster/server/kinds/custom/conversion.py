"""Conversion webhooks: send a ConversionReview and check the converted objects."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError
from navarch.cluster.server.wire.webhook_client import WebhookCallError, WebhookClient, WebhookResponse, target_of

_SECONDS: Final = 30
_IDENTITY: Final = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))
_CONVERTED: Final = ("labels", "annotations")


class ConversionWebhooks:
    """Asks the webhooks of CRDs; an instance is what `Conversion` wants. `caller` connects, and finds services."""

    def __init__(self, caller: WebhookClient, rng: random.Random) -> None:
        self._caller = caller
        self._rng = rng

    async def __call__(self, definition: Json, webhook: Json, values: Sequence[Json], api_version: str) -> list[Json]:
        """The objects in that version; refuses with 500 if the webhook cannot be asked, or answers nonsense."""
        who = f"conversion webhook for {values[0]['apiVersion']}, Kind={definition['spec']['names']['kind']}"
        uid = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        body = msgspec.json.encode(_review(webhook, uid, values, api_version))
        client = webhook["clientConfig"]
        try:
            reply = await self._caller.post(target_of(client), client.get("caBundle") or "", body, _SECONDS)
            found = _objects(_response(reply, uid))
        except WebhookCallError as error:
            raise _refused(f"{who} failed: {str(error).removeprefix('failed to call webhook: ')}") from None
        if len(found) != len(values):
            raise _refused(f"{who} returned {len(found)} objects, expected {len(values)}")
        return [_checked(who, index, pair, api_version) for index, pair in enumerate(zip(values, found, strict=True))]


def _refused(message: str) -> StatusError:
    return StatusError(500, "", message)


def _review(webhook: Json, uid: str, values: Sequence[Json], api_version: str) -> Json:
    known = [name for name in webhook.get("conversionReviewVersions") or () if name in {"v1", "v1beta1"}]
    return {
        "kind": "ConversionReview",
        "apiVersion": f"apiextensions.k8s.io/{known[0] if known else 'v1'}",
        "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": [_sent(value) for value in values]},
        "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
    }


def _sent(value: Json) -> Json:
    """As it is stored: without the version of its last write."""
    metadata = {name: item for name, item in value["metadata"].items() if name != "resourceVersion"}
    return {**value, "metadata": metadata}


def _response(reply: WebhookResponse, uid: str) -> Json:
    if not 200 <= reply.status <= 206:
        raise WebhookCallError('an error on the server ("unknown") has prevented the request from succeeding')
    try:
        document: Any = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
        raise WebhookCallError("couldn't get version/kind; json parse error: the answer is no JSON object") from None
    response = document.get("response") if isinstance(document, dict) else None
    if not isinstance(response, dict):
        raise WebhookCallError("no response provided")
    if response.get("uid", "") != uid:
        raise WebhookCallError(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    return response


def _objects(response: Json) -> list[Any]:
    result = response.get("result")
    status, said = (result.get("status", ""), result.get("message", "")) if isinstance(result, dict) else ("", "")
    if status != "Success":
        raise WebhookCallError(said or f"response.result.status was '{status}', not 'Success'")
    found = response.get("convertedObjects")
    return found if isinstance(found, list) else []


def _checked(who: str, index: int, pair: tuple[Json, Any], api_version: str) -> Json:
    """The converted object with the metadata it had before: only labels and annotations may be converted."""
    value, found = pair
    made = found if isinstance(found, dict) else {}
    said = f"{who} returned invalid object at index {index}: invalid"
    if made.get("apiVersion") != api_version:
        raise _refused(f"{said} groupVersion (expected {api_version}, received {made.get('apiVersion', '')})")
    if made.get("kind") != value["kind"]:
        raise _refused(f"{said} kind (expected {value['kind']}, received {made.get('kind', '')})")
    metadata, before = made.get("metadata"), value["metadata"]
    if not isinstance(metadata, dict):
        raise _refused(f"{who} returned invalid object: missing metadata in converted object")
    for name, shown in _IDENTITY:
        if metadata.get(name) != before.get(name):
            why = f"must have the same {shown}: {before.get(name, '')} != {metadata.get(name, '')}"
            raise _refused(f"{who} returned invalid object: {why}")
    return {**made, "metadata": _merged(before, metadata)}


def _merged(before: Json, metadata: Json) -> Json:
    kept = {name: item for name, item in before.items() if name not in _CONVERTED}
    return kept | {name: metadata[name] for name in _CONVERTED if metadata.get(name)}
