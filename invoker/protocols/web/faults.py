"""Rewrites errors for callers over HTTP and WebSocket, so that they use the names of parameters (R-145, H-203)."""

from __future__ import annotations

from typing import Final

from invoker.errors import DecodeError, FunctionError, InvocationError, NotAcceptable, UnacceptedType
from invoker.protocols.web.fields import Signature

_STREAMS: Final = "Accept: text/event-stream, application/x-ndjson or multipart/mixed"
_MANY: Final = (
    "; this input takes many values, each as a line (Content-Type: application/x-ndjson) or as a part of a form"
)
_JSON: Final = "application/json"
_FREE: Final = (
    "; without Accept, the function's value comes in the type that suits it; "
    "a stream is text/event-stream, application/x-ndjson or multipart/mixed"
)


def ways(signature: Signature) -> str:
    """A sentence that says how a client can get all values of a function (R-149)."""
    path = f"call /{signature.name}, or " if signature.gives_many else ""
    return f"to have all of them as they come, {path}accept a stream: {_STREAMS}"


def second(signature: Signature) -> FunctionError:
    """The error of a function that returned several values although the response is exactly one (R-149)."""
    return FunctionError(f"the function gave a second value, and this response is exactly one; {ways(signature)}")


def no_value(signature: Signature) -> FunctionError:
    """The error of a function that returned no value although the response is exactly one (R-149)."""
    path = f" (at /{signature.name})" if signature.gives_many else ""
    return FunctionError(
        f"the function gave no value, and this response is exactly one; a stream may also be empty{path}: {_STREAMS}"
    )


def at_fault(error: InvocationError, signature: Signature, names: tuple[str, ...]) -> str:
    """The parameter that an error is about; empty if it is unknown.

    Args:
        error: Any error.
        signature: The signature of the function.
        names: The names of the inputs with which the invocation was opened.
    """
    index = error.place.index if error.place is not None and error.place.kind == "input" else None
    known = signature.named(names)
    return known[index] if index is not None and index < len(known) else ""


def named(error: InvocationError, parameter: str) -> InvocationError:
    """The same error, with the name of the parameter instead of the number of its input."""
    return DecodeError(error.said_at(f"parameter '{parameter}'")) if isinstance(error, DecodeError) else error


def unaccepted(error: InvocationError, signature: Signature, accept: str) -> InvocationError:
    """The same error; if Accept does not list the type of the value, with the types on offer (H-220, H-221)."""
    if isinstance(error, UnacceptedType):
        return NotAcceptable(f"the function has run and gave {error.met}, and Accept lists {accept!a}", hint=_FREE)
    if isinstance(error, NotAcceptable):
        offered = ", ".join(signature.offered)
        error.add_hint(f"; its value can be {offered}{_FREE}" if offered else _FREE)
    return error


def hint(signature: Signature, parameter: str, content_type: str, begins: bytes) -> str:
    """A hint for the error of a body that was read as one value, but may have been meant as an object or a stream.

    Args:
        signature: The signature of the function.
        parameter: The parameter that could not take the value.
        content_type: The media type of the body.
        begins: The first byte of the body; empty: there was no body, or the body was not read as one value.
    """
    one = next((each for each in signature.fields if each.name == parameter), None)
    if one is None or not begins:
        return ""
    essence = content_type.partition(";")[0].strip().lower()
    if (
        begins == b"{" and essence != _JSON and not one.takes_object
    ):  # H-204; the errors of other codecs already say what to send
        met = f"its Content-Type is {essence!a}" if essence else "it has no Content-Type"
        return (
            f"; the body was taken for '{parameter}', because {met}; "
            "to give parameters by a JSON object, send Content-Type: application/json"
        )
    if begins == b"{" and essence == _JSON and one.takes_object and one.keys is None and len(signature.fields) > 1:
        other = next(each.name for each in signature.fields if each is not one)
        return f"; all of the body was taken for '{parameter}', which takes any object; give others as ?{other}=..."
    return "" if one.is_value else _MANY
