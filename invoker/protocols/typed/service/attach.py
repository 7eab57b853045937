"""`TypedService`: serves each function as a typed gRPC method, whose messages are made from its signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from invoker.attach.declared import Verb
from invoker.attach.service import Service

if TYPE_CHECKING:
    from invoker.protocols.typed.calls import Call
    from invoker.protocols.typed.codec import Book
    from invoker.settings import Config
    from invoker.transports.grpc.methods import Method
    from invoker.transports.http.app import Handler


class TypedService(Service):
    """Serves functions as methods of typed services.

    Only the names of the methods are made at the start; the messages are made for the first call, or for reflection.
    """

    name = "typed"
    on_grpc = True
    on_http = True
    child_codecs = "invoker.protocols.typed.codec:register"
    verbs = (
        Verb(
            "proto", "ENTRYPOINT", "print a .proto file of the signatures, for generated clients",
            "Print a .proto file of the signatures of functions, for generated clients of any language.",
            "invoker.protocols.typed.verbs.proto",
        ),
    )  # fmt: skip
    _is_registered = False
    _handlers: Mapping[str, Handler] = MappingProxyType({})

    @classmethod
    def unfit(cls, config: Config) -> str:
        """Why functions cannot be served: a reload for each invocation makes classes that the messages do not know."""
        return "--reload-per-invocation makes new classes for each call" if config.reload_per_invocation else ""

    def grpc_methods(self) -> Sequence[Method]:
        """A typed gRPC method for each function."""
        from invoker.protocols.typed.session import TypedSession
        from invoker.transports.grpc.methods import CallMethod

        self._register()
        return tuple(
            CallMethod(one.service, one.method, partial(TypedSession, one), takes_one=not one.streams_in)
            for one in self._calls
        )

    async def start(self) -> None:
        """Make the handlers of Connect and gRPC-Web, if HTTP is served."""
        config, driver = self.around.config, self.around.driver
        if not config.http:
            return
        from invoker.protocols.typed.service.web import MethodHandler

        self._register()
        make = partial(
            MethodHandler,
            driver=driver,
            most_bytes=min(config.max_message_bytes, driver.engine.limits.hard_bytes),
            settle_s=config.settle_s,
            timeout_s=config.http_timeout_s or None,
        )
        self._handlers = {one.path: make(one) for one in self._calls}

    def http_handler(self, path: str) -> Handler | None:
        """The handler of a method's path, for Connect and gRPC-Web."""
        return self._handlers.get(path)

    def files(self) -> Sequence[bytes]:
        """The descriptors of the functions' messages."""
        return self._book.files

    @cached_property
    def _calls(self) -> tuple[Call, ...]:
        from invoker.protocols.typed.calls import calls_of

        return calls_of(one.spec for one in self.around.driver.engine.catalog)

    @cached_property
    def _book(self) -> Book:
        from invoker.protocols.typed.codec import Book

        catalog = self.around.driver.engine.catalog
        return Book(lambda: (one.spec for one in catalog))

    def _register(self) -> None:
        """Add a `FieldCodec` to the codecs of all functions, unless that is done."""
        from invoker.protocols.typed.codec import FieldCodec

        if self._is_registered:
            return
        self._is_registered = True
        codec = FieldCodec(self._book)
        codec.max_containers = self.around.config.max_containers
        self.around.driver.engine.registry.register(codec, first=False)
