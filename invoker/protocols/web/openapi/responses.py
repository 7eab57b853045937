"""Describes the responses of a function: one value, a stream of values, or an error."""

from __future__ import annotations

from typing import Any, Final

from invoker.author.described import Described, DescribedOutput
from invoker.author.spec import Take
from invoker.codecs.schema import Schema, Schemas
from invoker.codecs.typed import bytes_like, is_any, members
from invoker.protocols.web.openapi.requests import FILE, LINES, items

_JSON, _TEXT, _OCTETS = "application/json", "text/plain", "application/octet-stream"
_EVENTS, _MIXED, _PROBLEM = "text/event-stream", "multipart/mixed", "application/problem+json"

ERRORS: Final = {
    "400": "A value is missing, or its parameter does not take it.",
    "415": "The media type of the body cannot be read.",
    "429": "The function takes no more calls for now.",
    "500": "The function failed.",
    "503": "The server takes no more calls for now.",
    "default": "Another error.",
}
"""The description of each status; the last one is used for all others."""


class Replies:
    """Describes responses, and keeps the parts that all functions share.

    Args:
        schemas: The definitions of the document, to which this adds its own.
    """

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        problem = {"type": "string"}
        self.problem = schemas.add(
            "InvokerProblem",
            {
                "type": "object",
                "description": "An error, as RFC 9457 has it.",
                "properties": {
                    "type": {**problem, "format": "uri-reference"},
                    "title": problem,
                    "status": {"type": "integer"},
                    "detail": problem,
                    "code": {**problem, "description": "The name of a status of gRPC."},
                },
                "required": ["type", "title", "status", "detail", "code"],
            },
        )
        self.error = schemas.add(
            "InvokerError",
            {
                "type": "object",
                "description": "An error, for clients that prefer JSON.",
                "properties": {"error": {"type": "string"}},
                "required": ["error"],
            },
        )
        failure = {"type": "object", "properties": {"error": self.problem}, "required": ["error"]}
        self._failure = schemas.add("InvokerFailure", {**failure, "description": "The last line after an error."})
        self._packed: Schema | None = None

    def responses(self, function: Described, pieces: str = "") -> dict[str, Any]:
        """The responses of one function by their statuses.

        Args:
            function: The description of the function for callers.
            pieces: The media type of a response that streams bytes or text; empty: the function has no such response.
        """
        content: dict[str, Any] = {}
        if function.gives_many or not function.outputs:
            if pieces:
                content[pieces] = {"schema": dict(FILE) if pieces == _OCTETS else {"type": "string"}}
            content |= self._streams(function)
        else:
            content = self._single(function)
            content[LINES] = self._lines(function)
        words = function.docs.result or ("The values." if function.gives_many else "The value.")
        made: dict[str, Any] = {"200": {"description": words, "content": content}}
        if not function.outputs:
            made["204"] = {"description": "The function has taken all inputs, and gives nothing."}
        if any(one.stream.take is not Take.PAYLOAD for one in function.outputs):
            made["2XX"] = made["200"]  # a function that returns messages may choose the status
        return made | {status: {"$ref": f"#/components/responses/{_key(status)}"} for status in ERRORS}

    def _single(self, function: Described) -> dict[str, Any]:
        """Describe a response whose body is one value."""
        if len(function.outputs) != 1:
            return {}
        (output,) = function.outputs
        return {media_type: {"schema": self._whole(output, media_type)} for media_type in output.media_types}

    def _whole(self, output: DescribedOutput, media_type: str) -> Schema:
        if media_type == _JSON or media_type.endswith("+json"):
            return output.shared_schema(self._schemas) if not _is_bytes(output) else {}
        if media_type.startswith("text/"):
            return {"type": "string"}
        return dict(FILE) if media_type == _OCTETS else {"type": "string", "format": "binary"}

    def _streams(self, function: Described) -> dict[str, Any]:
        several = len(function.outputs) > 1
        whose = " The event's name is that of the output." if several else ""
        return {
            LINES: self._lines(function),
            _EVENTS: items(
                self._value(function, is_named=False),
                f"Server-sent events: `data` is a JSON value, `id` its number.{whose} The last event is `end`, or "
                "`error` with a problem.",
            ),
            _MIXED: items(
                {},
                "A part for each value, with its own Content-Type. The last one after an error is a problem.",
            ),
        }

    def _lines(self, function: Described) -> dict[str, Any]:
        value = self._value(function, is_named=len(function.outputs) > 1)
        words = "A JSON value on each line. After an error the last line is an object with the problem."
        return items({"anyOf": [value, self._failure]} if value else {}, words)

    def _value(self, function: Described, *, is_named: bool) -> Schema:
        """The schema of one item of a stream."""
        each = {one.name: self._item(one) for one in function.outputs}
        if not each:
            return {}
        if is_named:
            return {"type": "object", "properties": each, "minProperties": 1, "maxProperties": 1}
        found: list[Schema] = []
        for one in each.values():
            if one not in found:
                found.append(one)
        return found[0] if len(found) == 1 else {"anyOf": found}

    def _item(self, output: DescribedOutput) -> Schema:
        if _JSON in output.media_types or any(one.endswith("+json") for one in output.media_types):
            schema = output.shared_schema(self._schemas)
            may_be_packed = any(bytes_like(one) is not None for one in members(output.stream.type)) or (
                is_any(output.stream.type) and bool(schema)
            )
            return {"anyOf": [schema, self._pack()]} if may_be_packed else schema
        if all(one.startswith("text/plain") for one in output.media_types):
            return {"type": "string"}
        return self._pack()

    def _pack(self) -> Schema:
        if self._packed is None:
            self._packed = self._schemas.add(
                "InvokerPacked",
                {
                    "type": "object",
                    "description": "A value that is not JSON, as a JSON object.",
                    "properties": {
                        "contentType": {"type": "string"},
                        "base64": {"type": "string", "contentEncoding": "base64"},
                    },
                    "required": ["contentType", "base64"],
                },
            )
        return self._packed


def error_responses(replies: Replies) -> dict[str, Any]:
    """The responses that all functions share, by their names."""
    content = {
        _TEXT: {"schema": {"type": "string"}},  # this comes first, because generated clients use the first one
        _JSON: {"schema": replies.error},
        _PROBLEM: {"schema": replies.problem},
    }
    later = {"headers": {"Retry-After": {"description": "In seconds.", "schema": {"type": "integer"}}}}
    return {
        _key(status): {"description": words, **(later if status in ("429", "503") else {}), "content": content}
        for status, words in ERRORS.items()
    }


def _key(status: str) -> str:
    return f"Error{status.removeprefix('default')}"


def _is_bytes(output: DescribedOutput) -> bool:
    kinds = [one for one in members(output.stream.type) if one is not type(None)]
    return bool(kinds) and all(bytes_like(one) is not None for one in kinds)
