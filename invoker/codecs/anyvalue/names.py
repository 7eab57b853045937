"""Names and limits for packing and unpacking, and the value that represents an object of a foreign class."""

from __future__ import annotations

from typing import Final, Self

ANY: Final = "application/vnd.google.protobuf.any"
"""The media type of a payload that is a serialised ``google.protobuf.Any``."""

PREFIX: Final = "type.googleapis.com/"
PROTOBUF: Final = "google.protobuf."

TAG: Final = "@type"
"""The key of a tagged object that holds the type URL; the other key is ``value``."""

EXACT: Final = 2**53
"""Integers up to this magnitude are exact in a double."""

STRUCT: Final = f"{PREFIX}{PROTOBUF}Struct"
"""The tag of a dict that looks like a tagged object but is not one."""

MOST_LEVELS: Final = 64
"""The deepest nesting of lists and dicts (T-053)."""

MOST_ELEMENTS: Final = 1_000_000
"""The most elements of one value, in all its lists and dicts together (T-053)."""


class Opaque(str):
    """An object of a class that only the peer knows, as the text that the peer made from it (T-109).

    Attributes:
        class_name: The name of the class at the peer.
    """

    __slots__ = ("class_name",)

    class_name: str

    def __new__(cls, text: str, class_name: str) -> Self:
        """Make one of the peer's text and the name of the class."""
        made = super().__new__(cls, text)
        made.class_name = class_name
        return made

    def __repr__(self) -> str:
        return f"Opaque({str(self)!r}, {self.class_name!r})"

    def __reduce__(self) -> tuple[type[Opaque], tuple[str, str]]:
        return Opaque, (str(self), self.class_name)
