"""Clients of GraphPipe servers of any language: `GraphPipe` for plain code, `AsyncGraphPipe` for code on an event loop.

`execute`, `execute_multi` and `metadata` are called as those of the ``graphpipe`` package; the rest of them is in
`invoker.protocols.graphpipe.client.remote`. numpy is imported with the first array, not with this package.
"""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.protocols.graphpipe.client.aio import AsyncGraphPipe
    from invoker.protocols.graphpipe.client.client import GraphPipe
    from invoker.protocols.graphpipe.client.failure import GraphPipeError, NotReached
    from invoker.protocols.graphpipe.client.remote import execute, execute_multi, metadata

__all__ = ["AsyncGraphPipe", "GraphPipe", "GraphPipeError", "NotReached", "execute", "execute_multi", "metadata"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "aio": "AsyncGraphPipe",
        "client": "GraphPipe",
        "failure": "GraphPipeError NotReached",
        "remote": "execute execute_multi metadata",
    },
    "invoker.protocols.graphpipe.client",
)
