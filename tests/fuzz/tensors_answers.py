"""What a server of models may answer at all, whatever it was asked."""

from __future__ import annotations

import asyncio
import struct

from invoker.tensors import GraphPipeError, read_infer_response, read_metadata_response
from tests.fuzz import tensors_naive as naive

Reader = asyncio.StreamReader

_STATUS = {
    **dict.fromkeys((*range(1, 13), 17), 400),
    13: 413,
    **dict.fromkeys((14, 18, 19), 500),
    15: 504,
    **dict.fromkeys((16, 20), 503),
}
_PLAIN = {200, 400, 403, 404, 405, 406, 408, 411, 413, 414, 415, 417, 426, 431, 501, 505}


class Broken(Exception):
    """The server did what it may not."""


async def http_answer(reader: Reader, *, is_head: bool = False) -> str:
    """One answer over HTTP, which is of a kind that may be.

    Raises:
        Broken: It is not.
    """
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        status = int(first.split(" ", 2)[1])
        if status != 100:
            break
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = b"" if is_head else await reader.readexactly(int(headers.get("content-length", 0)))
    code = headers.get("x-graphpipe-error")
    if code is not None:
        if said(body) != int(code) or status != _STATUS.get(int(code)):
            raise Broken(f"HTTP {status}, code {code}, and the buffer says {said(body)}")
    elif status not in _PLAIN:
        raise Broken(f"HTTP {status}: {body[:200]!r}")
    elif headers.get("content-type") == "application/octet-stream" and said(body):
        raise Broken(f"HTTP {status} with the error {said(body)}")
    return f"HTTP {status}" + (f"/{code}" if code else "")


async def frame(reader: Reader) -> int:
    """The code of one answer behind its length."""
    (size,) = struct.unpack("<I", await reader.readexactly(4))
    return said(await reader.readexactly(size))


def said(body: bytes) -> int:
    """The code that a buffer tells; 0 for a result.

    Raises:
        Broken: It is no buffer, or one that says nothing.
    """
    try:
        found = read_infer_response(body)
        if len(body) < 10_000 and len(found.errors) != len(naive.read(body, "InferResponse")[0]["errors"]):
            raise Broken("two readers read different things")
    except naive.Bad:
        found = None
    except GraphPipeError as error:
        if error.code == 13:  # one output many times, of which a client takes no more than four limits
            return 0
        found = None
    if found is None or not (found.tensors or found.errors):
        try:
            read_metadata_response(body)
        except GraphPipeError as error:
            raise Broken(f"an answer cannot be read: {error}: {body[:200].hex()}") from error
        return 0
    if found.errors and found.tensors:
        raise Broken("an answer has tensors and errors")
    if any(not 1 <= one.code <= 20 or len(one.message.encode()) > 4096 for one in found.errors):
        raise Broken(f"an error is {found.errors}")
    return found.errors[0].code if found.errors else 0
