"""``application/x-www-form-urlencoded``: what ``curl -d`` sends (R-091)."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from invoker.codecs.base import as_bytes_type, bad_input, convert, scalar_only, strict_text
from invoker.codecs.text import scalar_text
from invoker.errors import DecodeError, EncodeError
from invoker.mediatypes import MediaType, parse
from invoker.message import Message

__all__ = ["FormCodec", "collect"]


class FormCodec:
    """A form as a dict; repeated keys give lists. A scalar parameter gets the body as it stands."""

    media_types = ("application/x-www-form-urlencoded",)

    def decode(self, message: Message[bytes], type_: Any) -> Any:
        """Decode; see `invoker.codecs.Codec`."""
        as_bytes = as_bytes_type(type_)
        if as_bytes is not None:
            return as_bytes(message.payload)
        charset = parse(message.media_type).charset or "utf-8"
        try:
            text = strict_text(message.payload, charset)
            if type_ is not Any and scalar_only(type_):
                return text if type_ is str else convert(text.strip(), type_)
            pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=False, encoding=charset, errors="strict")
            return convert(collect(pairs), type_)
        except DecodeError as error:
            raise bad_input(message.media_type, error.detail, type_) from None
        except (ValueError, RecursionError) as error:
            raise bad_input(message.media_type, error, type_) from None

    def encode(self, value: Any, media_type: MediaType) -> Message[bytes]:
        """Encode; see `invoker.codecs.Codec`."""
        pairs: list[tuple[str, str]] = []
        for name, one in value.items():
            for item in one if isinstance(one, (list, tuple)) else (one,):
                if isinstance(item, (dict, list, tuple, set, bytes)):
                    raise EncodeError(f"cannot write the field {name!r} of a form: it is a {type(item).__name__}, not a scalar")
                pairs.append((str(name), scalar_text(item)))
        try:
            return Message(urlencode(pairs).encode(), media_type=media_type.essence)
        except UnicodeEncodeError:
            raise EncodeError("cannot write a form: it has lone surrogates") from None

    def can_encode(self, value: Any) -> bool:
        """Dicts; their values must be scalars or lists of them."""
        return isinstance(value, dict)


def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Fields by name; those that come more than once give lists."""
    found: dict[str, Any] = {}
    seen: dict[str, int] = {}
    for name, value in pairs:
        seen[name] = seen.get(name, 0) + 1
        if seen[name] == 1:
            found[name] = value
        elif seen[name] == 2:  # noqa: PLR2004 - the second one makes it a list
            found[name] = [found[name], value]
        else:
            found[name].append(value)
    return found
