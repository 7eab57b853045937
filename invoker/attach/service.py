"""`Service`: how a protocol is attached to the transports. A subclass and its row in `invoker.server.table` do it.

The module of a subclass is loaded in every process that reads its settings, whether its protocol is served or not. It
therefore imports the protocol and the transports only inside the methods that need them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from invoker.attach.declared import EntryFile, Listing, Verb
    from invoker.author.prepare import Prepared
    from invoker.author.spec import FunctionSpec
    from invoker.execution.driver import Driver
    from invoker.settings import Config
    from invoker.telemetry.board import Numbers
    from invoker.telemetry.metrics import Families
    from invoker.transports.grpc.methods import Method
    from invoker.transports.http.app import Handler, SocketHandler
    from invoker.transports.tls import TlsFiles

IsReady: TypeAlias = Callable[[], Awaitable[bool]]
"""Returns whether this process should get traffic."""

Note: TypeAlias = Callable[[str, str, dict[str, Any]], None]
"""Writes a log record: takes the name of the logger, the text, and ``extra``."""


class Address(NamedTuple):
    """The address at which a service's own socket listens.

    Attributes:
        transport: The name of the transport in the ready line.
        text: ``host:port``, or the path of a Unix socket.
        port: The TCP port; 0 for a Unix socket.
    """

    transport: str
    text: str
    port: int = 0


class Port(NamedTuple):
    """A TCP port that only one service uses, before anything listens on it.

    Attributes:
        host: Name or address.
        number: 0 takes a free one.
        transport: The transport that listens there.
        setting: The setting that gives the port, for errors.
    """

    host: str
    number: int
    transport: str
    setting: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The objects of its process that a service may use.

    Attributes:
        config: Every setting.
        driver: Runs the conversations.
        actions: A dict from names of actions to names of functions.
        is_ready: Whether this process should get traffic.
        numbers: Returns the counts of the process.
        note: Takes a log record that may be written a little later; None: the service logs it itself.
        tls: The TLS settings for the service's own sockets; None: they speak plain text.
        share_port: Whether other processes may bind the same ports.
        is_asked: Whether INVOKER_PROTOCOLS is set; otherwise the default services are served.
        http_address: ``host:port`` of the HTTP transport; empty before it is open, None where there is none.
        files: Returns the results of `Service.files` of all services.
        spoken: Returns the names of the protocols that are served on open transports, each with an address.
        hides: Whether another handler answers the HTTP path that a function of this name would have.
        is_lame: Whether the process announces that it is about to stop while it still takes calls.
        families: Returns the results of `Service.families` of all services.
    """

    config: Config
    driver: Driver
    actions: Mapping[str, str]
    is_ready: IsReady
    numbers: Callable[[], Numbers]
    note: Note | None = None
    tls: TlsFiles | None = None
    share_port: bool = False
    is_asked: bool = True
    http_address: Callable[[], str | None] = lambda: None
    files: Callable[[], Sequence[bytes]] = lambda: ()
    spoken: Callable[[], tuple[tuple[str, str], ...]] = tuple
    hides: Callable[[str], bool] = lambda _: False
    is_lame: Callable[[], bool] = lambda: False
    families: Callable[[], Sequence[Families]] = tuple


