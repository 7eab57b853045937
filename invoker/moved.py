"""Makes old names of modules work for one release: `lead` is called once by `invoker` itself.

An import of an old name returns the module of the new name, the same object, with a DeprecationWarning.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any, Final

from invoker.lazy import no_attribute

MOVED: Final = {
    "aggregators": "protocols.federated.aggregators",
    "aliases": "fields.aliases",
    "backtracking": "fields.backtracking",
    "body": "author",
    "checkpoint": "tensors.checkpoint",
    "cli.call": "protocols.riff.verbs.call",
    "cli.chat": "protocols.evergreen.verbs.chat",
    "cli.device": "protocols.federated.verbs.device",
    "cli.plans": "protocols.federated.verbs.plans",
    "cli.proto": "protocols.typed.verbs.proto",
    "cli.rounds": "protocols.federated.verbs.rounds",
    "cli.simulate": "protocols.federated.verbs.simulate",
    "cli.simulation": "protocols.federated.verbs.simulation",
    "cli.simulation.house": "protocols.federated.verbs.simulation.simulated_server",
    "cli.tools": "protocols.toolbridge.verbs.tools",
    "client.connection": "connect.connection",
    "client.evergreen.": "protocols.evergreen.client.",
    "client.evergreen.line": "protocols.evergreen.client.sessioncall",
    "client.exchange": "connect.exchange",
    "client.failure": "connect.failure",
    "client.federated.": "protocols.federated.client.",
    "client.federated.words": "protocols.federated.client.messages",
    "client.feeds": "connect.feeds",
    "client.graphpipe.": "protocols.graphpipe.client.",
    "client.lazy": "lazy",
    "client.metadata": "connect.metadata",
    "client.portal": "connect.portal",
    "client.quiet": "connect.quiet",
    "client.riff.": "protocols.riff.client.",
    "client.riff.filling": "protocols.riff.verbs.filling",
    "client.riff.plan": "protocols.riff.verbs.plan",
    "client.sources": "connect.sources",
    "client.tls": "connect.tls",
    "client.toolbridge.": "protocols.toolbridge.client.",
    "codecs.schema.classes": "codecs.members",
    "config": "settings",
    "config.knob": "settings.setting",
    "constraints": "fields.constraints",
    "core.kept": "core.cache",
    "declared": "tensors.declared",
    "doors": "transports",
    "doors.grpc.aioline": "transports.grpc.aiocall",
    "doors.grpc.held": "transports.grpc.replybatch",
    "doors.grpc.lending": "transports.grpc.queue_poller",
    "doors.grpc.loopline": "transports.grpc.loopcall",
    "doors.grpc.threadline": "transports.grpc.threadcall",
    "doors.grpc.wholeline": "transports.grpc.unarycall",
    "doors.http.door": "transports.http.transport",
    "doors.http.hyper": "transports.http.h2",
    "doors.http.hyperhttp": "transports.http.h2",
    "doors.http.inbox": "transports.http.h2stream",
    "doors.http.known": "transports.http.cachedhead",
    "doors.http.leader": "transports.http.inline_http",
    "doors.http.leaving": "transports.http.response_packing",
    "doors.http.led": "transports.http.inline_connection",
    "doors.http.ledstream": "transports.http.inline_stream",
    "doors.http.socketline": "transports.http.socketconnection",
    "doors.http.tap": "transports.http.readcontrol",
    "drive": "execution",
    "drive.isolated": "execution.isolation",
    "drive.loop.alarm": "execution.alarm",
    "drive.loop.seat": "execution.loop.subscription",
    "drive.loop.slices": "execution.pace.slices",
    "drive.loop.tasks": "execution.pace.tasks",
    "drive.thread.away": "execution.thread.loop_handoff",
    "drive.thread.foresight": "execution.thread.lookahead",
    "drive.thread.gate": "execution.pace.gate",
    "drive.thread.leaders": "execution.thread.leader_follower",
    "drive.thread.overdue": "execution.thread.call_watchdog",
    "drive.thread.sweeper": "execution.pace.sweeper",
    "ending": "connect.ending",
    "linear": "fields.linear",
    "marks": "fields.marks",
    "mounted": "server.mounted",
    "ops": "telemetry",
    "ops.describe": "protocols.riff.service.describe",
    "ops.health": "server.endpoints.statuses",
    "ops.prints": "telemetry.stdout_capture",
    "ops.reflection": "server.endpoints.reflection",
    "ops.roundmetrics": "protocols.federated.metrics",
    "ops.toolmetrics": "protocols.toolbridge.prometheus",
    "process": "server",
    "process.doors": "server.transports",
    "process.fronts": "server.handlers",
    "process.knobs": "server.given",
    "protocols.action_engine": "protocols.evergreen.action_engine",
    "protocols.federated.desk": "protocols.federated.coordinator",
    "protocols.federated.secagg.derive": "protocols.federated.wire.derive",
    "protocols.federated.secagg.keys": "protocols.federated.wire.keys",
    "protocols.federated.secagg.masks": "protocols.federated.wire.masks",
    "protocols.federated.secagg.packing": "protocols.federated.wire.packing",
    "protocols.federated.secagg.shares": "protocols.federated.wire.shares",
    "protocols.federated.secagg.words": "protocols.federated.secagg.events",
    "protocols.federated.timers": "core.timers",
    "protocols.federated.words": "protocols.federated.messages",
    "protocols.riff.client.filling": "protocols.riff.verbs.filling",
    "protocols.riff.client.plan": "protocols.riff.verbs.plan",
    "protocols.riff.asjson": "protocols.web.asjson",
    "protocols.riff.asking": "protocols.web.asking",
    "protocols.riff.cloudevents": "protocols.web.cloudevents",
    "protocols.riff.events": "protocols.web.events",
    "protocols.riff.faults": "protocols.web.faults",
    "protocols.riff.fields": "protocols.web.fields",
    "protocols.riff.filling": "protocols.web.filling",
    "protocols.riff.formats": "protocols.web.formats",
    "protocols.riff.http": "protocols.web.http",
    "protocols.riff.items": "protocols.web.items",
    "protocols.riff.openapi": "protocols.web.openapi",
    "protocols.riff.reply": "protocols.web.reply",
    "protocols.riff.socket": "protocols.web.socket",
    "protocols.riff.stream": "protocols.web.stream",
    "protocols.riff.values": "protocols.web.values",
    "protocols.riff.variadic": "protocols.web.variadic",
    "protocols.toolbridge.desk": "protocols.toolbridge.host_sessions",
    "rules": "fields.rules",
    "secagg": "protocols.federated.secagg",
    "secagg.derive": "protocols.federated.wire.derive",
    "secagg.keys": "protocols.federated.wire.keys",
    "secagg.masks": "protocols.federated.wire.masks",
    "secagg.packing": "protocols.federated.wire.packing",
    "secagg.shares": "protocols.federated.wire.shares",
    "secagg.words": "protocols.federated.secagg.events",
    "services": "attach",
    "services.action_engine": "protocols.evergreen.service.action_engine",
    "services.actions": "protocols.evergreen.actions",
    "services.evergreen": "protocols.evergreen.service",
    "services.evergreen.service": "protocols.evergreen.service.attach",
    "services.federated": "protocols.federated.service",
    "services.federated.asker": "execution.asker",
    "services.federated.backdoor": "protocols.federated.service.relay_listener",
    "services.federated.leading": "protocols.federated.service.round_leadership",
    "services.federated.service": "protocols.federated.service.attach",
    "services.functions": "protocols.web.service.functions",
    "services.graphpipe": "protocols.graphpipe.service",
    "services.graphpipe.door": "protocols.graphpipe.service.framed",
    "services.graphpipe.line": "protocols.graphpipe.service.connection",
    "services.graphpipe.service": "protocols.graphpipe.service.attach",
    "services.health": "server.endpoints.health",
    "services.page": "protocols.web.service.page",
    "services.page.fronts": "protocols.web.service.page.handlers",
    "services.page.service": "protocols.web.service.page.attach",
    "services.pages": "server.endpoints.pages",
    "services.riff": "protocols.web.service",
    "services.riff.grpc": "protocols.riff.service.attach",
    "services.riff.method": "protocols.riff.service.method",
    "services.riff.service": "protocols.web.service.attach",
    "services.table": "server.table",
    "services.toolbridge": "protocols.toolbridge.service",
    "services.toolbridge.agents.house": "protocols.toolbridge.service.agents.agent_runner",
    "services.toolbridge.aside": "protocols.toolbridge.service.offload",
    "services.toolbridge.service": "protocols.toolbridge.service.attach",
    "services.typed": "protocols.typed.service",
    "services.typed.service": "protocols.typed.service.attach",
    "serving": "server.serving",
    "toolerror": "protocols.toolbridge.toolerror",
    "usage": "settings.usage",
    "wording": "errors.wording",
}
"""Maps an old name, without ``invoker.``, to the new one. A row also holds for modules below it that have no row of
their own; a row that ends with a dot holds only for those below it.
"""

DISTRIBUTIONS: Final = {"conformance": ("invoker_conformance", "stream-invoker-conformance")}
"""Maps old names of packages, without ``invoker.``, that are now separate distributions to the new name of the package
and the name to install."""

RENAMED: Final = {
    "conformance.evergreen.requirements": "invoker_conformance.catalogue",
    "conformance.federated.requirements": "invoker_conformance.catalogue",
    "conformance.graphpipe.requirements": "invoker_conformance.catalogue",
    "conformance.line": "invoker_conformance.rawcall",
    "conformance.riff.requirements": "invoker_conformance.catalogue",
    "conformance.toolbridge.requirements": "invoker_conformance.catalogue",
}
"""Maps old names of modules, without ``invoker.``, to their names in such a distribution, where these differ."""

KEPT: Final = frozenset({"aggregators", "secagg"})
"""Old names that are public and remain valid."""

GONE: Final = {
    "author.calling": "`Binder` of `invoker.author.binding`",
    "author.traits": "options of protocols (`from invoker.protocols import evergreen, graphpipe, toolbridge`), and "
    "fields of FunctionSpec: safe, version, examples, options",
}
"""Modules, without ``invoker.``, that were split into several, and the new places of their names."""

NAMES: Final = {
    "author.traits": {
        "NodeTraits": "invoker.protocols.evergreen.options:Nodes",
        "ToolTraits": "invoker.protocols.toolbridge.options:ToolInfo",
    },
    "core.cache": {"Kept": "Cache"},
    "core.steps": {"Told": "StoreChanged"},
    "core.store": {"Guest": "Subscriber"},
    "settings": {"Knob": "Setting", "knob_of": "setting_of"},
    "settings.setting": {"Knob": "Setting", "knob": "setting", "knob_of": "setting_of", "knobs_of": "settings_of"},
    "transports.http.app": {
        "Alike": "PreparedRequest",
        "Front": "Handler",
        "FrontOf": "HandlerOf",
        "PromptFront": "PromptHandler",
        "SocketFront": "SocketHandler",
        "WholeFront": "WholeHandler",
    },
}
"""By module, old names that authors of protocols may have imported, and the new ones: a name of the same module, or
``module:name``.
"""


def new_name(name: str) -> str:
    """The new name of a module; empty if the module has not moved.

    Args:
        name: The old name, such as ``invoker.drive.loop``.
    """
    package, _, rest = name.partition(".")
    if package != "invoker" or not rest:
        return ""
    if (first := rest.partition(".")[0]) in DISTRIBUTIONS:
        return RENAMED.get(rest) or DISTRIBUTIONS[first][0] + rest.removeprefix(first)
    known, below = rest, ""
    while known not in MOVED:
        known, dot, last = known.rpartition(".")
        if not dot:
            return ""
        if f"{known}." in MOVED:
            return f"invoker.{MOVED[f'{known}.']}{last}{below}"
        below = f".{last}{below}"
    return f"invoker.{MOVED[known]}{below}"


def lead() -> None:
    """Find modules by their old names from now on."""
    if not any(isinstance(one, _Finder) for one in sys.meta_path):
        # This finder goes first: otherwise a module of an old package would be found in its folder, and be loaded
        # twice.
        sys.meta_path.insert(0, _Finder())


def lead_names(module_name: str) -> None:
    """Make the old names in `NAMES` work for a loaded module, with a DeprecationWarning."""
    module = sys.modules[module_name]
    names = NAMES.get(module_name.removeprefix("invoker."), {})

    def by_old_name(name: str) -> Any:
        if name not in names:
            raise no_attribute(module_name, name)
        where, _, new = names[name].rpartition(":")
        text = f"{module_name}.{name} is now {where or module_name}.{new}; the old name will be removed in release 0.2"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(import_module(where) if where else module, new)

    if names:
        setattr(module, "__getattr__", by_old_name)  # noqa: B010 - a type checker would believe that it has every name


class _Finder(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - as the base
        target: ModuleType | None = None,  # noqa: ARG002 - as the base
    ) -> ModuleSpec | None:
        if not fullname.startswith("invoker."):
            return None
        gone = GONE.get(fullname.removeprefix("invoker."), "")
        new = gone or new_name(fullname)
        if not new:
            return None
        if fullname.split(".")[1] not in KEPT:
            text = f"{fullname} is now {new}; the old name will be removed in release 0.2"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, _Gone() if gone else _Alias(new))


class _Alias(Loader):
    """Loads the module of the new name under its old name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        for package, distribution in DISTRIBUTIONS.values():
            if self._name.partition(".")[0] == package and find_spec(package) is None:
                text = f"{spec.name} is now {self._name}, of another distribution: pip install {distribution}"
                raise ModuleNotFoundError(text, name=spec.name)
        module = import_module(self._name)
        lead_names(self._name)
        self._spec = module.__spec__
        return module

    def get_code(self, fullname: str) -> CodeType | None:  # noqa: ARG002 - as the import system calls it
        """The code of the module, for ``python -m`` with its old name.

        A worker from before a reload starts its child processes in this way until it has retired.
        """
        spec = find_spec(self._name)
        assert spec is not None, "it was found by its old name"
        assert isinstance(spec.loader, InspectLoader), "our modules are files"
        return spec.loader.get_code(self._name)

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has put the spec of the old name there


class _Gone(Loader):
    """Makes a module of which the names are now in other modules."""

    def exec_module(self, module: ModuleType) -> None:
        lead_names(module.__name__)
