"""`FieldCodec`: decodes the fields of requests, and encodes those of responses, beside the bodies of functions.

Theory. A typed request is cut into its fields outside, without looking into them; each field is the payload of one
input, in the private media type of `invoker.protocols.typed.calls`, which says whose field it is. This codec parses it
with protobuf's own parser and makes the value from that, once. The payload of an output is the response with one field
set, which needs nothing more to be sent; several are joined by putting them behind each other (protobuf encoding, "Last
One Wins").

`Book` knows the messages. It is made when the first payload or the first question of reflection comes, since few
servers are called in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from invoker.author.spec import FunctionSpec
from invoker.codecs.interface import Decode, Encode, Offer, Specialised, refusing
from invoker.codecs.refusal import refuse_decode, refuse_encode
from invoker.mediatypes import MediaType
from invoker.message import EMPTY, Message
from invoker.protocols.typed.calls import JSON, PROTO
from invoker.wording import Place

if TYPE_CHECKING:
    from invoker.protocols.typed.kinds import FieldDef, MessageDef
    from invoker.protocols.typed.reading import Readers
    from invoker.protocols.typed.schema import Schema
    from invoker.protocols.typed.writing import Writers

__all__ = ["Book", "FieldCodec", "Page"]


class Page:
    """The messages of one function.

    Args:
        schema: Of its package.
        request: Its definition.
        response: Likewise.
        find: Gives the class of a message, by its full name.
        readers: Of the schema.
        writers: Of the schema.
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
        self.request = find(f"{schema.package}.{request.name}")
        self.response = find(f"{schema.package}.{response.name}")
        self.inputs: dict[int, FieldDef] = {one.number: one for one in request.fields}
        self.outputs: dict[int, FieldDef] = {one.number: one for one in response.fields}
        self.readers = readers
        self.writers = writers

    @staticmethod
    def is_nullable(field: FieldDef) -> bool:
        """Whether None leaves the field of a response out."""
        from invoker.protocols.typed.kinds import OptionalKind, UnionKind

        return isinstance(field.kind, (OptionalKind, UnionKind))


class Book:
    """The messages of all functions.

    Args:
        specs: Gives the functions.
    """

    def __init__(self, specs: Callable[[], Iterable[FunctionSpec]]) -> None:
        self._specs = specs

    @cached_property
    def schemas(self) -> tuple[Schema, ...]:
        """The files."""
        from invoker.protocols.typed.schema import schemas_of

        return schemas_of(self._specs())

    @cached_property
    def files(self) -> tuple[bytes, ...]:
        """Their serialised descriptors, each behind those it imports."""
        from invoker.protocols.typed.descriptors import files_of

        return files_of(self.schemas)

    @cached_property
    def pages(self) -> dict[str, Page]:
        """By the name of the function."""
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


class FieldCodec(Specialised):
    """Fields of typed requests and responses; no wildcard means them.

    Args:
        book: Knows the messages.
    """

    media_types = (PROTO, JSON)
    honours = ("*",)
    by_name_only = True

    def __init__(self, book: Book) -> None:
        super().__init__()
        self._book = book

    def accepts(self, media_type: MediaType) -> bool:
        """Whether it says whose field it is."""
        return bool(media_type.param("of") and media_type.param("out"))

    def decoder(self, media_type: MediaType, type_: Any, where: Place) -> Decode:
        """A closure that makes ``type_`` of the field that the media type names."""
        page, number = self._page(media_type, "in")
        field = None if page is None else page.inputs.get(number)
        if page is None or field is None:
            return refusing(refuse_decode("no function has such a field", where, media_type.essence))
        is_element = media_type.param("each") is not None
        parse: Callable[[bytes], Any] = page.request.FromString
        if media_type.essence == JSON:
            parse = partial(_parse_json, page.request, field.name, is_element=is_element)
        try:
            get = self._getter(page, field, is_element=is_element)
        except (TypeError, ValueError, RuntimeError) as error:
            return refusing(refuse_decode(error, where, "protobuf", type_))

        def decode(message: Message[bytes]) -> Any:
            try:
                return get(parse(message.payload))
            except BaseException as error:
                raise refuse_decode(error, where, "protobuf", type_) from error

        return decode

    def encoder(self, offer: Offer, cls: type, where: Place) -> Encode | None:
        """A closure that makes a response of a value."""
        page, number = self._page(offer.media_type, "out")
        if page is None:
            return None
        name, response, field = str(offer.media_type), page.response, page.outputs.get(number)
        serialise: Callable[[Any], bytes] = response.SerializeToString
        if offer.media_type.essence == JSON:
            serialise = partial(_write_json, is_whole=len(page.outputs) == 1)
        if field is None:  # None has no field
            return lambda _: Message(serialise(response()), EMPTY, name)
        write, own, is_nullable = page.writers.write(field.kind), field.name, page.is_nullable(field)

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

    def _getter(self, page: Page, field: FieldDef, *, is_element: bool) -> Callable[[Any], Any]:
        if not is_element:
            return page.readers.get(field)
        item, name = page.readers.read(field.kind.item), field.name  # type: ignore[union-attr]  # a list has elements
        return lambda message: item(getattr(message, name)[0])


def _own(find: Callable[[str], Any], package: str, name: str) -> Any:
    return find(name if name.startswith("google.") else f"{package}.{name}")


def _parse_json(cls: Any, field: str, payload: bytes, *, is_element: bool) -> Any:
    from google.protobuf import json_format

    if not payload:
        return cls()
    text = (b'{"%b":[%b]}' if is_element else b'{"%b":%b}') % (field.encode(), payload)
    try:
        return json_format.Parse(text, cls(), ignore_unknown_fields=True)
    except json_format.ParseError as error:
        raise ValueError(str(error)) from None


def _write_json(message: Any, *, is_whole: bool) -> bytes:
    from google.protobuf import json_format

    shown = json_format.MessageToJson(message, indent=None, always_print_fields_with_no_presence=is_whole)
    return shown.encode()
