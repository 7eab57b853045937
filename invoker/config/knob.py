"""`Knob`: what is known about one setting, and the parsers that turn its text into a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from invoker.config.cores import usable_cores
from invoker.errors import ConfigError

__all__ = [
    "Flags",
    "Knob",
    "as_given",
    "directories",
    "endpoint",
    "flag_of",
    "gathered",
    "given",
    "host",
    "hosts",
    "knob",
    "knob_of",
    "knobs_of",
    "mode",
    "names",
    "one_of",
    "origins",
    "pairs",
    "parsed",
    "port",
    "seconds",
    "some_of",
    "switch",
    "whole",
    "workers",
]


Flags: TypeAlias = Mapping[str, str | bool | Sequence[str]]
"""What the command line gives, by the names of fields: texts, switches, or several texts."""


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
        many: Whether the flag may be repeated; the variable separates by commas, and the value is a tuple.
        heading: What ``--help`` says above it and those that follow it; empty: it follows another one.
        before: Name of the knob before which it is listed; empty: it follows the one above it in its class.
    """

    env: str
    help: str
    unit: str
    parse: Callable[[str], Any]
    flag: str = ""
    choices: tuple[str, ...] = ()
    many: bool = False
    heading: str = ""
    before: str = ""


def knob(default: Any, env: str, parse: Callable[[str], Any], help: str, *, unit: str = "", flag: str = "",  # noqa: PLR0913 - one for each attribute
         choices: tuple[str, ...] = (), many: bool = False, heading: str = "", before: str = "") -> Any:  # fmt: skip
    """A field that is a knob."""
    about = Knob(env, help, unit, parse, flag, choices, many, heading, before)
    return field(default=default, metadata={"knob": about})


def knobs_of(kind: type) -> Iterator[Field[Any]]:
    """The fields of a dataclass that are knobs, in its order."""
    return (one for one in fields(kind) if "knob" in one.metadata)


def gathered(kinds: Iterable[type]) -> tuple[Field[Any], ...]:
    """The knobs of several dataclasses in the order in which they are listed; one that several inherit is one."""
    found: list[Field[Any]] = []
    for kind in kinds:
        at = len(found)
        for one in knobs_of(kind):
            names = [other.name for other in found]
            if one in found:
                at = names.index(one.name) + 1
                continue
            assert one.name not in names, f"two knobs are named {one.name}"
            if before := knob_of(one).before:
                at = names.index(before)
            found.insert(at, one)
            at += 1
    return tuple(found)


def given(kind: type, env: Mapping[str, str], flags: Flags) -> dict[str, Any]:
    """The values that the environment and the command line give to the knobs of a dataclass.

    Raises:
        ConfigError: A value that its knob cannot have; names the variable or flag, and the value (R-004).
    """
    values: dict[str, Any] = {}
    for one in knobs_of(kind):
        about, said = knob_of(one), flags.get(one.name)
        if isinstance(said, bool):
            values[one.name] = said
        elif isinstance(said, str):
            values[one.name] = parsed(about, said, flag_of(one))
        elif said is not None:
            values[one.name] = sum((parsed(about, text, flag_of(one)) for text in said), ())
        elif (text := env.get(about.env, "").strip()) != "":
            values[one.name] = parsed(about, text, about.env)
    return values


def knob_of(one: Field[Any]) -> Knob:
    """The knob that a field carries."""
    found = one.metadata["knob"]
    assert isinstance(found, Knob)
    return found


def flag_of(one: Field[Any]) -> str:
    """The knob's flag on the command line."""
    return knob_of(one).flag or "--" + one.name.replace("_", "-")


def parsed(one: Knob, text: str, origin: str) -> Any:
    """The value that a text means.

    Raises:
        ConfigError: None; names where the text comes from.
    """
    try:
        return one.parse(text.strip())
    except ValueError as error:
        raise ConfigError(f"{origin} is {text!r}; expected {error}") from None


