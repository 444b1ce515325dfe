# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""Calls a bed's API server as its administrator."""

import http.client
import json
import ssl
import urllib.error
import urllib.request

from .bed import BedError

TIMEOUT_S = 20
JSON = "application/json"
APPLY = "application/apply-patch+yaml"


class Api:
    def __init__(self, bed):
        self._server = bed.server
        self._tls = ssl.create_default_context(cafile=bed.pki / "ca.crt")
        self._tls.load_cert_chain(bed.pki / "admin.crt", bed.pki / "admin.key")

    def call(self, path, method="GET", body=None, media_type=JSON, **more):
        """Returns (status, body). The status is 0 without an answer."""
        return call(self._server + path, method, self._tls, media_type=media_type,
                    body=None if body is None else json.dumps(body), **more)

    def get(self, path):
        """Returns the object, or None if it does not exist or the server does not answer."""
        status, body = self.call(path)
        return json.loads(body) if status == 200 else None

    def apply(self, path, thing):
        """Applies the object on the server side. Raises an error unless the server accepts it."""
        status, body = self.call(f"{path}?fieldManager=testbed&force=true", "PATCH", thing, APPLY)
        if status not in (200, 201):
            raise BedError(f"the API server answered {status} to {path}: {body[:2000]}")


class LastingApi(Api):
    """Uses one connection, for a thread that sends many requests a second."""

    def __init__(self, bed):
        super().__init__(bed)
        self._connection = http.client.HTTPSConnection(
            self._server.partition("://")[2], context=self._tls, timeout=TIMEOUT_S)

    def get(self, path):
        """Returns the same as Api.get()."""
        try:
            self._connection.request("GET", path)
            answer = self._connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return None
        return json.loads(body) if answer.status == 200 else None


def call(url, method="GET", tls=None, timeout_s=TIMEOUT_S, **what):
    """Returns (status, text) of any URL. The status is 0 without an answer."""
    body = what.get("body")
    request = urllib.request.Request(
        url, method=method, data=None if body is None else body.encode(),
        headers={"content-type": what.get("media_type", JSON), "accept": what.get("accept", "*/*")})
    handlers = [urllib.request.ProxyHandler({})]
    if tls is not None:
        handlers.append(urllib.request.HTTPSHandler(context=tls))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout_s) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, ""


def anonymous_tls():
    """Returns a TLS context for health endpoints on loopback with self-signed certificates."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
