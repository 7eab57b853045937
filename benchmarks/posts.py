"""The HTTP request for each kind of server and row, and the check of its reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException

from benchmarks.bodies import JSON, OCTETS, WrongReplyError
from benchmarks.rows import Row
from benchmarks.servers import Series

_TENSOR = ((1.0, 2.5, 3.0, 4.0),)
_TIMEOUT_S = 10
_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """A POST request, and a function that says whether a reply is right."""

    body: bytes
    media_type: str
    is_right: Callable[[bytes], bool]
    path: str = "/"

    @property
    def headers(self) -> dict[str, str]:
        """The headers; ``accept`` is the type of the body, since each server has another default."""
        return {"content-type": self.media_type, "accept": self.media_type}

    def ask(self, address: str) -> bytes:
        """Send the request once, check the reply, and return its body.

        Raises:
            WrongReplyError: The status is not 200, or the reply is wrong.
        """
        connection = HTTPConnection(address, timeout=_TIMEOUT_S)
        try:
            connection.request("POST", self.path, self.body, self.headers)
            response = connection.getresponse()
            reply = response.read()
        except (OSError, HTTPException) as error:
            raise WrongReplyError(f"no reply: {error!r}") from error
        finally:
            connection.close()
        if response.status != 200 or not self.is_right(reply):
            raise WrongReplyError(f"status {response.status}, the reply is {reply[:200]!r}")
        return reply


def question(series: Series, row: Row) -> Question:
    """Make the request of a row for a column."""
    if row.work == "tensor":
        return _tensor() if series.is_ours else _lists()
    body, media_type = row.body.payload, row.body.media_type
    if series.base == "uvicorn" or media_type != JSON:
        return Question(body, media_type, lambda reply: reply == body)
    value = json.loads(body)
    due = value * value if row.work == "square" else value
    return Question(body, media_type, lambda reply: bool(json.loads(reply) == due))


def _lists() -> Question:
    body = json.dumps(_TENSOR, separators=(",", ":")).encode()
    return Question(body, JSON, lambda reply: reply == body)


def _tensor() -> Question:
    import numpy as np

    from invoker.tensors import InferRequest, read_infer_response, write_request
    from invoker.tensors.arrays import to_array, to_tensor

    array = np.array(_TENSOR, np.float32)

    def is_right(reply: bytes) -> bool:
        found = to_array(read_infer_response(reply, _MOST_BYTES).tensors[0])
        return bool(found.dtype == array.dtype and np.array_equal(found, array))

    return Question(bytes(write_request(InferRequest((to_tensor(array),)))), OCTETS, is_right, "/graphpipe")
