"""`Setups`: loads the functions, plans and first checkpoints that a file of rounds names (F-137).

The file is read twice at the start of a process: first for the functions to serve, then for the rounds. A mistake stops
the start each time, with the name of the task.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from invoker.author.loader import Catalogue, load
from invoker.author.prepare import Prepared, with_functions
from invoker.author.spec import Style
from invoker.codecs.checkpoint import checkpoint_wanted, write_checkpoint
from invoker.core.catalog import Catalog
from invoker.errors import ConfigError, LoadError, StartupError
from invoker.errors.wording import describe
from invoker.protocols.federated.aggregators import checker
from invoker.protocols.federated.backing import EligibilitySetup, PopulationSetup, TaskSetup, excess
from invoker.protocols.federated.config import FederatedConfig, PopulationConfig, TaskConfig, parse
from invoker.protocols.federated.messages import Blob, Tokens
from invoker.protocols.federated.saved import Saved
from invoker.protocols.federated.wire.names import PLAN_MAGIC
from invoker.settings import Config
from invoker.tensors.checkpoint import Checkpoint

log = logging.getLogger(__name__)


def read_rounds(path: str) -> FederatedConfig:
    """Read a file of rounds.

    Raises:
        ConfigError: The file cannot be read, or has an invalid value.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file of rounds '{path}' cannot be read: {describe(error)}") from None
    return parse(text, path)


def with_aggregators(path: str, found: tuple[Prepared, ...], config: Config) -> tuple[Prepared, ...]:
    """Add the aggregation functions of a file of rounds to the functions that are served.

    Raises:
        StartupError: The file, or a function that it names, cannot be used; the text names the task.
    """
    for population in read_rounds(path).populations:
        for task in population.tasks:
            with _named(f"{path}, population {population.name!r}, task {task.name!r}"):
                found = with_functions(
                    found, (task.aggregate,), allow_pickle=config.allow_pickle, hook_timeout_s=config.hook_timeout_s
                )
    return found


