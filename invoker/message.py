"""`Message` is a payload with its media type and headers; `Headers` is a mapping that ignores the case of names.

Inside the invoker a message always carries bytes (``Message[bytes]``); the user's function sees the decoded value.
Messages are never changed after they were made, so they may be shared freely between threads.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

import msgspec

from invoker.errors import EncodeError

REFERENCE = "reference"
"""The header of a message whose content is elsewhere; its value is the URI."""

METADATA = "invoker-metadata"
"""The header of a message that a function gave as `Metadata`; its value is the key."""

T = TypeVar("T")


# A subclass of dict, because `dict(headers)` then copies the entries instead of looking each name up.
class Headers(dict[str, str]):
    """Headers of a message: looked up without regard to case, iterated in their original spelling.

    Two names that differ only in case are both kept; a lookup gives the first of them in sorted order (R-073, R-074).
    Headers cannot be changed: change a copy, ``dict(headers)``, and give that to a new message.

    Args:
        items: A mapping or pairs of names and values.
    """

    __slots__ = ("_folded",)

    _folded: dict[str, str]  # the first lookup makes this index

    def __getitem__(self, name: str) -> str:
        return self._by_folded_name()[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._by_folded_name()

    @overload
    def get(self, name: str, default: None = None) -> str | None: ...
    @overload
    def get(self, name: str, default: str) -> str: ...
    @overload
    def get(self, name: str, default: T) -> str | T: ...
    def get(self, name: str, default: Any = None) -> Any:
        """The value of a header, or the default."""
        return self._by_folded_name().get(name.lower(), default)

    def keys(self) -> KeysView[str]:  # type: ignore[override]  # a dict's own would mind the case
        """The names in their original spelling; ``in`` ignores their case."""
        return KeysView(self)

    def _by_folded_name(self) -> dict[str, str]:
        try:
            return self._folded
        except AttributeError:
            self._folded = {name.lower(): value for name, value in sorted(self.items(), reverse=True)}
            return self._folded

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("headers cannot be changed; change dict(headers), and give that to a new Message")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Headers], tuple[dict[str, str]]]:
        return Headers, (dict(self),)

    def __repr__(self) -> str:
        return f"Headers({super().__repr__()})"


EMPTY: Headers = Headers()


def as_headers(items: Mapping[str, str]) -> Headers:
    """Convert a mapping to `Headers`; an empty mapping costs nothing."""
    if isinstance(items, Headers):
        return items
    return Headers(items) if items else EMPTY


class Message(msgspec.Struct, Generic[T], frozen=True):
    """A value with its headers and media type. A function may take and give messages instead of plain values.

    Attributes:
        payload: The value; inside the invoker, the ``bytes`` of the encoded value.
        headers: The names and values that the caller sent, or that the caller will get.
        media_type: The media type of the payload; empty means the one that the caller accepts.
    """

    payload: T
    headers: Mapping[str, str] = EMPTY
    media_type: str = ""


class Ref(msgspec.Struct, frozen=True):
    """A reference to a value that can be fetched.

    A function gives it instead of the value, and the caller fetches the value itself.

    An Evergreen session sends it as a chunk with ``ref``. Callers of riff get an empty payload with the header
    ``reference``.

    Attributes:
        uri: The absolute URI of the value.
        media_type: The media type of the value.
    """

    uri: str
    media_type: str = "application/octet-stream"


class Metadata(msgspec.Struct, frozen=True):
    """Information that a generator yields between its items, such as its progress.

    It need not be of the type that the generator declares. StreamTool of the tool bridge sends it as metadata. In other
    protocols it is a message with the header ``invoker-metadata``, whose value is the key.

    Attributes:
        key: The name of the information.
        value: Any value that the caller's codec can encode.
    """

    key: str
    value: object


class Output(msgspec.Struct, frozen=True):
    """A value for one of several outputs: a generator yields it, and names the output by index or by name.

    Attributes:
        target: The index (``0 <= target < len(outputs)``) or the name of the output.
        value: The value, or a `Message` that carries headers.
    """

    target: int | str
    value: object


def find_output(target: int | str, outputs: Sequence[Any], given_names: Sequence[str]) -> int:
    """The index of an output by index or by name; names that the caller gave come first.

    Raises:
        EncodeError: There is no such output.
    """
    if not isinstance(target, str):
        if 0 <= target < len(outputs):
            return int(target)
    else:
        for names in (given_names, [output.name for output in outputs]):
            if target in names:
                return list(names).index(target)  # of equal names the first counts
    known = ", ".join(f"{output.index} {output.name!r}" for output in outputs) or "none"
    raise EncodeError(
        f"the function produced for output {target!r}; outputs are: {known}; declare others by "
        "@function(outputs=...), or let the caller name them"
    )
