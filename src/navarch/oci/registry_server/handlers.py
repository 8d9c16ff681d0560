"""The requests of the distribution protocol."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web

from navarch.errors import ImageError
from navarch.oci.documents import (
    INDEX,
    LARGEST_MANIFEST,
    Descriptor,
    ImageIndex,
    ImageManifest,
    decode_manifest,
    descriptor_of,
    encode,
)
from navarch.oci.reference import is_digest, is_tag
from navarch.oci.registry_server.answers import (
    API_VERSION,
    RefusedRequestError,
    checked_digest,
    checked_repository,
    error_response,
    page,
    refuse,
    repository_of,
)
from navarch.oci.registry_server.folder import RegistryFolder
from navarch.oci.registry_server.uploads import BlobUpload, BlobUploads

_log = logging.getLogger("navarch.registry")
_CONTENT_RANGE: Final = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)


class RegistryHandlers:
    """Answers the requests to one registry."""

    def __init__(self, folder: RegistryFolder, uploads: BlobUploads, largest_blob: int) -> None:
        self._folder = folder
        self._uploads = uploads
        self._largest_blob = largest_blob

    def application(self) -> web.Application:
        """Returns the application with all routes."""
        app = web.Application(middlewares=[_errors], client_max_size=LARGEST_MANIFEST)
        name, upload = "/v2/{name:.+}", "/v2/{name:.+}/blobs/uploads/{upload}"
        app.add_routes(
            [
                web.get("/v2/", self._version),
                web.get("/v2", self._version),
                web.get("/v2/_catalog", self._catalog),
                web.get(f"{name}/tags/list", self._tags),
                web.get(f"{name}/referrers/{{digest}}", self._referrers),
                web.get(f"{name}/manifests/{{version}}", self._get_manifest),
                web.put(f"{name}/manifests/{{version}}", self._put_manifest),
                web.delete(f"{name}/manifests/{{version}}", self._delete_manifest),
                web.post(f"{name}/blobs/uploads/", self._begin_upload),
                web.post(f"{name}/blobs/uploads", self._begin_upload),
                web.get(upload, self._upload_status),
                web.patch(upload, self._continue_upload),
                web.put(upload, self._finish_upload),
                web.delete(upload, self._cancel_upload),
                web.get(f"{name}/blobs/{{digest}}", self._get_blob),
                web.delete(f"{name}/blobs/{{digest}}", self._delete_blob),
            ]
        )
        return app

    async def _version(self, _request: web.Request) -> web.Response:
        return web.Response(body=b"{}", content_type="application/json", headers=API_VERSION)

    async def _catalog(self, request: web.Request) -> web.Response:
        return page(request, "repositories", self._folder.repositories())

    async def _tags(self, request: web.Request) -> web.Response:
        name = repository_of(request)
        tags = self._folder.tags(name)
        if tags is None:
            refuse("NAME_UNKNOWN", f"expected a repository, got {name!r}, which has no manifest")
        return page(request, "tags", tags, name=name)

    async def _referrers(self, request: web.Request) -> web.Response:
        name, digest = repository_of(request), checked_digest(request.match_info["digest"])
        wanted = request.query.get("artifactType", "")
        found = [self._referrer(name, each) for each in self._folder.referrers(name, digest)]
        chosen = [each for each in found if each is not None and (not wanted or each.artifact_type == wanted)]
        headers = {**API_VERSION, **({"OCI-Filters-Applied": "artifactType"} if wanted else {})}
        body = encode(ImageIndex(schema_version=2, media_type=INDEX, manifests=chosen))
        return web.Response(body=body, content_type=INDEX, headers=headers)

    def _referrer(self, name: str, digest: str) -> Descriptor | None:
        found = self._folder.manifest(name, digest)
        if found is None:
            return None
        document = decode_manifest(found[2], found[1], where=digest)
        kind = document.artifact_type or (document.config.media_type if isinstance(document, ImageManifest) else "")
        return msgspec.structs.replace(
            descriptor_of(found[2], found[1]), artifact_type=kind, annotations=document.annotations
        )

    async def _get_manifest(self, request: web.Request) -> web.Response:
        name, version = repository_of(request), _version_of(request)
        found = self._folder.manifest(name, version)
        if found is None:
            refuse("MANIFEST_UNKNOWN", f"expected a manifest, got none for {name} {version}")
        digest, media_type, content = found
        headers = {**API_VERSION, "Docker-Content-Digest": digest, "ETag": f'"{digest}"'}
        return web.Response(body=content, content_type=media_type, headers=headers)

    async def _put_manifest(self, request: web.Request) -> web.Response:
        name, version = repository_of(request), _version_of(request)
        content = await request.read()
        try:
            document = decode_manifest(content, request.content_type, where=f"{name} {version}")
        except ImageError as error:
            refuse("MANIFEST_INVALID", str(error))
        if (document.media_type or request.content_type) != request.content_type:
            refuse("MANIFEST_INVALID", f"expected {document.media_type} as Content-Type, got {request.content_type}")
        descriptor = descriptor_of(content, request.content_type)
        if is_digest(version) and version != descriptor.digest:
            refuse("DIGEST_INVALID", f"expected a manifest of {version}, got {descriptor.digest}")
        if missing := self._folder.missing(name, document):
            refuse("MANIFEST_BLOB_UNKNOWN", f"expected {', '.join(missing[:3])} to be pushed before, got none")
        subject = document.subject.digest if document.subject is not None else ""
        tag = "" if is_digest(version) else version
        self._folder.add_manifest(name, descriptor, content, subject=subject, tag=tag)
        headers = {"Location": f"/v2/{name}/manifests/{descriptor.digest}", "Docker-Content-Digest": descriptor.digest}
        if subject:
            headers["OCI-Subject"] = subject
        return web.Response(status=201, headers={**API_VERSION, **headers})

    async def _delete_manifest(self, request: web.Request) -> web.Response:
        name, version = repository_of(request), _version_of(request)
        remove = self._folder.remove_manifest if is_digest(version) else self._folder.remove_tag
        if not remove(name, version):
            refuse("MANIFEST_UNKNOWN", f"expected a manifest, got none for {name} {version}")
        return web.Response(status=202, headers=API_VERSION)

    async def _get_blob(self, request: web.Request) -> web.StreamResponse:
        digest = checked_digest(request.match_info["digest"])
        file = self._folder.blob(repository_of(request), digest)
        if file is None or not file.is_file():
            refuse("BLOB_UNKNOWN", f"expected a blob, got none with {digest}")
        headers = {**API_VERSION, "Docker-Content-Digest": digest, "Content-Type": "application/octet-stream"}
        return web.FileResponse(file, headers=headers)

    async def _delete_blob(self, request: web.Request) -> web.Response:
        digest = checked_digest(request.match_info["digest"])
        if not self._folder.remove_blob(repository_of(request), digest):
            refuse("BLOB_UNKNOWN", f"expected a blob, got none with {digest}")
        return web.Response(status=202, headers=API_VERSION)

    async def _begin_upload(self, request: web.Request) -> web.Response:
        name = repository_of(request)
        if "mount" in request.query and "from" in request.query:
            digest, source = checked_digest(request.query["mount"]), checked_repository(request.query["from"])
            if self._folder.mount(name, digest, source):
                return _created(name, digest)
        upload = self._uploads.begin(name)
        if "digest" not in request.query:
            return _accepted(upload)
        try:
            return await self._finish(request, upload)
        finally:
            self._uploads.cancel(upload)  # the client does not know its address; a finished one is gone already

    async def _upload_status(self, request: web.Request) -> web.Response:
        upload = self._upload_of(request)
        return _accepted(upload, status=204)

    async def _continue_upload(self, request: web.Request) -> web.Response:
        upload = self._upload_of(request)
        await self._receive(request, upload)
        return _accepted(upload)

    async def _finish_upload(self, request: web.Request) -> web.Response:
        return await self._finish(request, self._upload_of(request))

    async def _cancel_upload(self, request: web.Request) -> web.Response:
        self._uploads.cancel(self._upload_of(request))
        return web.Response(status=204, headers=API_VERSION)

    async def _finish(self, request: web.Request, upload: BlobUpload) -> web.Response:
        digest = checked_digest(request.query.get("digest", ""))
        await self._receive(request, upload)
        if upload.digest != digest:
            self._uploads.cancel(upload)
            refuse("DIGEST_INVALID", f"expected {digest}, got {upload.digest} with {upload.size} bytes; begin again")
        self._uploads.finish(upload)
        return _created(upload.repository, digest)

    async def _receive(self, request: web.Request, upload: BlobUpload) -> None:
        if upload.is_busy:
            refuse("BLOB_UPLOAD_INVALID", "expected one request for an upload at a time, got two", Range=upload.range)
        if stated := request.headers.get("Content-Range", ""):
            found = _CONTENT_RANGE.fullmatch(stated.removeprefix("bytes "))
            if found is None or int(found[1]) != upload.size:
                refuse("BLOB_UPLOAD_INVALID", f"expected a part from {upload.size} on, got another", Range=upload.range)
        upload.is_busy = True
        try:
            await upload.receive(request, self._largest_blob)
        except ConnectionError:  # the client may continue
            raise
        except (RefusedRequestError, OSError):  # too large, or a full disk
            self._uploads.cancel(upload)
            raise
        finally:
            upload.is_busy = False

    def _upload_of(self, request: web.Request) -> BlobUpload:
        return self._uploads.find(repository_of(request), request.match_info["upload"])


def _version_of(request: web.Request) -> str:
    version = request.match_info["version"]
    if not is_tag(version):
        checked_digest(version)
    return version


def _created(name: str, digest: str) -> web.Response:
    headers = {"Location": f"/v2/{name}/blobs/{digest}", "Docker-Content-Digest": digest}
    return web.Response(status=201, headers={**API_VERSION, **headers})


def _accepted(upload: BlobUpload, status: int = 202) -> web.Response:
    location = f"/v2/{upload.repository}/blobs/uploads/{upload.identifier}"
    headers = {"Location": location, "Range": upload.range, "Docker-Upload-UUID": upload.identifier}
    return web.Response(status=status, headers={**API_VERSION, **headers})


@web.middleware
async def _errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answers failures with the errors of the protocol."""
    try:
        return await handler(request)
    except RefusedRequestError as refused:
        return refused.response
    except web.HTTPRequestEntityTooLarge:
        return error_response("SIZE_INVALID", f"expected a manifest of at most {LARGEST_MANIFEST} bytes, got more")
    except web.HTTPMethodNotAllowed:
        return error_response("UNSUPPORTED", f"expected another method than {request.method}")
    except web.HTTPNotFound:
        return error_response("NAME_UNKNOWN", "expected an address of the distribution protocol")
    except (ConnectionError, web.RequestPayloadError):
        return error_response("BLOB_UPLOAD_INVALID", "expected the whole request, got a part")
    except OSError as error:
        _log.exception("storing or reading failed")
        return error_response("UNKNOWN", f"expected to store or read a file, got: {error.strerror}")
