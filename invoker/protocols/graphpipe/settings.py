"""`GraphPipeServiceSettings`: the addresses and limits of GraphPipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from invoker.settings import parsers as parse
from invoker.settings.setting import setting

_ROOTS: Final = ("riff", "graphpipe")
_ERRORS: Final = ("http", "200")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPipeServiceSettings:
    """The addresses and limits of GraphPipe."""

    http_root: str = setting(
        "riff", "INVOKER_HTTP_ROOT", parse.one_of(*_ROOTS),
        "What is served at / of the HTTP port: riff's request and reply, or a GraphPipe model.", choices=_ROOTS,
        before="unix_mode",
    )  # fmt: skip
    graphpipe_tcp: str = setting(
        "", "INVOKER_GRAPHPIPE_TCP", parse.endpoint,
        "HOST:PORT of a socket that takes GraphPipe requests without HTTP, each after its length.", heading="GraphPipe",
    )  # fmt: skip
    graphpipe_unix: str = setting(
        "", "INVOKER_GRAPHPIPE_UNIX", str,
        "Path of a Unix socket that takes GraphPipe requests without HTTP, each after its length.",
    )  # fmt: skip
    graphpipe_connections: int = setting(
        1000, "INVOKER_GRAPHPIPE_CONNECTIONS", parse.whole(1),
        "How many connections each of these two sockets may have at once, in each process; further ones are "
        "refused. It is never more than a quarter of the files that the process may open.", unit="connections",
    )  # fmt: skip
    graphpipe_bytes: int = setting(
        64 * 1024 * 1024, "INVOKER_GRAPHPIPE_BYTES", parse.whole(1),
        "Size of the largest GraphPipe request that is accepted.", unit="bytes", before="blocked_s",
    )  # fmt: skip
    graphpipe_timeout_s: float = setting(
        30.0, "INVOKER_GRAPHPIPE_TIMEOUT_S", parse.seconds,
        "How long a GraphPipe request may take, from its last byte to the response; 0 means no limit.", unit="seconds",
    )  # fmt: skip
    graphpipe_errors: str = setting(
        "http", "INVOKER_GRAPHPIPE_ERRORS", parse.one_of(*_ERRORS),
        "HTTP status of a GraphPipe response that has errors: 'http' is the status of the error, '200' is always "
        "200.", choices=_ERRORS,
    )  # fmt: skip

    @property
    def has_socket(self) -> bool:
        """Whether there is a raw socket for GraphPipe."""
        return bool(self.graphpipe_tcp or self.graphpipe_unix)
