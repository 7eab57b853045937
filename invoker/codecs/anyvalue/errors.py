"""Errors of values in ``Any``: a value has no form in ``Any``, or its bytes do not fit its type URL."""

from __future__ import annotations

from typing import Self

from invoker.errors import DecodeError, EncodeError
from invoker.errors.wording import Place


class Unserializable(EncodeError):
    """A value has no form in ``google.protobuf.Any``.

    Attributes:
        path: The place in the value, as Python subscripts: ``['rows'][3]``; empty for the value itself.
        reason: The reason why the value cannot be represented, without the path.
        code: ``unserializable``, or ``missing_dependency`` if a library is not installed.
    """

    def __init__(
        self, reason: str, path: str = "", *, code: str = "unserializable", place: Place | None = None
    ) -> None:
        self.reason = reason
        self.path = path
        self.code = code
        met = f"the value at {path}" if path else "the value"
        super().__init__(f" {reason}", met=met, place=place)

    @property
    def details(self) -> dict[str, str]:
        """The details of the error that a caller of the tool bridge gets, by name."""
        return {"code": self.code, **({"path": self.path} if self.path else {})}

    def within(self, step: object) -> Unserializable:
        """The same error with ``step`` in front of its path: the key or index of the value in its container."""
        return Unserializable(self.reason, f"[{step!r}]{self.path}", code=self.code)

    def inside(self, place: Place) -> Self:
        """The same error, with a place at the beginning of its text."""
        return type(self)(self.reason, self.path, code=self.code, place=place)


class TooComplex(ValueError):
    """A value has too many elements, or too many levels; `unpack` makes it a BadAny."""


class MissingLibrary(ValueError):
    """A value needs a library that is not installed; `unpack` makes it a BadAny."""


class BadAny(DecodeError):
    """The bytes are not a ``google.protobuf.Any``, or their content cannot be read.

    Attributes:
        reason: The reason why they cannot be read.
        type_url: The received type URL; empty if it could not be read.
        code: ``decode``, ``too_complex`` (T-053) or ``missing_dependency`` (T-108).
    """

    def __init__(self, reason: str, type_url: str = "", *, code: str = "decode", place: Place | None = None) -> None:
        self.reason = reason
        self.type_url = type_url
        self.code = code
        met = f"a value of the type URL {type_url!r}" if type_url else "a google.protobuf.Any"
        super().__init__(f" {reason}", met=met, place=place)

    @property
    def details(self) -> dict[str, str]:
        """The details of the error that a caller of the tool bridge gets, by name."""
        return {"code": self.code, **({"type_url": self.type_url} if self.type_url else {})}

    def inside(self, place: Place) -> Self:
        """The same error, with a place at the beginning of its text."""
        return type(self)(self.reason, self.type_url, code=self.code, place=place)
