"""Inputs and outputs of one invocation, and the budget that its inputs share.

Theory. An input is a queue of undecoded messages in arrival order, and a fact about its end:

======== ======================================= =======================================
state    means                                   left by
======== ======================================= =======================================
open     more may come                           ``end()`` or ``fail()``
ended    no more will come; the queue still may  nothing
         be taken
failed   the stream ended with an error; what    nothing
         is queued is dropped, readers see it
======== ======================================= =======================================

All inputs of an invocation share one `Budget`, since they share one wire stream: a queue of its own for each would
dead-lock a function that reads input 1 to its end before input 0. At the high-water mark the driver stops reading,
*unless* a reader waits on an empty input (the starvation rule, R-129); at the hard cap the invocation fails (R-130).

Nothing here waits and nothing here locks: whoever owns the invocation calls from one thread at a time.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any

from invoker.author.spec import IGNORED, StreamSpec, Take
from invoker.codecs import Offer, Registry
from invoker.codecs.open import open_decoder
from invoker.codecs.promised import check_promise
from invoker.codecs.shaped import fitted_output
from invoker.codecs.text import TextCodec
from invoker.core.budget import Budget, Limits
from invoker.errors import EncodeError, InputCancelled, InvocationError, ProtocolViolation, UnsupportedMediaType
from invoker.mediatypes import MediaType, parse, rank
from invoker.message import EMPTY, REFERENCE, Message, Ref
from invoker.wording import Place

__all__ = ["Budget", "InputStream", "Limits", "OutputStream", "SingleInput"]

_MOST_DECODERS = 64
"""A peer that invents parameters for each frame must not fill the memory (R-011)."""

Decode = Callable[[Message[bytes]], Any]
Encode = Callable[[Any], Message[bytes]]


class InputStream:
    """One input: undecoded messages in arrival order, then an end or an error.

    Attributes:
        waiters: How many readers wait on this input because it was empty; kept by the driver.
    """

    __slots__ = (
        "_decoders", "_is_open", "_registry", "budget", "error", "fed", "index", "is_ended", "queue", "spec", "waiters",
    )  # fmt: skip

    def __init__(
        self, index: int, spec: StreamSpec, registry: Registry, budget: Budget, *, is_open: bool = False
    ) -> None:
        self.index = index
        self.spec = spec
        self.budget = budget
        self.queue: deque[tuple[Decode, Message[bytes]]] = deque()
        self.is_ended = False
        self.error: InvocationError | None = None
        self.waiters = 0
        self.fed = 0
        self._registry = registry
        self._is_open = is_open  # to media types without a codec
        self._decoders: dict[str, Decode] = {}

    def feed(self, message: Message[bytes]) -> None:
        """Queue one message; its media type is checked now, its payload decoded when it is taken.

        Raises:
            UnsupportedMediaType: No codec decodes its media type.
            LimitExceeded: The hard cap is reached.

        Source: riff streaming specification, "InputFrame" 1, 2 and ordering (R-060, R-063, R-065).
        """
        decode = self._decoders.get(message.media_type)
        if decode is None:
            decode = self._decoder(message.media_type)
            if len(self._decoders) < _MOST_DECODERS:
                self._decoders[message.media_type] = decode
        self.budget.add(len(message.payload))
        self.fed += 1
        self.queue.append((decode, message))

    def _decoder(self, media_type: str) -> Decode:
        if self.spec.type is IGNORED:
            return _nothing  # nobody reads the payload, so any will do
        try:
            return self._registry.decoder(media_type, self.spec.type, index=self.index, name=self.spec.name)
        except UnsupportedMediaType as error:
            if not self._is_open:
                raise
            type_ = Any if self.spec.take is Take.MESSAGE else self.spec.type  # a Message takes whatever comes (E-047)
            return open_decoder(media_type, type_, index=self.index, error=error)

    def take(self) -> tuple[Decode, Message[bytes]] | None:
        """Take the oldest message with its decoder, or None when none is here.

        After None, ``is_ended`` tells an end from a wait.

        Raises:
            InputCancelled: The stream of inputs ended with an error (R-110).
        """
        if self.queue:
            item = self.queue.popleft()
            budget = self.budget
            budget.frames -= 1
            budget.bytes -= len(item[1].payload)
            if budget.is_charged:
                budget.shrink()
            return item
        if self.error is not None:
            raise InputCancelled(self.error)
        return None

    def end(self) -> None:
        """No more messages will come. Idempotent, and nothing after an error."""
        self.is_ended = True

    def fail(self, error: InvocationError) -> None:
        """The stream ended with an error: drop what is queued, readers see the error. The first error stays."""
        if self.error is not None or (self.is_ended and not self.queue):
            return
        self.error = error
        self.is_ended = True
        self.drop()

    def drop(self) -> None:
        """Release what is queued and its share of the budget."""
        for _, message in self.queue:
            self.budget.frames -= 1
            self.budget.bytes -= len(message.payload)
        self.queue.clear()

    @property
    def place(self) -> Place:
        """For errors."""
        return Place("input", self.index, self.spec.name)


class SingleInput(InputStream):
    """An input that is one value for the whole call: a second frame is refused, never dropped (R-167, R-168)."""

    __slots__ = ()

    def feed(self, message: Message[bytes]) -> None:
        """Queue the one message.

        Raises:
            ProtocolViolation: It is not the first one, or the function has begun without it.
            UnsupportedMediaType: No codec decodes its media type.
            LimitExceeded: The hard cap is reached.
        """
        if self.fed:
            raise ProtocolViolation(": expected 1 frame, got 2 or more", place=self.place)
        super().feed(message)


class OutputStream:
    """One output: encodes values as its peer accepts them, and knows whether it has ended."""

    __slots__ = (
        *("_accept", "_by_value", "_encoders", "_is_checked", "_offers", "_registry", "_type"),
        *("emitted", "index", "is_ended", "name"),
    )

    is_wanted = True

    def __init__(
        self,
        index: int,
        name: str,
        accept: str,
        registry: Registry,
        *,
        by_value: bool = False,
        type_: Any = Any,
        is_checked: bool = True,
    ) -> None:
        """Negotiate.

        Args:
            index: Of the output.
            name: For texts of errors.
            accept: What its peer accepts.
            registry: Codecs.
            by_value: Text and bytes get the media types of their kind (E-104), since the peer has no preference.
            type_: What its values have to be, or to become if the function casts them.
            is_checked: Whether values of other classes and shapes are refused.

        Raises:
            NotAcceptable: No codec satisfies ``accept`` (R-100).
        """
        self.index = index
        self.name = name
        self.is_ended = False
        self.emitted = 0
        self._accept = accept
        self._registry = registry
        self._by_value = by_value
        self._type = type_
        self._is_checked = is_checked
        self._offers: tuple[Offer, ...] = registry.offers(accept, index=index, name=name)
        self._encoders: dict[type, Encode] = {}

    def encode(self, value: Any) -> Message[bytes]:
        """Serialise one value in the best accepted media type that can carry it.

        Args:
            value: A bare value, or a `Message` whose headers are copied and whose media type, if any, is obeyed.

        Raises:
            EncodeError: The value is not what the function declares, no accepted codec takes it, or a header is not
                fit for the wire.

        Source: riff streaming specification, "OutputFrame" 1, 3, 4, 6 (R-099, R-104, R-107).
        """
        if type(value) is Message:
            return self._encode_message(value)
        encode = self._encoders.get(type(value))
        if encode is None:
            if type(value) is Ref:
                return _reference(value, self.index)
            offers = self._offers_by_value(value) if self._by_value else self._offers
            encode = self._encoder(offers, value)
            self._encoders[type(value)] = encode
        return encode(value)

    def _encoder(self, offers: tuple[Offer, ...], value: Any) -> Encode:
        """A closure that encodes values of this value's class, which is compared with what is declared here."""
        if self._type is Any or type(value) is self._type:
            return self._registry.encoder(offers, value, index=self.index)
        where = Place("output", self.index, self.name)
        if self._is_checked:
            check_promise(self._type, value, where)
        encode = self._registry.encoder(offers, value, index=self.index)
        return fitted_output(encode, self._type, where, is_checked=self._is_checked)

    def _offers_by_value(self, value: Any) -> tuple[Offer, ...]:
        kind = "text/plain" if isinstance(value, str) else "application/octet-stream"
        if not isinstance(value, (str, bytes, bytearray, memoryview)):
            return self._offers
        return tuple(sorted(self._offers, key=lambda one: one.media_type.essence != kind))

    def _encode_message(self, message: Message[Any]) -> Message[bytes]:
        headers = wire_headers(message.headers, self.index) if message.headers else EMPTY
        if type(message.payload) is Ref:
            encoded = _reference(message.payload, self.index)
            return Message(b"", {**headers, **encoded.headers}, encoded.media_type)
        if message.media_type:
            encoded = self._encode_as(message.payload, message.media_type)
        elif type(message.payload) is Message:
            raise EncodeError(
                " was given a Message within a Message; yield the inner one", place=Place("output", self.index)
            )
        else:
            encoded = self.encode(message.payload)
        return Message(encoded.payload, headers, encoded.media_type) if headers else encoded

    def _encode_as(self, payload: Any, media_type: str) -> Message[bytes]:
        """Obey the media type that the function chose, if the peer accepts it.

        Bytes that no codec takes are already encoded by the function. R-098: what leaves is concrete and has no ``q``.
        """
        try:
            chosen = parse(media_type)
        except (ValueError, TypeError, AttributeError) as error:
            was = f" was given {media_type!a}, which is no media type: {error}"
            raise EncodeError(was, place=Place("output", self.index)) from None
        offers = tuple(offer for offer in self._offers if offer.media_type.essence == chosen.essence)
        if not offers and self._by_value and chosen.type == "text" and not chosen.is_wildcard:
            offers = _text_offers(chosen)  # E-104: any text may be said to be of its own kind
        is_raw = isinstance(payload, (bytes, bytearray, memoryview))
        try:
            if offers:
                return self._encoder(offers, payload)(payload)
        except EncodeError:
            if not is_raw:
                raise
        if is_raw and not chosen.is_wildcard and rank(self._accept or "*/*", [chosen.essence]):
            params = tuple((name, value) for name, value in chosen.params if name != "q")
            return Message(bytes(payload), EMPTY, str(MediaType(chosen.type, chosen.subtype, params)))
        raise EncodeError(
            f" was given {media_type!a}, but the caller accepts {self._accept or '*/*'!r}"
            + ("" if is_raw else f", and no codec makes it of {type(payload).__name__}"),
            place=Place("output", self.index),
        )


