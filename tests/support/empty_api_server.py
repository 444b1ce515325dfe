# SPDX-License-Identifier: Apache-2.0
# Copyright The Sightline Authors
"""An API server without objects. Its lists are empty, and its watches have no events. An operator
whose lists fail ends after two minutes."""

import http.server
import json
import threading

KUBECONFIG = """apiVersion: v1
kind: Config
current-context: x
contexts: [{{name: x, context: {{cluster: x, user: x}}}}]
clusters: [{{name: x, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: x, user: {{token: x}}}}]
"""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        if "watch=" in self.path:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.server.is_over.wait()
            self.close_connection = True
            return
        body = json.dumps({"kind": "List", "apiVersion": "v1", "items": [],
                           "metadata": {"resourceVersion": "1"}}).encode()
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Prints no log. Tests print their own output."""


class EmptyApiServer:
    """A context manager that runs the server. `kubeconfig` is the text of a kubeconfig file."""

    def __enter__(self):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.is_over = threading.Event()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.kubeconfig = KUBECONFIG.format(port=self._server.server_address[1])
        return self

    def __exit__(self, *_):
        self._server.is_over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
