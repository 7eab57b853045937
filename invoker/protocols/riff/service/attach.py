"""`RiffService`: attaches riff to the gRPC transport."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from invoker.attach.declared import Verb
from invoker.attach.service import Service

if TYPE_CHECKING:
    from invoker.author.spec import FunctionSpec
    from invoker.transports.grpc.methods import Method


class RiffService(Service):
    """Serves the functions by riff's streaming calls, over gRPC."""

    name = "riff"
    on_grpc = True
    verbs = (
        Verb(
            "call", "HOST:PORT", "stream values to any riff invoker, and print what comes back",
            "Stream values to a riff invoker, and print what comes back as it comes.",
            "invoker.protocols.riff.verbs.call",
        ),
    )  # fmt: skip

    def grpc_methods(self) -> Sequence[Method]:
        """The only method of riff, which invokes functions."""
        from invoker.protocols.riff.service.method import riff_method

        return (riff_method(),)

    def add_servicers(self, server: Any, names: Sequence[str]) -> None:  # noqa: ARG002 - it describes functions
        """Add the method that describes the functions, while ``reflection`` is on."""
        if self.around.config.reflection:
            from invoker.protocols.riff.service.describe import add_describe

            add_describe(self.around.driver.engine.catalog, server)

    def sample(self, spec: FunctionSpec, address: str, *, is_one: bool) -> str:
        """A command that calls the function with a value for each input."""
        from invoker.telemetry.samples import call_command

        return call_command(spec, address, is_one=is_one)
