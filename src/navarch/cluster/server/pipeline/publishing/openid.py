"""How others check ServiceAccount tokens: the documents of OpenID Connect."""

from __future__ import annotations

from typing import Final

import msgspec

from navarch.cluster.server.pipeline.authentication.signing import SigningKey
from navarch.cluster.server.pipeline.authentication.tokens import ISSUER
from navarch.cluster.server.wire.request import ApiRequest, Reply

__all__ = ["CONFIGURATION", "KEYS", "OpenId"]

CONFIGURATION: Final = "/.well-known/openid-configuration"
KEYS: Final = "/openid/v1/jwks"


class OpenId:
    """The two documents of one key."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key

    async def configuration(self, request: ApiRequest) -> Reply:
        """Who issues tokens, and where the keys are: where this document was found."""
        document = {
            "issuer": ISSUER,
            "jwks_uri": f"https://{request.headers.get('host', ISSUER.removeprefix('https://'))}{KEYS}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [self._key.algorithm],
        }
        return Reply(200, msgspec.json.encode(document))

    async def keys(self, _request: ApiRequest) -> Reply:
        """The public half of the key."""
        return Reply(200, msgspec.json.encode({"keys": [self._key.web_key()]}), "application/jwk-set+json")