def port(text: str) -> int:
    """A port number; 0 takes a free one."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ValueError("a port number from 0 to 65535, where 0 takes a free one")
    return int(text)


def endpoint(text: str) -> str:
    """An address with a port, ``HOST:PORT``."""
    host, sign, number = text.rpartition(":")
    try:
        port(number)
    except ValueError:
        sign = ""
    if not (host and sign) or any(one.isspace() for one in host) or (":" in host and not host.startswith("[")):
        raise ValueError("HOST:PORT, where port 0 takes a free one; an IPv6 address stands in brackets")
    return text


def mode(text: str) -> str:
    """Permissions of a file, in octal; its owner can use it at least."""
    if not re.fullmatch("0?[67][0-7]{2}", text):
        raise ValueError("permissions in octal, from 600 to 777")
    return text


def whole(least: int) -> Callable[[str], int]:
    """A whole number that is not below another."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise ValueError(f"a whole number of at least {least}")
        return int(text)

    return parse


def workers(text: str) -> int:
    """A number of processes."""
    if text.lower() == "auto":
        return usable_cores()
    try:
        return whole(1)(text)
    except ValueError:
        raise ValueError("auto, or a whole number of at least 1") from None


def seconds(text: str) -> float:
    """A time that is finite and not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError("seconds, 0 or more")
    return value


def switch(text: str) -> bool:
    """On or off, in the usual words."""
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError("1, true, yes, on, 0, false, no or off")


def one_of(*choices: str) -> Callable[[str], str]:
    """One of a few words."""

    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(" or ".join(choices))
        return text.lower()

    return parse


def some_of(*choices: str) -> Callable[[str], tuple[str, ...]]:
    """At least one of a few words, in their own order."""

    def parse(text: str) -> tuple[str, ...]:
        given = {one.lower() for one in names(text)}
        if not given or not given <= set(choices):
            raise ValueError(f"some of {', '.join(choices)}, separated by commas")
        return tuple(one for one in choices if one in given)

    return parse


def host(text: str) -> str:
    """A host name or an address."""
    if any(sign.isspace() for sign in text):
        raise ValueError("auto, a host name or an address")
    return text


def path(text: str) -> str:
    """The path of a URL."""
    if not text.startswith("/") or any(sign in text for sign in "?# "):
        raise ValueError("a path that starts with /, such as /sessions")
    return text


def names(text: str) -> tuple[str, ...]:
    """Texts between commas."""
    return tuple(one.strip() for one in text.split(",") if one.strip())


def origins(text: str) -> tuple[str, ...]:
    """Origins of web pages as browsers say them, between commas; ``*`` is any."""
    for one in names(text):
        if one != "*" and not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@\s]+", one):
            raise ValueError("origins such as https://example.org or http://localhost:3000, without a path, or *")
    return names(text)


def pairs(shape: str) -> Callable[[str], tuple[tuple[str, str], ...]]:
    """``name=value`` between commas; ``shape`` says how they are written."""

    def parse(text: str) -> tuple[tuple[str, str], ...]:
        found = []
        for one in names(text):
            name, sign, value = (part.strip() for part in one.partition("="))
            if not (name and sign and value):
                raise ValueError(f"{shape}, several separated by commas")
            found.append((name, value))
        return tuple(found)

    return parse


def directories(text: str) -> tuple[str, ...]:
    """Absolute paths of directories that are there."""
    for one in names(text):
        if not Path(one).is_absolute() or not Path(one).is_dir():
            raise ValueError(f"absolute paths of directories; {one!r} is none")
    return names(text)


def hosts(text: str) -> str:
    """``off``, ``public``, or host names between commas."""
    found = names(text)
    special = {one.lower() for one in found} & {"off", "public"}
    if not found or (special and len(found) > 1) or any(sign.isspace() for one in found for sign in one):
        raise ValueError("off, public, or host names separated by commas")
    return text.lower() if special else ",".join(found)


def as_given(detail: str, fields: Iterable[Field[Any]], flags: Container[str]) -> str:
    """A text that names variables, with the flags that were given instead of them."""
    given = {knob_of(one).env: flag_of(one) for one in fields if one.name in flags}
    return re.sub(r"\b[A-Z_]+\b", lambda found: given.get(found[0], found[0]), detail)