class Service:
    """One protocol in one process. Every method has a default, for protocols that do not need it.

    Args:
        around: The objects of its process that the service may use.

    Attributes:
        name: The name as INVOKER_PROTOCOLS says it.
        settings: A frozen dataclass of its own settings (see `settings.setting`), which ``config.of(settings)`` gives;
            None: it has none.
        is_default: Whether it is served if INVOKER_PROTOCOLS is not set.
        needs: The settings that the service needs, for the error text if it is chosen without them.
        on_grpc: Whether it has methods for the gRPC transport.
        on_http: Whether it answers paths of the HTTP transport.
        on_loop: Whether its conversations run on the event loop even where all functions are sync.
        gives_arrays: Whether functions without annotations may be given arrays.
        shares_state: Whether its calls share data through the store, so that several workers need one store.
        interface: The version of the interface that it was written for, `invoker.attach.declared.INTERFACE`; a service
            of another distribution has to set it.
        host_settings: Names of its settings that an ASGI application does not take, since ports and processes are its
            host's.
        verbs: Commands of the command line.
        entry_file: A kind of file that may be given in place of an entrypoint.
        listing: A further view of functions, for ``inspect``.
        inspection: A module with ``described(spec)``, which gives members for ``inspect --json``, and ``rows(spec)``,
            which gives pairs of a label and a text for readers; empty: ``inspect`` shows nothing of this protocol.
        child_codecs: A function, as "module:name", that registers the protocol's codecs in a child process for isolated
            functions: it takes the registry, a function that gives the specs of the functions, and ``max_containers=``.
    """

    name: ClassVar[str]
    settings: ClassVar[type | None] = None
    is_default: ClassVar[bool] = True
    needs: ClassVar[str] = ""
    on_grpc: ClassVar[bool] = False
    on_http: ClassVar[bool] = False
    on_loop: ClassVar[bool] = False
    gives_arrays: ClassVar[bool] = False
    shares_state: ClassVar[bool] = False
    interface: ClassVar[int] = 0
    host_settings: ClassVar[tuple[str, ...]] = ()
    verbs: ClassVar[tuple[Verb, ...]] = ()
    entry_file: ClassVar[EntryFile | None] = None
    listing: ClassVar[Listing | None] = None
    inspection: ClassVar[str] = ""
    child_codecs: ClassVar[str] = ""

    def __init__(self, around: Surroundings) -> None:
        self.around = around

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:  # noqa: ARG003 - services on HTTP use it
        """Whether the service is served.

        Args:
            config: Every setting.
            is_chosen: Whether INVOKER_PROTOCOLS has it.
            has_http: Whether there is an HTTP transport.

        Raises:
            ConfigError: The settings contradict each other.
        """
        return is_chosen

    @classmethod
    def unfit(cls, config: Config) -> str:  # noqa: ARG003 - services that are not always fit use it
        """The reason why the service must not be served with this configuration; empty if it may be served.

        Where INVOKER_PROTOCOLS asks for it, that is an error; otherwise it is left out, and the log says so.
        """
        return ""

    @classmethod
    def ports(cls, config: Config) -> Sequence[Port]:  # noqa: ARG003 - services with ports use it
        """The TCP ports of its own sockets; a supervisor reserves them for its workers."""
        return ()

    @classmethod
    def add_functions(
        cls,
        config: Config,  # noqa: ARG003 - services that add functions use it
        found: tuple[Prepared, ...],
    ) -> tuple[tuple[Prepared, ...], Mapping[str, str]]:
        """Add the functions that the service's settings name to the functions that are served.

        Returns:
            All functions, and the names of functions by the names of their actions.

        Raises:
            StartupError: A function cannot be loaded, understood or served.
        """
        return found, {}

    def grpc_methods(self) -> Sequence[Method]:
        """The methods that the gRPC transport serves for this service.

        Raises:
            ConfigError: The service cannot be provided with its settings.
        """
        return ()

    def add_servicers(self, server: Any, names: Sequence[str]) -> None:
        """Add generated servicers to the gRPC transport, for calls that are not conversations.

        Args:
            server: A grpc.aio server, or an object with the same methods for adding servicers.
            names: The names of the gRPC services that the transport's methods belong to.
        """

    def files(self) -> Sequence[bytes]:
        """Serialised ``FileDescriptorProto`` for reflection, each one after the files that it imports.

        They describe gRPC services whose messages are not in protobuf's own pool. Asked once, when a caller needs it.
        """
        return ()

    def http_handler(self, path: str) -> Handler | None:  # noqa: ARG002 - services that answer paths use it
        """The handler for this path of the HTTP transport; None: the service does not claim the path."""
        return None

    def http_over(self, path: str, below: Handler) -> Handler:  # noqa: ARG002 - as `http_handler`
        """A handler in front of ``below``, the handler for this path, to which it may pass requests on."""
        return below

    def socket_handler(self, path: str) -> SocketHandler | None:  # noqa: ARG002 - as `http_handler`
        """The handler for WebSockets at this path of the HTTP transport; None: the service does not claim the path."""
        return None

    def numbers(self) -> Numbers | None:
        """The service's counts for ``/metrics``; None: the service has none."""
        return None

    def families(self, numbers: Numbers) -> Iterator[Any]:  # noqa: ARG002 - as `http_handler`
        """The Prometheus families of the service's counts, of this worker or of others."""
        return iter(())

    @property
    def addresses(self) -> Sequence[Address]:
        """The addresses of the service's own sockets, once it has started."""
        return ()

    @property
    def page(self) -> str:
        """Path of a page for people, once the transports are open; empty: the service has none."""
        return ""

    def sample(self, spec: FunctionSpec, address: str, *, is_one: bool) -> str:  # noqa: ARG002 - as `http_handler`
        """The arguments after ``python -m invoker`` that call a function; empty if the service has no such command.

        Args:
            spec: The spec of the function.
            address: The address of the gRPC transport.
            is_one: Whether there is no other function.
        """
        return ""

    async def start(self) -> None:
        """Check the service's settings and files, and open its own sockets.

        Raises:
            SpecError: A function cannot be served by this protocol.
            StartupError: An address cannot be bound.
        """

    async def refresh(self) -> None:
        """Notify watchers that the readiness of the process may have changed."""

    def leave(self) -> None:
        """Accept no more connections on the service's own sockets; open connections are served as before."""

    async def stop(self, grace_s: float) -> None:
        """Close the service's sockets; calls that still run have ``grace_s`` to end.

        Transports are closed already. Idempotent.
        """


def spoken_at(services: Sequence[Service], grpc_address: str, http_address: str) -> tuple[tuple[str, str], ...]:
    """The names of services that can be reached, each with an address.

    Args:
        services: The services of protocols.
        grpc_address: The address of the gRPC transport; empty while it is not open.
        http_address: The address of the HTTP transport; empty while it is not open.
    """
    found = []
    for one in services:
        own = [grpc_address] * one.on_grpc + [http_address] * one.on_http
        found += [(one.name, address) for address in (*own, *(each.text for each in one.addresses)) if address]
    return tuple(found)
