"""Describes the requests of a function: query parameters, and bodies by media type."""

from __future__ import annotations

from typing import Any, Final

from invoker.author.described import Described, DescribedInput
from invoker.codecs.schema import Schema, Schemas
from invoker.codecs.typed import bytes_like, members
from invoker.protocols.web.fields import Field, Signature
from invoker.protocols.web.openapi.examples import examples_of

LINES: Final = "application/x-ndjson"
_JSON, _TEXT, _OCTETS = "application/json", "text/plain", "application/octet-stream"
_PARTS = "multipart/form-data"

FILE: Final = {"type": "string", "format": "binary", "contentMediaType": _OCTETS}
"""The schema of raw bytes. OpenAPI 3.1 needs ``contentMediaType`` only, but most tools still look for ``format``."""


def items(schema: Schema, words: str) -> dict[str, Any]:
    """Describe a body that is a sequence of items, in a way that tools for OpenAPI 3.1 accept.

    To these tools the whole sequence is a string; ``x-itemSchema`` has the meaning of ``itemSchema`` in OpenAPI 3.2.
    """
    made: dict[str, Any] = {"schema": {"type": "string", "description": words}}
    return {**made, "x-itemSchema": schema} if schema else made


class Requests:
    """The requests of one function.

    Args:
        function: The description of the function for callers.
        signature: The signature to which requests are bound.
        name: The name of the operation; the names of definitions begin with it.
        schemas: The definitions of the document, to which this adds its own.
    """

    def __init__(self, function: Described, signature: Signature, name: str, schemas: Schemas) -> None:
        self._function = function
        self._signature = signature
        self._name = name
        self._schemas = schemas
        inputs = {one.name: one for one in function.inputs}
        self._fields = [(one, inputs[one.name]) for one in (*signature.fields, *signature.options)]
        self._each = {one.name: told.shared_schema(schemas) for one, told in self._fields}

    def parameters(self, *, is_body: bool) -> list[dict[str, Any]]:
        """The query parameters; a parameter without a default is required if there is no body."""
        fields = [one for one in self._fields if one[0].is_option or not is_body]
        found = [self._parameter(one, told, is_body=is_body) for one, told in fields]
        return found if is_body or not self._signature.is_open else [*self._queried(), *found]

    def body(self) -> dict[str, Any] | None:
        """The body of a POST; None if the function takes no body."""
        content = self._content()
        if not content:
            return None
        needed = self._signature.is_open or any(one.needs_value for one, _ in self._fields)
        made: dict[str, Any] = {"required": True} if needed else {}
        if any(one.is_option for one, _ in self._fields):
            made["description"] = "What has a default may be given here or in the query, not in both."
        return {**made, "content": content}

    def _parameter(self, one: Field, told: DescribedInput, *, is_body: bool) -> dict[str, Any]:
        schema = dict(self._each[one.name])
        made: dict[str, Any] = {"name": one.name, "in": "query"}
        if one.needs_value and not is_body:
            made["required"] = True
        if words := schema.pop("description", ""):
            made["description"] = words
        if is_body:
            # A client that sends defaults would give the parameter twice, in the body and in the query, which is
            # refused.
            schema.pop("default", None)
        if bytes_like(told.stream.type) is not None and schema.get("contentEncoding"):
            schema = {"type": "string"}
        if one.is_json and not (one.is_list and _is_flat(schema)):
            return {**made, "content": {_JSON: {"schema": schema}}}
        if told.is_stream and not one.is_value:
            schema = {"type": "array", "items": schema}
        return {**made, "schema": schema}

    def _content(self) -> dict[str, Any]:
        signature = self._signature
        if signature.is_open:
            return self._several()
        if not self._fields:
            return {} if signature.more is None else {_JSON: {"schema": {"type": "object", **self._more()}}}
        first, told = self._fields[0]
        is_alone = not any(one.needs_value for one, _ in self._fields[1:])
        content: dict[str, Any] = {}
        if json := self._json(first, told, is_alone=is_alone):
            content[_JSON] = json
        if is_alone:
            for media_type in told.media_types:
                content.setdefault(media_type, {"schema": self._whole(media_type, told)})
        if self._is_spread(first) and any(_is_bytes(one) for _, one in self._fields):
            # A form is always accepted, but shown only if a JSON object cannot give all values: generators choose the
            # media type by the class of the body, and openapi-python-client 0.29 generates wrong code if there are
            # several.
            content[_PARTS] = {"schema": self._object("form", FILE)}
        if signature.more is None and (lines := self._item()) is not None:
            content[LINES] = items(lines, "A JSON value on each line, for one input after the other.")
        return content

    def _json(self, first: Field, told: DescribedInput, *, is_alone: bool) -> dict[str, Any] | None:
        """Describe a JSON body: an object with the parameters' names, or the value of the first parameter."""
        several = self._object("input", None) if self._is_spread(first) else None
        choices = [several] if several is not None else []
        choices += [_bare(self._each[first.name])] if is_alone and _JSON in told.media_types else []
        if not choices:
            return None
        made: dict[str, Any] = {"schema": choices[0] if len(choices) == 1 else {"anyOf": choices}}
        shown: dict[str, Any] = {}
        for example in examples_of(self._function):
            values = {name: self._shown(name, value) for name, value in example.values.items()}
            value = values if several is not None else values.get(first.name)
            shown[f"example{len(shown) + 1}"] = {"summary": example.text, "value": value}
        return {**made, "examples": shown} if shown else made

    def _shown(self, name: str, value: Any) -> Any:
        """The value of an example; for a stream, its first item."""
        is_stream = any(one.name == name and told.is_stream for one, told in self._fields)
        return value[0] if is_stream and isinstance(value, list) and value else value

    def _is_spread(self, first: Field) -> bool:
        """Whether an object or a form may give values to parameters by their names."""
        is_whole = first.takes_object and len(self._signature.inputs) < 2
        return not is_whole or (len(self._fields) > 1 and first.keys is not None)

    def _object(self, what: str, of_bytes: Schema | None) -> Schema | None:
        """The schema of an object with a member for each parameter; None if it cannot give a required parameter.

        Args:
            what: The last part of the definition's name.
            of_bytes: The schema of members that are bytes; None: an object cannot contain bytes.
        """
        each: dict[str, Schema] = {}
        for one, told in self._fields:
            if not _is_bytes(told):
                each[one.name] = self._each[one.name]
            elif of_bytes is not None:
                each[one.name] = {**of_bytes, **_words(self._each[one.name])}
            elif one.needs_value:
                return None
        required = [one.name for one, _ in self._fields if one.needs_value and one.name in each]
        made: Schema = {"type": "object", "properties": each} | ({"required": required} if required else {})
        return self._schemas.add(f"{self._name}_{what}", {**made, **self._more()})

    def _more(self) -> Schema:
        """The schema of members with other names: none are allowed, or ``**kwargs`` takes them."""
        if self._signature.more is None:
            return {"additionalProperties": False}
        last = self._function.spec.call.parameters[-1].stream
        schema = {} if last is None else self._schemas.of(last.type, last.constraints)
        return {"additionalProperties": schema} if schema else {}

    def _several(self) -> dict[str, Any]:
        """The bodies for a function of any number of inputs: parts, an object, or the first input's value."""
        inputs, content = self._inputs(), dict[str, Any]()
        choices = [self._named()] if self._signature.opens_fields and inputs else []
        if len(inputs) == 1:
            schema = inputs[0].shared_schema(self._schemas)
            choices += [_bare(schema)] if _JSON in inputs[0].media_types else []
            for media_type in inputs[0].media_types:
                content[media_type] = {"schema": self._whole(media_type, inputs[0])}
        if choices:
            content[_JSON] = {"schema": choices[0] if len(choices) == 1 else {"anyOf": choices}}
        return {**content, _PARTS: {"schema": {"type": "object"}}}

    def _inputs(self) -> list[DescribedInput]:
        """The inputs of a function that takes any number of them; the last one stands for all further ones."""
        return [one for one in self._function.inputs if not one.is_trigger and not one.is_option]

    def _named(self) -> Schema:
        """The schema of an object with a member for each input; the last member is a list of values (H-210)."""
        *fixed, last = self._inputs()
        each = {one.name: one.shared_schema(self._schemas) for one in fixed}
        items = last.shared_schema(self._schemas)
        each[last.name] = {"type": "array", "items": items} if self._signature.opens_values else items
        required = list(each)
        each |= {one.name: self._each[one.name] for one, told in self._fields if not _is_bytes(told)}
        made = {"type": "object", "properties": each, "required": required}
        return self._schemas.add(f"{self._name}_input", {**made, **self._more()})

    def _queried(self) -> list[dict[str, Any]]:
        """The query parameters for these inputs; the last one may be repeated."""
        inputs = self._inputs()
        if not inputs:
            return []
        *fixed, last = inputs
        found: list[dict[str, Any]] = [
            {"name": one.name, "in": "query", "required": True, "schema": one.shared_schema(self._schemas)}
            for one in fixed
        ]
        schema = {"type": "array", "items": last.shared_schema(self._schemas)}
        return [*found, {"name": last.name, "in": "query", "schema": schema}]

    def _whole(self, media_type: str, told: DescribedInput) -> Schema:
        """The schema of a body that is the value of the first parameter."""
        if _is_bytes(told) or media_type not in (_JSON, _TEXT):
            return dict(FILE) if media_type == _OCTETS else {"type": "string", "format": "binary"}
        schema = told.shared_schema(self._schemas)
        return {"type": "string"} if media_type == _TEXT and not _is_flat(schema) else _bare(schema)

    def _item(self) -> Schema | None:
        """The schema of one line of an NDJSON body; None if an input takes bytes, which a line cannot hold."""
        free = self._fields[: max(len(self._signature.inputs), 1)]
        if any(_is_bytes(told) for _, told in free):
            return None
        if len(free) == 1:
            return _bare(self._each[free[0][0].name])
        each = {one.name: self._each[one.name] for one, told in self._fields if not _is_bytes(told)}
        return {"type": "object", "properties": each, "minProperties": 1, "additionalProperties": False}


def _is_bytes(told: DescribedInput) -> bool:
    """Whether values are raw bytes, which JSON cannot represent."""
    kinds = [one for one in members(told.stream.type) if one is not type(None)]
    return bool(kinds) and all(bytes_like(one) is not None for one in kinds)


def _is_flat(schema: Schema) -> bool:
    """Whether a value, or each item of a list, can be written as one text in a query."""
    inner = schema.get("items", schema)
    several = inner.get("anyOf", [inner]) if isinstance(inner, dict) else [{}]
    return all(one.get("type") in ("string", "integer", "number", "boolean", "null") for one in several)


def _bare(schema: Schema) -> Schema:
    """The schema without its default, which means nothing for a body that is sent."""
    return {name: value for name, value in schema.items() if name != "default"}


def _words(schema: Schema) -> Schema:
    return {"description": schema["description"]} if "description" in schema else {}
