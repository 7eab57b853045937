"""Content codings: the available ones, the one for a response, and those of a request body (RFC 9110, 8.4 and 12.5.3).

``gzip`` is always available. ``zstd`` is available from Python 3.14 on, before that if the package ``backports.zstd``
is installed (``pip install stream-invoker[zstd]``); both modules have the same interface, in which the bytes that are
unpacked at a time can be limited.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from invoker.core.http import RequestHead
from invoker.errors import UnsupportedMediaType

GZIP: Final = "gzip"
ZSTD: Final = "zstd"
IDENTITY: Final = "identity"

_ZSTD_MODULE: Final = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def _has_zstd() -> bool:
    try:
        return find_spec(_ZSTD_MODULE) is not None
    except ImportError:  # there is no package `backports`
        return False


PACKED: Final = (ZSTD, GZIP) if _has_zstd() else (GZIP,)
"""Codings of responses; of several that a client prefers equally, the first is taken."""

UNPACKED: Final = (*PACKED, "deflate")
"""Codings of requests."""

MOST: Final = 3
"""The most content codings of one body."""

_ELEMENT: Final = re.compile(r"([!#$%&'*+\-.^_`|~0-9a-z]+)(?:[ \t]*;[ \t]*q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?))?")
_OTHER_NAMES: Final = {"x-gzip": GZIP}
_MOST_ELEMENTS: Final = 64


def zstd_module() -> Any:
    """Import the module that packs and unpacks zstd; it exists only if `PACKED` has zstd."""
    return import_module(_ZSTD_MODULE)


class Choice(NamedTuple):
    """The coding of the response to a client.

    Attributes:
        coding: The coding that the client prefers.
        is_forced: Whether the client refuses an unpacked response.
    """

    coding: str = IDENTITY
    is_forced: bool = False


PLAIN: Final = Choice()

OFF: Final = Choice("")
"""The choice where nothing is packed for any client."""


def chosen(head: RequestHead, ours: Sequence[str]) -> Choice | None:
    """The available coding that the client of a request prefers; None if it accepts none of ours.

    Args:
        head: The head of the request, with names in lower case.
        ours: The available codings besides `IDENTITY`, the best first; if there are none, the result is `OFF`.
    """
    if not ours:
        return OFF
    listed = [value for name, value in head.headers if name == "accept-encoding"]
    return _chosen(", ".join(listed), tuple(ours)) if listed else PLAIN


@lru_cache(256)
def _chosen(accept: str, ours: tuple[str, ...]) -> Choice | None:
    weights = _weights(accept)
    others = weights.get("*")
    plain = weights.get(IDENTITY, others)
    named = sorted(ours, key=lambda one: 0 if one in weights else 1 if one == GZIP else 2)  # `*` means the usual
    offered = [(weights.get(one, others or 0.0), one) for one in named]
    weight, best = max(offered, key=lambda one: one[0], default=(0.0, IDENTITY))
    if weight == 0:
        return None if plain == 0 else PLAIN
    # A client that does not mention `identity` accepts it, but prefers the codings that it lists (RFC 9110, 12.5.3).
    return PLAIN if plain is not None and plain > weight else Choice(best, plain == 0)


def _weights(accept: str) -> Mapping[str, float]:
    """The listed codings with their weights; malformed ones are left out."""
    weights: dict[str, float] = {}
    for element in accept.lower().split(",", _MOST_ELEMENTS)[:_MOST_ELEMENTS]:
        found = _ELEMENT.fullmatch(element.strip(" \t"))
        if found is not None:
            name, weight = found.groups()
            weights[_OTHER_NAMES.get(name, name)] = 1.0 if weight is None else float(weight)
    return weights


def packed_with(head: RequestHead) -> tuple[str, ...]:
    """The codings of a request's body, in the order in which they were applied.

    Args:
        head: The head of the request, with names in lower case.

    Raises:
        UnsupportedMediaType: A coding is not known here, or there are too many.
    """
    listed = [value for name, value in head.headers if name == "content-encoding"]
    if not listed:
        return ()
    names = [one for element in ",".join(listed).lower().split(",") if (one := element.strip(" \t"))]
    codings = tuple(_OTHER_NAMES.get(one, one) for one in names if one != IDENTITY)
    unknown = next((one for one in codings if one not in UNPACKED), None)
    if unknown is not None:
        known = ", ".join(UNPACKED)
        raise UnsupportedMediaType(f"a body with Content-Encoding {unknown!a} is not supported; known are {known}")
    if len(codings) > MOST:
        raise UnsupportedMediaType(f"a body has {len(codings)} content codings, which exceeds the limit of {MOST}")
    return codings
