"""`Config`: the settings of the process and of its services.

Precedence: command line, then environment, then default. An empty variable counts as unset (R-003); an invalid value
ends the process before anything else happens (R-004). This module depends on no service: each declares its own
settings, and `invoker.server.table` gathers all of them for ``--help``, `docs/reference/config.md` and
``GRPC_PORT.env.example``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from invoker.errors import ConfigError
from invoker.settings import parsers as parse
from invoker.settings.setting import Flags, given, setting

T = TypeVar("T")

_BAD_INPUT = ("unknown", "invalid-argument")
_DETAILS = ("auto", "message", "type", "none")
_LOG_FORMATS = ("auto", "text", "json")
_LOG_LEVELS = ("debug", "info", "warning", "error")
_AGE_S = 30.0
_LOOPS = ("auto", "asyncio", "uvloop")
_GRPC_DRIVERS = ("auto", "fast", "aio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of a serving process.

    Attributes:
        services: The settings of services; see `of`.
    """

    services: tuple[Any, ...] = ()
    host: str = setting(
        "auto", "INVOKER_HOST", parse.host,
        "Address to listen on; 'auto' is all interfaces inside a container or pod, loopback elsewhere.",
        heading="addresses and protocols",
    )  # fmt: skip
    grpc_port: int = setting(8081, "GRPC_PORT", parse.port, "Port for gRPC; 0 takes a free one.")
    port: int = setting(8080, "PORT", parse.port, "Port for HTTP; 0 takes a free one.")
    grpc_driver: str = setting(
        "auto", "INVOKER_GRPC_DRIVER", parse.one_of(*_GRPC_DRIVERS),
        "Which gRPC server is used: 'fast' is invoker's own, 'aio' is grpc.aio; 'auto' takes the fast one if it "
        "works with the installed grpcio.", choices=_GRPC_DRIVERS,
    )  # fmt: skip
    http: bool = setting(
        True, "INVOKER_HTTP", parse.switch, "Opens the HTTP port; `--no-http` leaves it closed.", flag="--no-http"
    )
    reflection: bool = setting(
        True, "INVOKER_REFLECTION", parse.switch,
        "Whether callers may learn what is served: gRPC server reflection, what `invoker call` asks, `/functions` and "
        "`/openapi.json`, GraphPipe's metadata, lists of tools and actions, and names in the texts of errors. "
        "`/metrics`, `/invocations` and the log are for the operator, and show names in any case.",
        flag="--no-reflection",
    )  # fmt: skip
    max_message_bytes: int = setting(
        4 * 1024 * 1024, "INVOKER_MAX_MESSAGE_BYTES", parse.whole(1),
        "Size of the largest frame or HTTP body that is accepted.", unit="bytes", heading="limits",
    )  # fmt: skip
    max_streams: int = setting(
        10_000, "INVOKER_MAX_STREAMS", parse.whole(1),
        "A gRPC connection may have this many calls open at once; further calls wait in the client.",
        unit="calls",
    )  # fmt: skip
    window_bytes: int = setting(
        1024 * 1024, "INVOKER_WINDOW_BYTES", parse.whole(65_535, 2**30),
        "How much a gRPC client may send on a call, and on a connection, before it must wait for the server to "
        "read. More is faster over long distances; each open call may hold as much in addition to "
        "INVOKER_MEMORY_BYTES.", unit="bytes",
    )  # fmt: skip
    high_frames: int = setting(
        256, "INVOKER_HIGH_FRAMES", parse.whole(1),
        "Reading from a caller pauses when its invocation has this many unread frames.", unit="frames",
    )  # fmt: skip
    high_bytes: int = setting(
        4 * 1024 * 1024, "INVOKER_HIGH_BYTES", parse.whole(1),
        "Reading from a caller pauses when its invocation has this much unread payload.", unit="bytes",
    )  # fmt: skip
    hard_frames: int = setting(
        65_536, "INVOKER_HARD_FRAMES", parse.whole(1),
        "An invocation fails when it has this many unread frames; this happens only while it waits for another input, "
        "which is empty.", unit="frames",
    )  # fmt: skip
    hard_bytes: int = setting(
        64 * 1024 * 1024, "INVOKER_HARD_BYTES", parse.whole(1),
        "An invocation fails when it has this much unread payload; this happens only while it waits for another input, "
        "which is empty.", unit="bytes",
    )  # fmt: skip
    memory_bytes: int = setting(
        512 * 1024 * 1024, "INVOKER_MEMORY_BYTES", parse.whole(1),
        "How much unread payload of all callers a process may hold; beyond it, bodies are refused and the largest call "
        "ends.",
        unit="bytes",
    )  # fmt: skip
    max_containers: int = setting(
        250_000, "INVOKER_MAX_CONTAINERS", parse.whole(1),
        "How many lists and objects a payload of JSON or MessagePack may have; decoding more would delay all calls.",
        unit="containers",
    )  # fmt: skip
    max_invocations: int = setting(
        0, "INVOKER_MAX_INVOCATIONS", parse.whole(0), "How many invocations may run at once; 0 means no limit.",
        unit="invocations", heading="invocations",
    )  # fmt: skip
    call_depth: int = setting(
        16, "INVOKER_CALL_DEPTH", parse.whole(0),
        "How deep functions may call each other by their contexts; 0 forbids it.", unit="calls",
    )  # fmt: skip
    calls_per_minute: int = setting(
        0, "INVOKER_CALLS_PER_MINUTE", parse.whole(0),
        "How many invocations, of all functions and callers, each process begins within any 60 seconds; further ones "
        "are refused. 0 means no limit.", unit="invocations",
    )  # fmt: skip
    check_outputs: bool = setting(
        True, "INVOKER_CHECK_OUTPUTS", parse.switch,
        "Refuses a value that is not of the type in the function's return annotation; the values inside it are not "
        "compared. `--no-check-outputs` lets it pass.",
        flag="--no-check-outputs",
    )  # fmt: skip
    threads: int = setting(
        1024, "INVOKER_THREADS", parse.whole(1),
        "How many sync functions may run at once; further invocations are refused.", unit="threads",
    )  # fmt: skip
    children: int = setting(
        16, "INVOKER_CHILDREN", parse.whole(1),
        "How many invocations of isolated functions may run at once, each in a child process; others are refused.",
        unit="processes",
    )  # fmt: skip
    warm_children: int = setting(
        2, "INVOKER_WARM_CHILDREN", parse.whole(0),
        "How many idle child processes, with their functions loaded, wait for invocations of isolated functions.",
        unit="processes",
    )  # fmt: skip
    hook_timeout_s: float = setting(
        10.0, "INVOKER_HOOK_TIMEOUT_S", parse.seconds, "How long each start or stop hook may take.", unit="seconds",
        heading="times",
    )  # fmt: skip
    lame_duck_s: float = setting(
        0.0, "INVOKER_LAME_DUCK_S", parse.seconds,
        "After SIGTERM the process reports that it is not ready, but takes calls for this long before the drain "
        "begins, so that load balancers notice; SIGINT and a second signal skip this time.", unit="seconds",
    )  # fmt: skip
    drain_s: float = setting(
        30.0, "INVOKER_DRAIN_S", parse.seconds,
        "How long running invocations may go on once the process has to stop.", unit="seconds",
    )  # fmt: skip
    grace_s: float = setting(
        5.0, "INVOKER_GRACE_S", parse.seconds, "How long user code may take to return after its invocation has ended.",
        unit="seconds",
    )  # fmt: skip
    settle_s: float = setting(
        0.01, "INVOKER_SETTLE_S", parse.seconds,
        "How long the end of a streaming function's inputs waits after a half-close, which may be the beginning of a "
        "cancellation; there is no wait for clients that are known to cancel by a reset alone, except with the gRPC "
        "driver aio.", unit="seconds",
    )  # fmt: skip
    lingering_s: float = setting(
        60.0, "INVOKER_LINGERING_S", parse.seconds,
        "An invocation is logged if it still runs this long after its inputs have ended.", unit="seconds",
    )  # fmt: skip
    allowed_origins: tuple[str, ...] = setting(
        (), "INVOKER_ALLOWED_ORIGINS", parse.origins,
        "An origin of web pages that may use the HTTP port, as https://example.org; * is any. Pages of the port's own "
        "host need not be listed, except to open a WebSocket.", flag="--allowed-origin", many=True,
    )  # fmt: skip
    allow_credentials: bool = setting(
        False, "INVOKER_ALLOW_CREDENTIALS", parse.switch,
        "Lets pages of the origins that `--allowed-origin` lists send cookies and other credentials to the HTTP port, "
        "and read its responses; the list must then name origins, and cannot be *.",
    )  # fmt: skip
    allowed_hosts: tuple[str, ...] = setting(
        (), "INVOKER_ALLOWED_HOSTS", parse.names,
        "A host name under which the HTTP port answers if it listens on loopback only, besides localhost, 127.0.0.1, "
        "[::1] and the one of INVOKER_HOST; * is any.", flag="--allowed-host", many=True,
    )  # fmt: skip
    http_compression: bool = setting(
        True, "INVOKER_HTTP_COMPRESSION", parse.switch,
        "Compresses responses of the HTTP port with gzip or zstd for clients that accept it; "
        "`--no-http-compression` sends them uncompressed.", flag="--no-http-compression",
    )  # fmt: skip
    http_ignore_unknown: bool = setting(
        False, "INVOKER_HTTP_IGNORE_UNKNOWN", parse.switch,
        "Ignores fields of forms and members of JSON objects over HTTP that do not name a parameter, such as the "
        "buttons and tokens of HTML forms; otherwise they are refused with 400.",
    )  # fmt: skip
    http_timeout_s: float = setting(
        0.0, "INVOKER_HTTP_TIMEOUT_S", parse.seconds,
        "How long an HTTP request may take before it is answered with 504; 0 means no limit.", unit="seconds",
    )  # fmt: skip
    http_unix: str = setting(
        "", "INVOKER_HTTP_UNIX", str, "Path of a Unix socket that serves the same as the HTTP port, without TLS.",
    )  # fmt: skip
    unix_mode: str = setting(
        "600", "INVOKER_UNIX_MODE", parse.mode,
        "Permissions of Unix sockets, in octal; users who may write may connect.",
    )  # fmt: skip
    blocked_s: float = setting(
        0.25, "INVOKER_BLOCKED_S", parse.seconds,
        "An async function is named in the log if it blocks the event loop for this long; 0 turns this off.",
        unit="seconds", heading="what goes wrong",
    )  # fmt: skip
    bad_input: str = setting(
        "unknown", "INVOKER_BAD_INPUT", parse.one_of(*_BAD_INPUT),
        "Status of a call whose payload cannot be decoded; with 'invalid-argument' riff's HTTP adapter answers " "400.",
        choices=_BAD_INPUT,
    )  # fmt: skip
    error_detail: str = setting(
        "auto", "INVOKER_ERROR_DETAIL", parse.one_of(*_DETAILS),
        "What callers see of an exception that a function raises: its type and message, its type, or nothing; the text "
        "of a StatusError always passes. 'auto' is message where INVOKER_HOST is loopback, and type elsewhere.",
        choices=_DETAILS,
    )  # fmt: skip
    full_s: float = setting(
        30.0, "INVOKER_FULL_S", parse.seconds,
        "The process reports that it is not ready when all threads, or all invocations that may run, are in use, and "
        "calls have been refused for this reason for this long; 0 turns this off.", unit="seconds",
    )  # fmt: skip
    tls_cert: str = setting(
        "", "INVOKER_TLS_CERT", str, "PEM file with the server's certificate chain, for both ports.", heading="TLS",
    )  # fmt: skip
    tls_key: str = setting("", "INVOKER_TLS_KEY", str, "PEM file with the certificate's private key.")
    tls_client_ca: str = setting(
        "", "INVOKER_TLS_CLIENT_CA", str,
        "PEM file with the authorities of client certificates; clients without such a certificate are refused (mTLS).",
    )  # fmt: skip
    allow_pickle: bool = setting(
        False, "INVOKER_ALLOW_PICKLE", parse.switch,
        "Whether functions are loaded from .pkl files, which run whatever code they carry; only for files that "
        "you made.", heading="code that is loaded",
    )  # fmt: skip
    pickle_codec: bool = setting(
        False, "INVOKER_PICKLE_CODEC", parse.switch,
        "Whether application/x-python-pickle is decoded, which lets every caller run code here; only for trusted "
        "callers.",
    )  # fmt: skip
    reload_per_invocation: bool = setting(
        False, "INVOKER_RELOAD_PER_INVOCATION", parse.switch,
        "Whether the function's module is executed anew for each invocation.",
    )  # fmt: skip
    workers: int = setting(
        1, "INVOKER_WORKERS", parse.workers,
        "How many processes serve side by side on the same ports; 'auto' is one for each core that this process "
        "may use.", unit="processes", heading="workers",
    )  # fmt: skip
    heartbeat_s: float = setting(
        30.0, "INVOKER_HEARTBEAT_S", parse.seconds,
        "With several workers, a worker is killed and replaced if its event loop is silent for this long; 0 turns "
        "this off.", unit="seconds",
    )  # fmt: skip
    connection_age_s: float | str = setting(
        "auto", "INVOKER_CONNECTION_AGE_S", parse.seconds_or_auto,
        "gRPC clients are asked to connect anew after this long, and their calls go on; 0 means never. 'auto' is 30 "
        "with several workers, and never with one process.", unit="seconds",
    )  # fmt: skip
    store: str = setting(
        "auto", "INVOKER_STORE", parse.store,
        "Where state is kept that outlives a call: 'memory', 'sqlite:PATH' for the processes of one machine, or the "
        "URL of a Redis server. 'auto' is memory; several workers that need it share a file, which ends with them.",
    )  # fmt: skip
    loop: str = setting(
        "auto", "INVOKER_LOOP", parse.one_of(*_LOOPS),
        "Which event loop is used; 'auto' takes uvloop if it is installed.", choices=_LOOPS,
        heading="event loop and log",
    )  # fmt: skip
    log_level: str = setting(
        "info", "INVOKER_LOG_LEVEL", parse.levels_of(*_LOG_LEVELS),
        "The lowest level that is logged. Levels of single loggers may follow, separated by commas; each "
        "also holds for the loggers below it: info,myapp.db=debug,invoker.transports=warning.", choices=_LOG_LEVELS,
    )  # fmt: skip
    log_format: str = setting(
        "auto", "INVOKER_LOG_FORMAT", parse.one_of(*_LOG_FORMATS),
        "Format of log lines; 'auto' is text on a terminal and JSON otherwise.", choices=_LOG_FORMATS,
    )  # fmt: skip
    debug: bool = setting(
        False, "INVOKER_DEBUG", parse.switch,
        "Whether callers and the console see tracebacks; never switch this on where strangers can call.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if bool(self.tls_cert) != bool(self.tls_key):
            names = ("INVOKER_TLS_CERT", "INVOKER_TLS_KEY")
            given, missing = names if self.tls_cert else names[::-1]
            raise ConfigError(f"{given} is set without {missing}; TLS needs both")
        if self.tls_client_ca and not self.tls_cert:
            raise ConfigError(
                "INVOKER_TLS_CLIENT_CA is set without INVOKER_TLS_CERT; mTLS needs a server certificate too"
            )
        if self.allow_credentials and "*" in self.allowed_origins:
            raise ConfigError(
                "INVOKER_ALLOW_CREDENTIALS is set, and INVOKER_ALLOWED_ORIGINS is *; name the origins whose pages may "
                "send credentials, since any page could use those of its visitors"
            )
        self.check_unix(self.http_unix, "INVOKER_HTTP_UNIX")
        for low, high in (("high_frames", "hard_frames"), ("high_bytes", "hard_bytes")):
            if getattr(self, low) > getattr(self, high):
                raise ConfigError(f"{low} is {getattr(self, low)}, which is above {high}, {getattr(self, high)}")

    def of(self, kind: type[T]) -> T:
        """The settings of a service's class; the defaults if they were not read."""
        return next((one for one in self.services if isinstance(one, kind)), None) or kind()

    def check_unix(self, path: str, env: str) -> None:
        """Refuse a Unix socket if there are several workers, since only one process can own it.

        Raises:
            ConfigError: There are several workers, and a path.
        """
        if path and self.workers > 1:
            raise ConfigError(f"{env} works with one process only, because workers cannot share a Unix socket")

    @classmethod
    def read(cls, env: Mapping[str, str], flags: Flags, kinds: Iterable[type] = ()) -> Config:
        """Read the environment and the command line.

        Args:
            env: Variables; empty or blank ones count as unset.
            flags: The flags by field name; they override the environment.
            kinds: The kinds of the services' settings; each is a dataclass of settings.

        Raises:
            ConfigError: A setting has an invalid value; the text names the variable or flag, and the value (R-004).
        """
        own = given(cls, env, flags)
        return cls(services=tuple(kind(**given(kind, env, flags)) for kind in kinds), **own)

    def for_children(self) -> tuple[tuple[str, object], ...]:
        """The settings that the program of a child process gets; see `invoker.server.isolated`."""
        names = (
            *("log_level", "log_format", "pickle_codec", "allow_pickle", "max_containers", "check_outputs", "threads"),
            *("grace_s", "debug", "hook_timeout_s"),
        )
        return tuple((name, getattr(self, name)) for name in names)

    def grpc_age_s(self, *, has_others: bool) -> float:
        """How many seconds a gRPC client may keep its connection; 0: no limit.

        Args:
            has_others: Whether other processes share the port, so that connections should spread over them.
        """
        if isinstance(self.connection_age_s, str):
            return _AGE_S if has_others else 0.0
        return self.connection_age_s

    @property
    def shown_detail(self) -> str:
        """The part of a function's exception that callers see, in the words of `invoker.core.policy.ErrorPolicy`."""
        if self.error_detail != "auto":
            return self.error_detail
        return "message" if parse.is_loopback(self.bind_host()[0]) else "type"

    def bind_host(self) -> tuple[str, str]:
        """The address to bind, and the reason for this address."""
        if self.host != "auto":
            return self.host, "set by INVOKER_HOST"
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return "0.0.0.0", "all interfaces, inside a pod"  # noqa: S104 - decided in the catalogue, 0.2
        if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
            return "0.0.0.0", "all interfaces, inside a container"  # noqa: S104
        return "127.0.0.1", "loopback only, outside a container"
