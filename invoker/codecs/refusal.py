"""The texts of codec errors: what was met, what was expected, where; never a path, a traceback or broken Unicode."""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from invoker.codecs.typed import members
from invoker.errors import DecodeError, EncodeError, InvocationError, StopInvocation
from invoker.wording import Place, Why, describe

__all__ = ["choices", "quote", "reason", "refuse_decode", "refuse_encode", "spell"]

_LONGEST = 400
_OURS = (InvocationError, RecursionError, UnicodeError)
_PATH = re.compile(
    r"""(?<=['"])(?:file:|[A-Za-z]:)?[/\\](?=[^'"\n/\\]*+[/\\])[^'"\n]*+(?=['"])"""  # in quotes it may have spaces
    r"""|(?<![\w:/.$`])(?:file:/+|[A-Za-z]:[/\\]|/)(?:[^\s/\\:'"`,;()]+[/\\])+[^\s/\\:'"`,;()]*"""
)
_AN_ENUM = re.compile(r"Invalid enum value '[^']*'|Invalid enum value -?\d+")
"""What msgspec says of a value that is no member, if it is not within another one."""
_LISTED = 8
"""Members of an Enum that an error lists."""
_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")


def refuse_decode(error: BaseException | str, where: Place, media_type: str, type_: Any = Any) -> DecodeError:
    """Make the DecodeError of a payload; re-raises what is not the codec's doing."""
    if isinstance(error, StopInvocation):
        raise error
    if isinstance(error, DecodeError):
        return error if error.place == where else error.inside(where)
    wanted = f" cannot become {spell(type_)}" if type_ is not Any else " cannot be decoded"
    is_choice = isinstance(error, msgspec.ValidationError) and _AN_ENUM.fullmatch(str(error))
    hint = choices(members(type_)) if is_choice else ""
    return DecodeError(wanted, place=where, met=quote(media_type), why=reason(error), hint=hint)


def refuse_encode(error: BaseException | str, where: Place, media_type: str, cls: type) -> EncodeError:
    """Make the EncodeError of a value; re-raises what is not the codec's doing."""
    if isinstance(error, StopInvocation):
        raise error
    if isinstance(error, EncodeError):
        return error if error.place == where else error.inside(where)
    why = reason(error)
    if not isinstance(error, (str, *_OURS)):
        # An author's class or codec raised this, so a policy may withhold its text. Our own reasons are texts.
        why = Why(why.text, type(error).__name__)
    return EncodeError(f": {cls.__name__} cannot be {quote(media_type)}", place=where, why=why)


def choices(wanted: Sequence[Any]) -> str:
    """List the values of an Enum for the text of an error. Callers send values, so its names are not listed."""
    enums = [one for one in wanted if isinstance(one, type) and issubclass(one, enum.Enum)]
    texts = [repr(one.value) for kind in enums for one in kind]
    more = f" and {len(texts) - _LISTED} more" if len(texts) > _LISTED else ""
    return f"; expected one of {', '.join(texts[:_LISTED])}{more}" if texts else ""


def reason(error: BaseException | str) -> Why:
    """Why, in one line that is fit for the wire (R-117)."""
    raised = ""
    if isinstance(error, str):
        text = error
    elif isinstance(error, RecursionError):
        text = "it is nested too deeply"
    elif isinstance(error, UnicodeError):
        text = _unicode(error)
    elif isinstance(error, InvocationError):
        text, raised = error.detail, error.why.raised if error.why is not None else ""
    elif type(error).__module__.partition(".")[0] == "pydantic_core" and hasattr(error, "errors"):
        text = _pydantic(error)
    elif isinstance(error, OSError):
        text = f"{type(error).__name__}: {error.strerror or 'failed'}"
    elif isinstance(error, ValueError) and (type(error).__module__ == "msgspec" or type(error) is ValueError):
        text = str(error)
    else:
        text, raised = describe(error), type(error).__name__
    return Why(_clean(text), raised)


def quote(text: str) -> str:
    """A peer's own text within an error, bounded and printable."""
    return _clean(text if len(text) <= 120 else text[:120] + "...")


def spell(type_: Any) -> str:
    """An annotation as its author would write it."""
    if type_ is None or type_ is type(None):
        return "None"
    if isinstance(type_, type) and not getattr(type_, "__args__", None):
        return type_.__qualname__.rpartition("<locals>.")[2]
    if "numpy" in sys.modules:
        from invoker.tensors import array_spelled

        if text := array_spelled(type_):
            return text
    text = _ADDRESS.sub("", str(type_).replace("typing.", ""))
    return re.sub(r"[\w.]*<locals>\.|\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)


def _unicode(error: UnicodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not valid {error.encoding} ({error.reason})"
    if isinstance(error, UnicodeEncodeError):
        return f"character {error.object[error.start]!a} is not in {error.encoding} ({error.reason})"
    return str(error)


def _pydantic(error: Any) -> str:
    """Fields and messages only: pydantic's own text repeats the input and advertises a URL."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    lines = [f"{'.'.join(str(step) for step in one['loc']) or 'value'}: {one['msg']}" for one in found[:5]]
    return "; ".join(lines) + ("; ..." if len(found) > 5 else "")


def _clean(text: str) -> str:
    text = _ADDRESS.sub("", _PATH.sub("<path>", text[: 4 * _LONGEST]))
    text = "".join(sign if sign.isprintable() else " " if sign.isspace() else ascii(sign)[1:-1] for sign in text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