class Setups:
    """The functions, plans and checkpoints that the populations of a file need.

    Args:
        path: The path of the file; files that it names are relative to its folder.
        catalog: The catalogue with the aggregation functions.
        is_public: Whether other machines can reach this process; each population then needs an API key.

    Attributes:
        populations: The populations of the file, by name.

    Raises:
        StartupError: A function or file is missing, or cannot be used; the text names the task.
    """

    def __init__(self, path: str, catalog: Catalog, *, is_public: bool) -> None:
        self._path = path
        self._names = {one.spec.entrypoint: one.spec for one in catalog}
        self.populations = {one.name: one for one in read_rounds(path).populations}
        self._keys: dict[str, str] = {}
        self._attest: dict[str, Callable[[str], object]] = {}
        self._eligibility: dict[str, bytes] = {}
        self._plans: dict[tuple[str, str], bytes] = {}
        self._initial: dict[tuple[str, str], Callable[[], bytes]] = {}
        for one in self.populations.values():
            self._look_up(one, is_public=is_public)

    def initial(self, population: str, task: str) -> bytes:
        """The first checkpoint of a task; its function is called once, on the first call of this method.

        Raises:
            LoadError: The function does not return a checkpoint; the text names the task.
        """
        with _named(f"{self._path}, population {population!r}, task {task!r}"):
            made = self._initial[population, task]()
            if why := excess(self._plans[population, task], made):
                raise LoadError(f"the first checkpoint cannot be sent: {why}")
        self._initial[population, task] = partial(bytes, made)
        return made

    def plan(self, population: str, task: str) -> bytes:
        """The plan of a task."""
        return self._plans[population, task]

    def setup(
        self, name: str, saved: Mapping[str, Saved], publish: Callable[[bytes], Blob], tokens: Tokens | None
    ) -> PopulationSetup:
        """A population with all data for the coordinator.

        Args:
            name: The name of the population.
            saved: The stored states of its tasks, by name.
            publish: Makes bytes available to devices.
            tokens: Makes and verifies retry tokens.
        """
        population = self.populations[name]
        plan = self._eligibility.get(name)
        return PopulationSetup(
            population,
            tuple(self._task(population, one, saved[one.name], publish) for one in population.tasks),
            tokens=tokens,
            eligibility=None if plan is None else EligibilitySetup(publish(plan), publish(b"")),
            attest=self._attest.get(name),
            api_key=self._keys[name],
        )

    def _task(
        self, population: PopulationConfig, task: TaskConfig, saved: Saved, publish: Callable[[bytes], Blob]
    ) -> TaskSetup:
        spec = self._names[task.aggregate]
        if why := excess(self._plans[population.name, task.name], saved.checkpoint):
            log.error(
                "no device can take part in the task %r: %s", task.name, why, extra={"population": population.name}
            )
        check = partial(checker, task.aggregate, checkpoint_wanted(spec.inputs[0].type))
        return TaskSetup(
            replace(task, aggregate=spec.name),
            publish(self._plans[population.name, task.name]),
            publish(saved.checkpoint),
            committed=saved.round,
            takes_model=len(spec.inputs) + len(spec.optional) > 1,
            checker=None if task.secagg is not None else check,
        )

    def _look_up(self, population: PopulationConfig, *, is_public: bool) -> None:
        name = population.name
        with _named(f"{self._path}, population {name!r}"):
            key = population.api_key
            if population.api_key_env:
                key = os.environ.get(population.api_key_env, "")
                if not key:
                    raise ConfigError(f"api_key_env is {population.api_key_env!r}, a variable that is not set")
            if is_public and not key:
                raise ConfigError(
                    "it has no api_key, and other machines can reach this process; give one, or allow it by "
                    "--insecure-public"
                )
            self._keys[name] = key
            if population.attestation:
                self._attest[name] = _function(population.attestation, "attestation")
            if population.eligibility_file:
                self._eligibility[name] = self._read(population.eligibility_file, "eligibility_file")
                if why := excess(self._eligibility[name], b""):
                    raise ConfigError(f"eligibility_file cannot be sent: {why}")
            elif population.eligibility:
                self._eligibility[name] = _plan(population.eligibility, {})
        for task in population.tasks:
            with _named(f"{self._path}, population {name!r}, task {task.name!r}"):
                self._look_up_task(name, task)

    def _look_up_task(self, population: str, task: TaskConfig) -> None:
        if task.aggregate not in self._names:
            raise ConfigError(f"aggregate is {task.aggregate!r}, which this process does not serve")
        spec = self._names[task.aggregate]
        if task.secagg is None and task.max_clients > 1 and spec.style is Style.REQUEST_REPLY:
            # A request/reply function would return a checkpoint for each update, but a round has only one.
            raise ConfigError(
                f"aggregate is {task.aggregate!r}, which takes one update and not all of a round; annotate its first "
                "parameter as an iterator, for example updates: Iterator[Update]"
            )
        missing = [one for one in ("cryptography", "numpy") if find_spec(one) is None] if task.secagg else []
        if missing:
            raise ConfigError(
                f"secagg needs {' and '.join(missing)}, which this process does not have; "
                "pip install 'stream-invoker[federated]'"
            )
        at = (population, task.name)
        named = self._read(task.plan_file, "plan_file") if task.plan_file else None
        self._plans[at] = _plan(task.plan, task.params) if named is None else named
        if task.initial_file:
            self._initial[at] = partial(bytes, self._read(task.initial_file, "initial_file"))
        else:
            self._initial[at] = partial(_first, task.initial, _function(task.initial, "initial"))

    def _read(self, name: str, key: str) -> bytes:
        try:
            return (Path(self._path).parent / name).read_bytes()
        except OSError as error:
            raise ConfigError(f"{key} is {name!r}, which cannot be read: {error.strerror}") from None


@contextmanager
def _named(where: str) -> Iterator[None]:
    """A context that adds the place in the file to the text of an error."""
    try:
        yield
    except StartupError as error:
        error.detail = f"{where}: {error.detail}"
        error.args = (error.detail,)
        raise


def _plan(entrypoint: str, params: Mapping[str, Any]) -> bytes:
    """Make a plan that names a function of the device (F-074)."""
    told = {"kind": "entrypoint", "fn": entrypoint, "params": dict(params)}
    try:
        return PLAN_MAGIC + json.dumps(told, separators=(",", ":")).encode()
    except TypeError as error:
        raise ConfigError(f"params cannot be sent to devices: {error}") from None


def _function(entrypoint: str, key: str) -> Callable[..., Any]:
    found = load(entrypoint)
    if isinstance(found, Catalogue):
        raise LoadError(f"{key} is '{entrypoint}', which names several functions")
    called: Callable[..., Any] = found
    return called


def _first(entrypoint: str, function: Callable[[], Any]) -> bytes:
    """Call the function that makes the first checkpoint."""
    try:
        found = function()
        if isinstance(found, (bytes, bytearray)):
            return bytes(found)
        if isinstance(found, (Checkpoint, Mapping)):
            return write_checkpoint(Checkpoint(found))
    except Exception as error:
        why = describe(error)
        if isinstance(error, ImportError) and error.name == "numpy":
            why += "; pip install 'stream-invoker[federated]'"
        raise LoadError(f"initial is '{entrypoint}', which gives no checkpoint: {why}") from error
    kind = type(found).__name__
    raise LoadError(f"initial is '{entrypoint}', which gave {kind}; it must return a Checkpoint, a dict or bytes")
