# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""A proxy before a bed's API server, with the server's certificate. It injects the faults of
networks and API servers into single requests. Rules select the requests, the fault and how often.

    with FaultProxy(bed) as proxy:
        rule = proxy.add(Rule("429", "PATCH", r"/deployments/", times=3))
        ... a client of proxy.server ...
        assert rule.hits == 3
"""

import contextlib
import dataclasses
import http.client
import http.server
import json
import re
import socket
import ssl
import threading
import time

DELAY_S = 3
ANSWER_S = 60
CHUNK_BYTES = 65536
WORDS = {"409": "Conflict", "429": "TooManyRequests", "500": "InternalError",
         "503": "ServiceUnavailable"}
# Faults without an answer. drop: the API server never gets the request. lose: it has processed it.
SILENT = ("drop", "lose")
ALL = (*SILENT, "delay", "truncate", "cut", *WORDS)
# Headers of one connection, which http.client sets itself.
OF_HOP = {"connection", "transfer-encoding", "host", "content-length", "keep-alive"}


@dataclasses.dataclass
class Rule:
    """Which requests get which fault.
    fault: a status of WORDS
      drop, lose: see SILENT
      delay: 3 s
      truncate: half of the body
      cut: a watch ends in the middle of its first event
    path: a pattern for the path with its query
    times: how many matching requests get the fault (None: all)"""
    fault: str
    method: str
    path: str
    times: int | None = 1
    hits: int = 0

    def __post_init__(self):
        assert self.fault in ALL, self.fault

    def fits(self, method, path):
        is_left = self.times is None or self.hits < self.times
        is_kind = self.fault != "cut" or is_watch(path)
        return is_left and is_kind and method == self.method and re.search(self.path, path)


def is_watch(path):
    return "watch=true" in path or "watch=1" in path


class FaultProxy:
    def __init__(self, bed):
        self._bed = bed
        self._upstream_tls = ssl.create_default_context(cafile=bed.pki / "ca.crt")
        self._lock = threading.Lock()
        self._rules = []
        self._sockets = set()
        # The proxy calls it before it forwards a request, and again after the API server's answer
        # unless the request is a watch. If it returns true, the connection ends without an answer.
        self.on_request = lambda method, path, is_done: False
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(bed.pki / "kube-apiserver.crt", bed.pki / "kube-apiserver.key")
        self._listener = _Server(("127.0.0.1", 0), _Handler)
        self._listener.proxy, self._listener.tls = self, tls
        self._thread = threading.Thread(target=self._listener.serve_forever, daemon=True)

    @property
    def server(self):
        return f"https://127.0.0.1:{self._listener.server_address[1]}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown()
        self.cut_all()
        self._listener.server_close()

    def add(self, rule):
        with self._lock:
            self._rules.append(rule)
        return rule

    def clear(self):
        with self._lock:
            self._rules = []

    def cut_all(self):
        """Ends every connection to the API server. This also ends the clients' connections."""
        with self._lock:
            sockets = list(self._sockets)
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def take(self, method, path):
        """Returns the fault of this request, or None."""
        with self._lock:
            rule = next((one for one in self._rules if one.fits(method, path)), None)
            if rule is None:
                return None
            rule.hits += 1
            return rule.fault

    @contextlib.contextmanager
    def connection(self):
        """Connects to the API server without a client certificate, because clients send tokens."""
        connection = http.client.HTTPSConnection(
            self._bed.server.partition("://")[2], context=self._upstream_tls, timeout=ANSWER_S)
        connection.connect()
        with self._lock:
            self._sockets.add(connection.sock)
        opened = connection.sock
        try:
            yield connection
        finally:
            with self._lock:
                self._sockets.discard(opened)
            connection.close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy = tls = None

    def handle_error(self, request, client_address):
        """Ignores errors of closed clients and cut connections."""


class _Cut(Exception):
    """Ends the connection."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self):
        self.request.settimeout(ANSWER_S)
        self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()

    def handle(self):
        with contextlib.suppress(_Cut, OSError, http.client.HTTPException), \
                self.server.proxy.connection() as self.upstream:
            super().handle()

    def finish(self):
        with contextlib.suppress(OSError):
            super().finish()
        self.request.close()

    def log_message(self, *_):
        """Prints no log. Tests print their own output."""

    def _serve(self):
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        fault = proxy.take(self.command, self.path)
        if proxy.on_request(self.command, self.path, False) or fault == "drop":
            raise _Cut
        if fault in WORDS:
            return self._refuse(fault)
        if fault == "delay":
            time.sleep(DELAY_S)
        self.upstream.request(self.command, self.path, body or None, {
            name: value for name, value in self.headers.items() if name.lower() not in OF_HOP})
        answer = self.upstream.getresponse()
        if is_watch(self.path) and answer.status == 200:
            return self._stream(answer, is_cut=fault == "cut")
        content = answer.read()
        if proxy.on_request(self.command, self.path, True) or fault == "lose":
            raise _Cut
        self._begin(answer.status, answer.getheaders(), len(content))
        if fault == "truncate":
            self.wfile.write(content[:len(content) // 2])
            self.wfile.flush()
            raise _Cut
        self.wfile.write(content)
        self.wfile.flush()
        return None

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _begin(self, status, headers, length=None):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in OF_HOP:
                self.send_header(name, value)
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _refuse(self, status):
        content = json.dumps({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": int(status),
            "reason": WORDS[status], "message": f"the proxy of the tests says {status}"}).encode()
        more = [("Retry-After", "1")] if status == "429" else []
        self._begin(int(status), [("Content-Type", "application/json"), *more], len(content))
        self.wfile.write(content)
        self.wfile.flush()

    def _stream(self, answer, is_cut):
        # An idle watch has no timeout.
        self.upstream.sock.settimeout(None)
        self._begin(answer.status, answer.getheaders())
        self.wfile.flush()
        while True:
            piece = answer.read1(CHUNK_BYTES)
            if is_cut and piece:
                piece = piece[:len(piece) // 2]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            if not piece:
                return
            if is_cut:
                raise _Cut
