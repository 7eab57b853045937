"""`FieldCodec`: decodes the fields of requests, and encodes those of responses.

Theory. The session cuts a typed request into its fields without parsing them. Each field becomes the payload of one
input; its private media type (see `invoker.protocols.typed.calls`) names the function and the field. This codec parses
the payload with protobuf's parser and makes the value from the result. The payload of an output is a complete response
with one field set; several are joined by concatenation (protobuf encoding, "Last One Wins").

`Book` has the classes of all messages. They are made when the first payload, or the first request of reflection, comes,
since few servers get typed calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from invoker.author.spec import FunctionSpec
from invoker.codecs.containers import MOST_CONTAINERS, careful, json_exceeds
from invoker.codecs.costs import limit_on_loop
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, refusing
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.errors.wording import Place
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message
from invoker.protocols.typed.calls import JSON, PROTO

if TYPE_CHECKING:
    from invoker.codecs import Registry
    from invoker.protocols.typed.kinds import MessageDef
    from invoker.protocols.typed.reading import Get, Readers
    from invoker.protocols.typed.schema import Schema
    from invoker.protocols.typed.writing import Write, Writers

_LOOP_BYTES = 64 * 1024
"""Larger payloads are decoded off the event loop, since each ``google.protobuf.Value`` takes several Python calls. For
JSON, which takes more of them, the limit is a quarter."""


class Page:
    """The messages of one function, with the closures that read and write their fields.

    All closures are made here, before any thread can use one, since closures of recursive types are made step by step.

    Args:
        schema: The schema of the function's package.
        request: The definition of the request. response: The definition of the response.
        find: Returns the class of a message, by its full name.
        readers: The readers of the schema.
        writers: The writers of the schema.

    Attributes:
        request: The class of the request. response: The class of the response.
        inputs: For each field number, the name of the field and the reader that makes its value, or why there is no
            reader.
        outputs: For each field number, the name of the field, the writer that makes its content, and whether None
            leaves the field out.
    """

    def __init__(
        self,
        schema: Schema,
        request: MessageDef,
        response: MessageDef,
        find: Callable[[str], Any],
        readers: Readers,
        writers: Writers,
    ) -> None:
        from invoker.protocols.typed.kinds import OptionalKind, UnionKind

        self.request = find(f"{schema.package}.{request.name}")
        self.response = find(f"{schema.package}.{response.name}")
        self.inputs: dict[int, tuple[str, Get | Exception]] = {}
        for one in request.fields:
            try:
                self.inputs[one.number] = (one.name, readers.element(one) if one.is_split else readers.get(one))
            except (TypeError, ValueError, RuntimeError) as error:
                self.inputs[one.number] = (one.name, error)
        self.outputs: dict[int, tuple[str, Write, bool]] = {
            one.number: (one.name, writers.write(one.kind), isinstance(one.kind, (OptionalKind, UnionKind)))
            for one in response.fields
        }


class Book:
    """The messages of all functions.

    Args:
        specs: Returns the specs of the functions.
    """

    def __init__(self, specs: Callable[[], Iterable[FunctionSpec]]) -> None:
        self._specs = specs

    @cached_property
    def schemas(self) -> tuple[Schema, ...]:
        """The ``.proto`` files of the functions, which are made once."""
        from invoker.protocols.typed.schema import schemas_of

        return schemas_of(self._specs())

    @cached_property
    def files(self) -> tuple[bytes, ...]:
        """The serialised descriptors of the ``.proto`` files, each one after the files that it imports."""
        from invoker.protocols.typed.descriptors import files_of

        return files_of(self.schemas)

    @cached_property
    def pages(self) -> dict[str, Page]:
        """The readers and writers of each function's messages, by its name."""
        from invoker.protocols.typed.descriptors import Classes
        from invoker.protocols.typed.reading import Readers
        from invoker.protocols.typed.writing import Writers

        find = Classes(self.files).find
        made: dict[str, Page] = {}
        for schema in self.schemas:
            own = partial(_own, find, schema.package)
            readers, writers = Readers(), Writers(own)
            for rpc in schema.rpcs:
                made[rpc.call.spec.name] = Page(schema, rpc.request, rpc.response, find, readers, writers)
        return made


def register(
    registry: Registry, specs: Callable[[], Iterable[FunctionSpec]], *, max_containers: int = MOST_CONTAINERS
) -> None:
    """Add a `FieldCodec` for the functions' messages to the codecs of a child process."""
    codec = FieldCodec(Book(specs))
    codec.max_containers = max_containers
    registry.register(codec, first=False)


class FieldCodec(Specialised):
    """Codec for the fields of typed requests and responses; a wildcard in a media range does not select it.

    Args:
        book: The messages of the functions.
    """

    media_types = (PROTO, JSON)
    honours = ("*",)
    by_name_only = True

    def __init__(self, book: Book) -> None:
        super().__init__()
        self._book = book
        limit_on_loop((PROTO,), _LOOP_BYTES)
        limit_on_loop((JSON,), _LOOP_BYTES // 4)

    def accepts(self, media_type: MediaType) -> bool:
        """Whether the media type names a field of a response."""
        return bool(media_type.param("of") and media_type.param("out"))

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """Return a closure that makes a value of ``type_`` from the field that the media type names."""
        page, number = self._page(media_type, "in")
        if page is None or number not in page.inputs:
            return refusing(refuse_decode("no function has such a field", where, media_type.essence))
        name, get = page.inputs[number]
        if isinstance(get, Exception):
            return refusing(refuse_decode(get, where, "protobuf", type_))
        parse: Callable[[bytes], Any] = page.request.FromString
        if media_type.essence == JSON:
            from invoker.protocols.typed.parsing import AROUND, parse_json

            whole = partial(parse_json, page.request, name, AROUND[media_type.param("each") or ""])
            parse = careful(whole, json_exceeds, self.max_containers)

        def decode(message: Message[bytes]) -> Any:
            try:
                return get(parse(message.payload))
            except BaseException as error:
                raise refuse_decode(error, where, "protobuf", type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """Return a closure that makes a response from a value."""
        page, number = self._page(offer.media_type, "out")
        if page is None:
            return None
        name, response = str(offer.media_type), page.response
        serialise: Callable[[Any], bytes] = response.SerializeToString
        if offer.media_type.essence == JSON:
            serialise = partial(_write_json, is_whole=len(page.outputs) == 1)
        if number not in page.outputs:  # an output without a value has no field
            return lambda _: Message(serialise(response()), EMPTY, name)
        own, write, is_nullable = page.outputs[number]

        def encode(value: Any) -> Message[bytes]:
            try:
                if value is None and is_nullable:
                    return Message(serialise(response()), EMPTY, name)
                return Message(serialise(response(**{own: write(value)})), EMPTY, name)
            except BaseException as error:
                raise refuse_encode(error, where, "protobuf", cls) from error

        return encode

    def _page(self, media_type: MediaType, side: str) -> tuple[Page | None, int]:
        number = media_type.param(side) or ""
        page = self._book.pages.get(unquote(media_type.param("of") or ""))
        return (page, int(number)) if number.isdecimal() else (None, 0)


def _own(find: Callable[[str], Any], package: str, name: str) -> Any:
    return find(name if name.startswith("google.") else f"{package}.{name}")


def _write_json(message: Any, *, is_whole: bool) -> bytes:
    from google.protobuf import json_format

    shown = json_format.MessageToJson(message, indent=None, always_print_fields_with_no_presence=is_whole)
    return shown.encode()
