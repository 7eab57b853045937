"""`FederatedService`: attaches federated rounds to gRPC, and the downloads for devices to HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from invoker.attach.declared import EntryFile, Verb
from invoker.attach.service import Service, Surroundings
from invoker.errors import ConfigError
from invoker.protocols.federated.settings import FederatedServiceSettings
from invoker.settings import parsers as parse

if TYPE_CHECKING:
    from invoker.author.prepare import Prepared
    from invoker.protocols.federated.service.rounds import Rounds
    from invoker.settings import Config
    from invoker.telemetry.board import Numbers
    from invoker.transports.grpc.methods import Method
    from invoker.transports.http.app import Handler


class FederatedService(Service):
    """Serves federated rounds, if a file of rounds is given."""

    name = "federated"
    needs = "a file of rounds; see INVOKER_FEDERATED"
    on_grpc = True
    on_http = True
    on_loop = True
    shares_state = True
    settings = FederatedServiceSettings
    host_settings = ("federated",)
    entry_file = EntryFile(
        ".toml", "federated", "a file of federated rounds", "invoker.protocols.federated.verbs.rounds"
    )
    verbs = (
        Verb(
            "device", "FUNCTION", "be a device that trains in rounds of a federated server",
            "Be a device, or many, that trains functions in rounds of a federated server.",
            "invoker.protocols.federated.verbs.device",
        ),
        Verb(
            "simulate", "ROUNDS", "run the rounds of a file with all their devices, in simulated time",
            "Simulate the rounds of a file with all their devices, in one process.",
            "invoker.protocols.federated.verbs.simulate",
        ),
    )  # fmt: skip

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._rounds: Rounds | None = None

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:  # noqa: ARG003 - as `Service`
        """Whether a file of rounds is given.

        Raises:
            ConfigError: Other machines could reach the service without TLS (F-142).
        """
        known = config.of(FederatedServiceSettings)
        if not is_chosen or not known.federated:
            return False
        host, why = config.bind_host()
        if not (config.tls_cert or known.insecure_public or parse.is_loopback(host)):
            raise ConfigError(
                f"federated rounds take no devices of other machines without TLS, and this process binds {host} "
                f"({why}); give INVOKER_TLS_CERT and INVOKER_TLS_KEY, set INVOKER_HOST to 127.0.0.1, or allow it by "
                "--insecure-public"
            )
        return True

    @classmethod
    def add_functions(
        cls, config: Config, found: tuple[Prepared, ...]
    ) -> tuple[tuple[Prepared, ...], Mapping[str, str]]:
        """Add the aggregation functions that the file names."""
        path = config.of(FederatedServiceSettings).federated
        if not path:
            return found, {}
        from invoker.protocols.federated.service.setups import with_aggregators

        return with_aggregators(path, found, config), {}

    def grpc_methods(self) -> Sequence[Method]:
        """The gRPC method for conversations with devices.

        Raises:
            StartupError: The file of rounds, or a function or file that it names, cannot be used (F-137).
        """
        return (self._made().method,)

    def http_handler(self, path: str) -> Handler | None:
        """The handler of the paths of plans and checkpoints; None for other paths."""
        from invoker.protocols.federated.service.resources import PREFIX

        return self._made().resources if path.startswith(PREFIX) else None

    def numbers(self) -> Numbers | None:
        """The counts of the rounds; None before they are served."""
        return self._rounds.numbers() if self._rounds is not None else None

    def families(self, numbers: Numbers) -> Iterator[Any]:
        """The metrics of rounds and devices, by task."""
        from invoker.protocols.federated.metrics import round_families

        return round_families(numbers)

    async def start(self) -> None:
        """Start to lead the populations, or to follow their leaders."""
        await self._made().start()

    async def stop(self, grace_s: float) -> None:
        """End the rounds, and let other processes lead."""
        if self._rounds is not None:
            await self._rounds.stop(grace_s)

    def _made(self) -> Rounds:
        if self._rounds is None:
            from invoker.protocols.federated.service.rounds import Rounds

            self._rounds = Rounds(self.around, self.around.config.of(FederatedServiceSettings))
        return self._rounds
