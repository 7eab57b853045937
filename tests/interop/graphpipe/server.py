"""A server on the package `graphpipe`, as its examples build one: answers the tensors of each request, in order.

It speaks HTTP/1.0 and says neither type nor length of what it sends; the port is the first line it prints.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
from graphpipe import convert

FLOAT = np.dtype("float32")
MODEL = {
    "name": "mixer",
    "version": "2",
    "server": "graphpipe",
    "description": "The same again",
    "inputs": [
        {"name": "a", "description": "one", "shape": [-1, 2], "type": FLOAT},
        {"name": "b", "shape": [], "type": np.dtype("int64")},
    ],
    "outputs": [{"name": "y", "shape": [-1, 2], "type": FLOAT}, {"name": "words", "shape": [1], "type": np.dtype("O")}],
}


class Handler(BaseHTTPRequestHandler):
    """One request a connection."""

    def do_POST(self) -> None:
        """Answer with the description, or with what came."""
        body = bytearray(self.rfile.read(int(self.headers["content-length"])))
        request = convert.deserialize_request(body)
        if request is None:
            answer = convert.serialize_metadata_response(MODEL)
        else:
            said = np.array([json.dumps([_text(request.config), *map(_text, request.input_names)])])
            outputs = [*request.input_tensors, said] if b"say" in request.output_names else request.input_tensors
            answer = convert.serialize_infer_response(outputs)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(answer))

    def log_message(self, *args: object) -> None:
        """Nothing."""


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode()


if __name__ == "__main__":
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
