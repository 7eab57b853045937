"""`Config`: every knob once, with its environment variable, unit, default and validator.

Precedence: command line, then environment, then default. An empty variable counts as unset (R-003); a value that a
knob cannot have stops the process before anything else happens (R-004). `docs/reference/config.md` and
``GRPC_PORT.env.example`` are made from this file or checked against it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from invoker.cores import usable_cores
from invoker.errors import ConfigError

__all__ = ["Config", "Knob", "flag_of", "knob_of", "knobs"]


@dataclass(frozen=True, slots=True)
class Knob:
    """What is known about one knob besides its name and default.

    Attributes:
        env: Environment variable.
        help: One sentence.
        unit: Of the value; empty for names and switches.
        parse: Text to value; raises ValueError with what was expected.
        flag: On the command line; empty: made from the name.
        choices: The only values, if they are few.
    """

    env: str
    help: str
    unit: str
    parse: Callable[[str], Any]
    flag: str = ""
    choices: tuple[str, ...] = ()


def _knob(default: Any, env: str, parse: Callable[[str], Any], help: str, *, unit: str = "", flag: str = "",
          choices: tuple[str, ...] = ()) -> Any:  # fmt: skip
    return field(default=default, metadata={"knob": Knob(env, help, unit, parse, flag, choices)})


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ValueError("a port number from 0 to 65535, where 0 takes a free one")
    return int(text)


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise ValueError(f"a whole number of at least {least}")
        return int(text)

    return parse


def _workers(text: str) -> int:
    if text.lower() == "auto":
        return usable_cores()
    try:
        return _whole(1)(text)
    except ValueError:
        raise ValueError("auto, or a whole number of at least 1") from None


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError("seconds, 0 or more")
    return value


def _switch(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError("1, true, yes, on, 0, false, no or off")


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(" or ".join(choices))
        return text.lower()

    return parse


def _host(text: str) -> str:
    if any(sign.isspace() for sign in text):
        raise ValueError("auto, a host name or an address")
    return text


_BAD_INPUT = ("unknown", "invalid-argument")
_LOG_FORMATS = ("auto", "text", "json")
_LOG_LEVELS = ("debug", "info", "warning", "error")
_LOOPS = ("auto", "asyncio", "uvloop")
_GRPC_DRIVERS = ("auto", "fast", "aio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All knobs of a serving process."""

    host: str = _knob(
        "auto", "INVOKER_HOST", _host,
        "Address to listen on; 'auto' is all interfaces inside a container or pod, loopback elsewhere.",
    )  # fmt: skip
    grpc_port: int = _knob(8081, "GRPC_PORT", _port, "Port of the gRPC door; 0 takes a free one.")
    port: int = _knob(8080, "PORT", _port, "Port of the HTTP door; 0 takes a free one.")
    grpc_driver: str = _knob(
        "auto", "INVOKER_GRPC_DRIVER", _one_of(*_GRPC_DRIVERS),
        "What moves gRPC frames: 'fast' is our own reactor, 'aio' is grpc.aio; 'auto' takes the fast one where it "
        "works with the installed grpcio.", choices=_GRPC_DRIVERS,
    )  # fmt: skip
    http: bool = _knob(True, "INVOKER_HTTP", _switch, "Whether the HTTP door opens.", flag="--no-http")
    reflection: bool = _knob(
        True, "INVOKER_REFLECTION", _switch, "Whether gRPC server reflection answers.", flag="--no-reflection"
    )
    max_message_bytes: int = _knob(
        4 * 1024 * 1024, "INVOKER_MAX_MESSAGE_BYTES", _whole(1), "Largest inbound frame or HTTP body.", unit="bytes"
    )
    high_frames: int = _knob(
        256, "INVOKER_HIGH_FRAMES", _whole(1), "Unread frames of an invocation at which reading pauses.", unit="frames"
    )
    high_bytes: int = _knob(
        4 * 1024 * 1024, "INVOKER_HIGH_BYTES", _whole(1), "Unread payload of an invocation at which reading pauses.",
        unit="bytes",
    )  # fmt: skip
    hard_frames: int = _knob(
        65_536, "INVOKER_HARD_FRAMES", _whole(1), "Unread frames at which a starving invocation fails.", unit="frames"
    )
    hard_bytes: int = _knob(
        64 * 1024 * 1024, "INVOKER_HARD_BYTES", _whole(1), "Unread payload at which a starving invocation fails.",
        unit="bytes",
    )  # fmt: skip
    max_invocations: int = _knob(
        0, "INVOKER_MAX_INVOCATIONS", _whole(0), "Invocations that may run at once; 0 means no limit.",
        unit="invocations",
    )  # fmt: skip
    threads: int = _knob(
        1024,
        "INVOKER_THREADS",
        _whole(1),
        "Sync bodies that may run at once; the next invocation is refused.",
        unit="threads",
    )
    hook_timeout_s: float = _knob(
        10.0, "INVOKER_HOOK_TIMEOUT_S", _seconds, "For each start and stop hook.", unit="seconds"
    )
    drain_s: float = _knob(
        30.0, "INVOKER_DRAIN_S", _seconds, "Running invocations may go on for this long after SIGTERM.", unit="seconds"
    )
    grace_s: float = _knob(
        5.0,
        "INVOKER_GRACE_S",
        _seconds,
        "User code may take this long to leave after its invocation ended.",
        unit="seconds",
    )
    settle_s: float = _knob(
        0.01, "INVOKER_SETTLE_S", _seconds,
        "Wait between the end of a request stream and the end of the inputs, to tell an end from a cancel.",
        unit="seconds",
    )  # fmt: skip
    lingering_s: float = _knob(
        60.0, "INVOKER_LINGERING_S", _seconds,
        "An invocation that outlives the end of its inputs by this is logged.", unit="seconds",
    )  # fmt: skip
    http_timeout_s: float = _knob(
        0.0, "INVOKER_HTTP_TIMEOUT_S", _seconds, "Deadline of an HTTP request (504); 0 means none.", unit="seconds"
    )
    blocked_s: float = _knob(
        0.25, "INVOKER_BLOCKED_S", _seconds,
        "An async function that blocks the loop for this long is named in the log; 0 turns the watchdog off.",
        unit="seconds",
    )  # fmt: skip
    bad_input: str = _knob(
        "unknown", "INVOKER_BAD_INPUT", _one_of(*_BAD_INPUT),
        "Status of a payload that cannot be decoded; 'invalid-argument' lets the HTTP adapter answer 400.",
        choices=_BAD_INPUT,
    )  # fmt: skip
    tls_cert: str = _knob("", "INVOKER_TLS_CERT", str, "PEM file with the server's certificate chain, for both doors.")
    tls_key: str = _knob("", "INVOKER_TLS_KEY", str, "PEM file with the certificate's private key.")
    tls_client_ca: str = _knob(
        "",
        "INVOKER_TLS_CLIENT_CA",
        str,
        "PEM file with the authorities of client certificates; one is then demanded (mTLS).",
    )
    allow_pickle: bool = _knob(
        False, "INVOKER_ALLOW_PICKLE", _switch,
        "Load functions from .pkl files, which runs whatever code they carry: only for files that you made.",
    )  # fmt: skip
    pickle_codec: bool = _knob(
        False, "INVOKER_PICKLE_CODEC", _switch,
        "Decode application/x-python-pickle, which lets every caller run code here: only among trusted callers.",
    )  # fmt: skip
    reload_per_invocation: bool = _knob(
        False, "INVOKER_RELOAD_PER_INVOCATION", _switch, "Execute the function's module anew for each invocation."
    )
    workers: int = _knob(
        1, "INVOKER_WORKERS", _workers,
        "Processes that serve side by side on the same ports; 'auto' is one for each core this process may use.",
        unit="processes",
    )  # fmt: skip
    heartbeat_s: float = _knob(
        30.0, "INVOKER_HEARTBEAT_S", _seconds,
        "Of several workers, one whose event loop is silent for this long is killed and replaced; 0 spares it.",
        unit="seconds",
    )  # fmt: skip
    connection_age_s: float = _knob(
        30.0, "INVOKER_CONNECTION_AGE_S", _seconds,
        "With several workers, clients of the gRPC door are told to connect anew after this long; 0 means never.",
        unit="seconds",
    )  # fmt: skip
    loop: str = _knob(
        "auto",
        "INVOKER_LOOP",
        _one_of(*_LOOPS),
        "Event loop; 'auto' takes uvloop when it is installed.",
        choices=_LOOPS,
    )
    log_level: str = _knob(
        "info", "INVOKER_LOG_LEVEL", _one_of(*_LOG_LEVELS), "Least level that is logged.", choices=_LOG_LEVELS
    )
    log_format: str = _knob(
        "auto", "INVOKER_LOG_FORMAT", _one_of(*_LOG_FORMATS),
        "'auto' is text on a terminal and JSON otherwise.", choices=_LOG_FORMATS,
    )  # fmt: skip
    debug: bool = _knob(
        False, "INVOKER_DEBUG", _switch, "Tell peers and the console tracebacks; never where strangers can call."
    )

    def __post_init__(self) -> None:
        if bool(self.tls_cert) != bool(self.tls_key):
            given, missing = (
                ("INVOKER_TLS_CERT", "INVOKER_TLS_KEY") if self.tls_cert else ("INVOKER_TLS_KEY", "INVOKER_TLS_CERT")
            )
            raise ConfigError(f"{given} is set without {missing}; TLS needs both")
        if self.tls_client_ca and not self.tls_cert:
            raise ConfigError(
                "INVOKER_TLS_CLIENT_CA is set without INVOKER_TLS_CERT; mTLS needs a server certificate too"
            )
        for low, high in (("high_frames", "hard_frames"), ("high_bytes", "hard_bytes")):
            if getattr(self, low) > getattr(self, high):
                raise ConfigError(
                    f"{low} is {getattr(self, low)}, above {high} {getattr(self, high)}; the hard cap is the larger"
                )

    @classmethod
    def read(cls, env: Mapping[str, str] = os.environ, flags: Mapping[str, str | bool] | None = None) -> Config:
        """Read the environment and the command line.

        Args:
            env: Variables; empty or blank ones count as unset.
            flags: Texts (or switches) by field name; they win over the environment.

        Raises:
            ConfigError: A value that its knob cannot have; names the variable or flag, and the value (R-004).
        """
        values: dict[str, Any] = {}
        for one in fields(cls):
            knob = knob_of(one)
            if flags and one.name in flags:
                given = flags[one.name]
                values[one.name] = given if isinstance(given, bool) else _parsed(knob, given, flag_of(one))
            elif (text := env.get(knob.env, "").strip()) != "":
                values[one.name] = _parsed(knob, text, knob.env)
        return cls(**values)

    def bind_host(self) -> tuple[str, str]:
        """The address to bind, and why it is that one."""
        if self.host != "auto":
            return self.host, "as INVOKER_HOST says"
        if os.environ.get("KUBERNETES_SERVICE_HOST"):
            return "0.0.0.0", "all interfaces, inside a pod"  # noqa: S104 - decided in the catalogue, 0.2
        if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
            return "0.0.0.0", "all interfaces, inside a container"  # noqa: S104
        return "127.0.0.1", "loopback only, outside a container"


def knobs() -> tuple[Field[Any], ...]:
    """The fields of `Config`, in order."""
    return fields(Config)


def knob_of(one: Field[Any]) -> Knob:
    """The knob that a field carries."""
    knob = one.metadata["knob"]
    assert isinstance(knob, Knob)
    return knob


def flag_of(one: Field[Any]) -> str:
    """The knob's flag on the command line."""
    return knob_of(one).flag or "--" + one.name.replace("_", "-")


def _parsed(knob: Knob, text: str, origin: str) -> Any:
    try:
        return knob.parse(text.strip())
    except ValueError as error:
        raise ConfigError(f"{origin} is {text!r}; expected {error}") from None
