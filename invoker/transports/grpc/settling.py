"""The settle time: how long a transport waits after a half-close before it treats the input as ended (R-109).

@grpc/grpc-js cancels a call, also at its deadline, by an empty DATA frame with END_STREAM and, about 2 ms later, by
RST_STREAM. Until then a cancel looks like the end of the input. Other libraries cancel by RST_STREAM alone:

* gRPC core, under C++, Python and others: ``grpc_chttp2_cancel_stream`` in chttp2_transport.cc;
* grpc-go: ``closeStream`` in http2_client.go, with ``rst``;
* grpc-java: ``cancelStream`` in NettyClientHandler, ``finishStream`` in OkHttpClientTransport.

A peer names its gRPC library in its user-agent. The half-close of a peer with any other library has to settle.

`settle_time` gives the fast transport the time to wait for a peer; `settle` waits on behalf of grpc.aio's transport.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
from typing import Any

import grpc.aio

from invoker.message import Headers

_CANCELS_BY_RESET = re.compile(r"(?<!\S)grpc-(?:c|c\+\+|python|python-asyncio|go|java-[\w-]+)(?![^/\s])").search


def settle_time(metadata: Headers, settle_s: float) -> float:
    """The settle time of a call with this metadata, in seconds; 0 for a peer that cancels by RST_STREAM alone."""
    return 0.0 if _resets(dict.get(metadata, "user-agent", "")) else settle_s  # gRPC gives names in lower case


@functools.lru_cache(maxsize=64)
def _resets(agent: str) -> bool:
    return _CANCELS_BY_RESET(agent) is not None and "grpc-node-js" not in agent


async def settle(context: Any, call: asyncio.Task[Any] | None, settle_s: float) -> None:
    """Wait until the end of a grpc.aio request stream is certain; after a cancel, this task is cancelled.

    grpc.aio itself ends the request stream of a call that is cancelled, and cancels the task of the call a little
    later; the caller that waits here is cancelled by that task. When the time is over, a cancel that grpcio knows of
    may not have reached the task yet, but it does so before one more read is answered.

    Args:
        context: The context of the call.
        call: The task in which its handler runs.
        settle_s: How long to wait for a cancel that is still on its way.
    """
    await asyncio.sleep(settle_s)
    with contextlib.suppress(grpc.aio.InternalError):  # the call is over, and its task is notified in a moment
        await context.read()
        if call is None or not call.cancelling():
            return
    await asyncio.get_running_loop().create_future()
