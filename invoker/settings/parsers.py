"""The parsers of settings: each turns a text into a value, and raises ValueError with the expected form."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

from invoker.settings.cores import usable_cores


def port(text: str) -> int:
    """Parse a port number; 0 takes a free port."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ValueError("a port number from 0 to 65535, where 0 takes a free one")
    return int(text)


def endpoint(text: str) -> str:
    """Check an address with a port, ``HOST:PORT``."""
    host, sign, number = text.rpartition(":")
    try:
        port(number)
    except ValueError:
        sign = ""
    if not (host and sign) or any(one.isspace() for one in host) or (":" in host and not host.startswith("[")):
        raise ValueError("HOST:PORT, where port 0 takes a free one; an IPv6 address is in brackets")
    return text


def mode(text: str) -> str:
    """Parse permissions of a file, in octal; the owner must be allowed to read and write."""
    if not re.fullmatch("0?[67][0-7]{2}", text):
        raise ValueError("permissions in octal, from 600 to 777")
    return text


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Make a parser of whole numbers with these bounds, both inclusive."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least or (most is not None and int(text) > most):
            raise ValueError(f"a whole number of at least {least}" + (f" and at most {most}" if most else ""))
        return int(text)

    return parse


def store(text: str) -> str:
    """Check the setting of the store: ``auto``, ``memory``, ``sqlite:PATH``, or the URL of a Redis server."""
    if text.lower() in ("auto", "memory"):
        return text.lower()
    if not re.match(r"sqlite:.|(redis|rediss|unix)://.", text):
        raise ValueError("auto, memory, sqlite:PATH, or the URL of a Redis server as redis://host:6379/0")
    return text


def workers(text: str) -> int:
    """Parse a number of processes, 1 or more; ``auto`` is the number of usable cores."""
    if text.lower() == "auto":
        return usable_cores()
    try:
        return whole(1)(text)
    except ValueError:
        raise ValueError("auto, or a whole number of at least 1") from None


def seconds(text: str) -> float:
    """Parse a time in seconds that is finite and not negative."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ValueError("seconds, 0 or more")
    return value


def switch(text: str) -> bool:
    """Parse a boolean: ``1``, ``true``, ``yes`` or ``on``, or their opposites."""
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError("1, true, yes, on, 0, false, no or off")


def seconds_or_auto(text: str) -> float | str:
    """Parse a number of seconds, or the word ``auto``."""
    try:
        return "auto" if text.lower() == "auto" else seconds(text)
    except ValueError as error:
        raise ValueError(f"auto, or {error}") from None


def one_of(*choices: str) -> Callable[[str], str]:
    """Make a parser of one of a few words, in any case; the result is in lower case."""

    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(" or ".join(choices))
        return text.lower()

    return parse


def levels_of(*choices: str) -> Callable[[str], str]:
    """Make a parser of one of a few words, then ``NAME=WORD`` for parts: ``info,myapp.db=debug``."""

    def parse(text: str) -> str:
        first, *others = (one.strip() for one in text.split(","))
        made = [first.lower()]
        for name, _, level in (one.rpartition("=") for one in others):
            made.append(f"{name.strip()}={level.strip().lower()}")
            if not name.strip() or made[-1].rpartition("=")[2] not in choices:
                made[0] = ""
        if made[0] not in choices:
            raise ValueError(f"{' or '.join(choices)}, then NAME=LEVEL after commas, as in {choices[0]},myapp.db=debug")
        return ",".join(made)

    return parse


def some_of(*choices: str) -> Callable[[str], tuple[str, ...]]:
    """Make a parser of one or several of a few words; the result has them in the order of ``choices``."""

    def parse(text: str) -> tuple[str, ...]:
        given = {one.lower() for one in names(text)}
        if not given or not given <= set(choices):
            raise ValueError(f"some of {', '.join(choices)}, separated by commas")
        return tuple(one for one in choices if one in given)

    return parse


def host(text: str) -> str:
    """Check a host name or an address."""
    if any(sign.isspace() for sign in text):
        raise ValueError("auto, a host name or an address")
    return text


def path(text: str) -> str:
    """Check the path of a URL, which starts with a slash and has no query."""
    if not text.startswith("/") or any(sign in text for sign in "?# "):
        raise ValueError("a path that starts with /, such as /sessions")
    return text


def base_url(text: str) -> str:
    """Parse a URL to which paths are appended; a slash at its end is removed."""
    if not re.fullmatch(r"https?://[^/?#@\s]+(/[^?#\s]*)?", text):
        raise ValueError("a URL such as https://rounds.example.org")
    return text.rstrip("/")


def sink(text: str) -> str:
    """Check the target of a log: ``off``, ``stderr``, or the path of a file."""
    if text not in ("off", "stderr") and "/" not in text:
        raise ValueError("off, stderr, or the path of a file, with a / in it")
    return text


def names(text: str) -> tuple[str, ...]:
    """Parse texts separated by commas; blanks around them and empty ones are dropped."""
    return tuple(one.strip() for one in text.split(",") if one.strip())


def origins(text: str) -> tuple[str, ...]:
    """Parse origins of web pages in the form of browsers, separated by commas; ``*`` is any."""
    for one in names(text):
        if one != "*" and not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@\s]+", one):
            raise ValueError("origins such as https://example.org or http://localhost:3000, without a path, or *")
    return names(text)


def pairs(shape: str) -> Callable[[str], tuple[tuple[str, str], ...]]:
    """Make a parser of ``name=value`` between commas; errors quote ``shape``."""

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
    """Parse absolute paths of existing directories, separated by commas."""
    for one in names(text):
        if not Path(one).is_absolute() or not Path(one).is_dir():
            raise ValueError(f"absolute paths of directories, and {one!r} is not one")
    return names(text)


def hosts(text: str) -> str:
    """Check ``off``, ``public``, or host names separated by commas."""
    found = names(text)
    special = {one.lower() for one in found} & {"off", "public"}
    if not found or (special and len(found) > 1) or any(sign.isspace() for one in found for sign in one):
        raise ValueError("off, public, or host names separated by commas")
    return text.lower() if special else ",".join(found)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on a host; ``::ffff:127.0.0.1`` is 127.0.0.1."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost"
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback  # Python 3.13 does this by itself
