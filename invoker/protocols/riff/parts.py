"""The parts of a multipart/form-data body, parsed while it arrives."""

from __future__ import annotations

from dataclasses import dataclass, field

from python_multipart.multipart import MultipartParser, parse_options_header

from invoker.errors import DecodeError, LimitExceeded

__all__ = ["MAX_PARTS", "Part", "Parts", "is_form"]

MAX_PARTS = 1000
"""Parts of one body; each costs far more than its bytes."""


@dataclass(slots=True)
class Part:
    """One part.

    Attributes:
        name: Of the form field.
        media_type: As the part says; text/plain when it does not (RFC 7578, 4.4).
        headers: The part's other headers, Content-Disposition with its file name among them.
        payload: The part's bytes.
    """

    name: str = ""
    media_type: str = "text/plain"
    headers: dict[str, str] = field(default_factory=dict)
    payload: bytes = b""


def is_form(content_type: str) -> bool:
    """Whether a body of this type has parts."""
    return content_type.partition(";")[0].strip().lower() == "multipart/form-data"


class Parts:
    """Collects the parts of one body, chunk by chunk.

    Args:
        content_type: Of the body; has the boundary.

    Raises:
        DecodeError: There is no boundary, or it is not usable.
    """

    def __init__(self, content_type: str) -> None:
        self.found: list[Part] = []
        self._part = Part()
        self._payload: list[bytes] = []
        self._name = bytearray()
        self._value = bytearray()
        self._is_ended = False
        try:
            boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
            if not boundary:
                raise DecodeError("a multipart/form-data body needs a boundary in its content-type")
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
                    "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                    "on_header_end": self._header,
                    "on_headers_finished": self._headers_finished,
                    "on_part_data": lambda data, start, end: self._payload.append(data[start:end]),
                    "on_part_end": self._end,
                    "on_end": self._finished,
                },
            )
        except ValueError as error:  # FormParserError and UnicodeEncodeError are
            raise DecodeError(f"the boundary of the multipart/form-data body is not usable: {error}") from None

    def write(self, chunk: bytes) -> None:
        """Parse more of the body.

        Raises:
            DecodeError: It is not multipart/form-data, or a part has no name.
            LimitExceeded: It has more than `MAX_PARTS` parts.
        """
        try:
            self._parser.write(chunk)
        except ValueError as error:
            raise DecodeError(f"the body is not multipart/form-data: {error}") from None

    def finish(self) -> list[Part]:
        """The parts of a body that has come to its end.

        Raises:
            DecodeError: The closing boundary is missing: the body was cut.
        """
        if not self._is_ended:
            raise DecodeError("the multipart/form-data body ends before its closing boundary")
        return self.found

    def _begin(self) -> None:
        if len(self.found) >= MAX_PARTS:
            raise LimitExceeded(f"the body has more than {MAX_PARTS} parts")
        self._part = Part()

    def _header(self) -> None:
        name, value = self._name.decode("latin-1"), _text(bytes(self._value))
        self._name.clear()
        self._value.clear()
        if name.lower() == "content-type":
            self._part.media_type = value
            return
        if name.lower() == "content-disposition":
            options = parse_options_header(value.encode().decode("latin-1"))[1]
            self._part.name = _text(options.get(b"name", b""))
        self._part.headers[name] = value

    def _headers_finished(self) -> None:
        if not self._part.name:
            raise DecodeError(f"part {len(self.found)} has no name; a Content-Disposition with one is expected")

    def _end(self) -> None:
        self._part.payload = b"".join(self._payload)
        self._payload.clear()
        self.found.append(self._part)

    def _finished(self) -> None:
        self._is_ended = True


def _text(data: bytes) -> str:
    """Header bytes as text: UTF-8, as browsers send it, else Latin-1, which takes everything."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")