@functools.lru_cache(maxsize=64)
def _text_offers(media_type: MediaType) -> tuple[Offer, ...]:
    return (Offer(TextCodec((media_type.essence,)), media_type),)  # the same each time, as encoders are found by it


def _nothing(_: Message[bytes]) -> None:
    return None


def _reference(value: Ref, index: int) -> Message[bytes]:
    """A message whose content lies elsewhere.

    Raises:
        EncodeError: Its media type is none, or its URI not fit for the wire.
    """
    try:
        media_type = parse(value.media_type)
    except (ValueError, TypeError, AttributeError) as error:
        was = f" was given a Ref of type {value.media_type!a}: {error}"
        raise EncodeError(was, place=Place("output", index)) from None
    return Message(b"", wire_headers({REFERENCE: value.uri}, index), str(media_type))


def wire_headers(headers: Any, index: int) -> dict[str, str]:
    """Make headers fit for the wire: text names and values, the first of several values (R-107, R-108).

    Raises:
        EncodeError: A name is empty, or a name or value is not valid Unicode.
    """
    made: dict[str, str] = {}
    for key, given in headers.items():
        first = given
        if isinstance(given, (list, tuple)):
            first = given[0] if given else ""
        name, value = str(key), str(first)
        if not name:
            raise EncodeError(" has a header without a name", place=Place("output", index))
        try:
            name.encode()
            value.encode()
        except UnicodeEncodeError:
            has = f" has a header {name!a} that is not valid Unicode"
            raise EncodeError(has, place=Place("output", index)) from None
        made[name] = value
    return made
