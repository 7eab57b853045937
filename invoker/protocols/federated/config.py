"""Reads ``rounds.toml``: populations, their tasks, and the settings of rounds (F-049, F-090, F-092, F-137).

All values are checked when the file is read, so that a process with a round that can never succeed does not start. An
error names the population, the task, the key and the expected value. Only the functions and files that the file names
are checked later, by the service.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from invoker.errors import ConfigError
from invoker.errors.wording import suggestion

MOST_MODULUS = 2**62
MOST_BITS = 2**31
"""The largest vector of secure aggregation, in bits (D14)."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecAggConfig:
    """The settings of secure aggregation for a task.

    Attributes:
        vectors: The modulus and the length, in elements, of each vector, by name.
        min_visible: The smallest number of clients whose sum may be seen; 0: the threshold.
        dropout_rate: The fraction of the clients that may be lost, from 0 to below 1.
        round_timeout_s: How many seconds each of the four rounds may take; 0: a quarter of ``report_timeout_s``
            (F-133).
    """

    vectors: Mapping[str, tuple[int, int]]
    min_visible: int = 0
    dropout_rate: float = 0.1
    round_timeout_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """One task: the plan for its devices, the function that aggregates their reports, and the settings of its rounds.

    Attributes:
        name: The name, unique in its population.
        aggregate: The aggregation function, ``module:function``.
        plan: The entrypoint that the plan of devices names; empty: ``plan_file`` is the plan.
        plan_file: A file with the bytes of a plan.
        params: The parameters for the plan's entrypoint.
        initial: The entrypoint that makes the first checkpoint; empty: ``initial_file`` is the first checkpoint.
        initial_file: A file with the bytes of the first checkpoint.
        min_clients: A round with fewer clients fails.
        goal_clients: A round closes when this many reports have come.
        max_clients: No round has more clients.
        over_selection: The factor by which more clients than the goal are accepted, since some will be lost.
        selection_timeout_s: How many seconds devices wait at most until a round begins.
        report_timeout_s: How many seconds devices have for their reports after they were accepted.
        aggregate_timeout_s: How many seconds the function may take after all reports have come.
        rounds: How many rounds are run; 0: there is no limit.
        secagg: The settings of secure aggregation; None: reports are plain.
    """

    name: str
    aggregate: str
    plan: str = ""
    plan_file: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    initial: str = ""
    initial_file: str = ""
    min_clients: int = 1
    goal_clients: int = 1
    max_clients: int = 0
    over_selection: float = 1.3
    selection_timeout_s: float = 60.0
    report_timeout_s: float = 600.0
    aggregate_timeout_s: float = 60.0
    rounds: int = 0
    secagg: SecAggConfig | None = None

    @property
    def cohort(self) -> int:
        """How many clients a round accepts: the goal times ``over_selection``, but not more than ``max_clients``."""
        return min(self.max_clients, math.ceil(self.goal_clients * self.over_selection))

    @property
    def step_s(self) -> float:
        """The time limit in seconds of each of the four rounds of secure aggregation (F-133)."""
        assert self.secagg is not None
        return self.secagg.round_timeout_s or self.report_timeout_s / 4

    def threshold(self, clients: int) -> int:
        """How many of ``clients`` clients must stay until the end of secure aggregation (F-092)."""
        assert self.secagg is not None
        return max(self.min_clients, math.ceil(clients * (1 - self.secagg.dropout_rate)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationConfig:
    """Devices that run the same tasks.

    Attributes:
        name: The name, which devices send.
        tasks: The tasks, at least one.
        api_key: The API key that clients must send; empty: none.
        api_key_env: The environment variable that holds the API key.
        attestation: A function, ``module:function``, that takes the measurement of a client and returns whether it is
            valid.
        eligibility: The entrypoint that the eligibility plan names; empty, and no file: there is no eligibility task.
        eligibility_file: A file with the bytes of an eligibility plan.
        eligibility_timeout_s: How many seconds a device may take to find out for which tasks it is eligible.
        retry_min_s: The begin of the retry window, in seconds from now, for a client that took part (F-056).
        retry_max_s: The end of this window, in seconds from now.
        rejected_min_s: Like ``retry_min_s``, for a client that was rejected.
        rejected_max_s: Like ``retry_max_s``, for a client that was rejected.
        seed: The seed of the assignment of tasks to devices (F-046); None: a random seed.
    """

    name: str
    tasks: tuple[TaskConfig, ...] = ()
    api_key: str = ""
    api_key_env: str = ""
    attestation: str = ""
    eligibility: str = ""
    eligibility_file: str = ""
    eligibility_timeout_s: float = 600.0
    retry_min_s: float = 60.0
    retry_max_s: float = 600.0
    rejected_min_s: float = 60.0
    rejected_max_s: float = 600.0
    seed: int | None = None

    @property
    def has_eligibility(self) -> bool:
        """Whether there is an eligibility task."""
        return bool(self.eligibility or self.eligibility_file)

    @property
    def entrypoints(self) -> tuple[str, ...]:
        """The entrypoints of functions that this process itself calls; the functions of plans are not among them."""
        own = [self.attestation]
        for task in self.tasks:
            own += [task.aggregate, task.initial]
        return tuple(dict.fromkeys(name for name in own if name))


@dataclass(frozen=True, slots=True)
class FederatedConfig:
    """The populations that a process serves, as its configuration file lists them."""

    populations: tuple[PopulationConfig, ...]


def parse(text: str, where: str = "rounds.toml") -> FederatedConfig:
    """Parse the text of a file.

    Args:
        text: The text, in TOML.
        where: The name of the file, for error texts.

    Raises:
        ConfigError: A value is invalid; the text names population, task and key (F-137).
    """
    try:
        root = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where} is not valid TOML: {error}") from None
    top = _Table(root, where)
    top.close("population")  # checked first, since a misspelt [[population]] would cause misleading errors
    tables = top.tables("population")
    populations = tuple(_population(table) for table in tables)
    top.check(bool(populations), "population", "at least one [[population]]")
    _distinct([one.name for one in populations], top, "population")
    return FederatedConfig(populations)


class _Table:
    """A table of the file, which records the keys that were read."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = dict(values)
        self.where = where
        self._known: list[str] = []

    def fail(self, key: str, expected: str) -> ConfigError:
        met = f"; it is {self._values[key]!r}" if key in self._values else ""
        return ConfigError(f"{self.where}: {key} must be {expected}{met}")

    def check(self, is_right: bool, key: str, expected: str) -> None:  # noqa: FBT001 - the call reads like a sentence
        if not is_right:
            raise self.fail(key, expected)

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The value of a key; a key without a default must exist."""
        self._known.append(key)
        value = self._values.get(key, default)
        if value is None:
            raise ConfigError(f"{self.where}: {key} is missing")
        if kind is float and type(value) is int:
            value = float(value)
        self.check(type(value) is kind, key, _KINDS[kind])
        self.check(not isinstance(value, float) or math.isfinite(value), key, "a finite number")
        return value  # type: ignore[return-value]  # its kind was checked

    def fill(self, kind: Any, *omit: str) -> dict[str, Any]:
        """Read values for those fields of a dataclass that have plain types; the fields have the defaults."""
        given = {}
        for one in fields(kind):
            if one.name in omit:
                continue
            default = None if one.default is MISSING else one.default
            if default is None and one.name == "seed":
                if "seed" in self._values:
                    given["seed"] = self.get("seed", int)
                continue
            given[one.name] = self.get(one.name, str if default is None else type(default), default)
        return given

    def tables(self, key: str) -> list[_Table]:
        """Read an array of tables; errors name each table by its `name`."""
        self._known.append(key)
        found = self._values.get(key, [])
        if isinstance(found, dict):
            raise ConfigError(f"{self.where}: {key} must be an array of tables; write [[{key}]], in two brackets")
        self.check(isinstance(found, list) and all(isinstance(one, dict) for one in found), key, f"[[{key}]] tables")
        names = [one.get("name", f"number {at}") for at, one in enumerate(found, 1)]
        return [_Table(one, f"{self.where}, {key} {name!r}") for one, name in zip(found, names, strict=True)]

    def table(self, key: str) -> _Table | None:
        """Read a table; None if the file does not have it."""
        self._known.append(key)
        if key not in self._values:
            return None
        self.check(isinstance(self._values[key], dict), key, "a table")
        return _Table(self._values[key], f"{self.where}, {key}")

    def items(self) -> Mapping[str, Any]:
        """All items of a table whose keys are names that the author of the file chose."""
        return self._values

    def close(self, *known: str) -> None:
        """Refuse keys that were neither read nor are in ``known``."""
        known = (*self._known, *known)
        for key in self._values:
            if key not in known:
                raise ConfigError(f"{self.where}: {key} is not known; {suggestion(key, sorted(known))}")


_KINDS: dict[type, str] = {str: "a text", int: "a whole number", float: "a number", dict: "a table"}


def _population(table: _Table) -> PopulationConfig:
    tasks = table.tables("task")
    given = table.fill(PopulationConfig, "tasks")
    table.close()
    made = PopulationConfig(**given, tasks=tuple(_task(one) for one in tasks))
    table.check(bool(made.name), "name", "a text that is not empty")
    table.check(bool(made.tasks), "task", "at least one [[population.task]]")
    _distinct([one.name for one in made.tasks], table, "task")
    table.check(not (made.api_key and made.api_key_env), "api_key", "left out where api_key_env is given")
    table.check(not (made.eligibility and made.eligibility_file), "eligibility", "left out with an eligibility_file")
    _entrypoints(table, {"eligibility": made.eligibility, "attestation": made.attestation})
    _positive(table, {"eligibility_timeout_s": made.eligibility_timeout_s})
    for kind in ("retry", "rejected"):
        least, most = given[f"{kind}_min_s"], given[f"{kind}_max_s"]
        table.check(least >= 0, f"{kind}_min_s", "at least 0")
        table.check(least <= most, f"{kind}_max_s", f"at least {kind}_min_s, which is {least:g}")
    return made


def _task(table: _Table) -> TaskConfig:
    secagg = table.table("secagg")
    given = table.fill(TaskConfig, "params", "secagg", "max_clients")
    given["params"] = table.get("params", dict, {})
    given["max_clients"] = table.get("max_clients", int, max(given["min_clients"], given["goal_clients"]))
    table.close()
    made = TaskConfig(**given, secagg=_secagg(secagg) if secagg is not None else None)
    table.check(bool(made.name), "name", "a text that is not empty")
    table.check(bool(made.plan) != bool(made.plan_file), "plan", "given, or plan_file, but not both")
    table.check(bool(made.initial) != bool(made.initial_file), "initial", "given, or initial_file, but not both")
    _entrypoints(table, {"aggregate": made.aggregate, "plan": made.plan, "initial": made.initial})
    table.check(bool(made.aggregate), "aggregate", "MODULE:FUNCTION")
    _numbers(table, made)
    if secagg is not None:
        _thresholds(secagg, made)
    return made


def _numbers(table: _Table, made: TaskConfig) -> None:
    """F-049: Check that the numbers for a round are consistent."""
    least = 2 if made.secagg is not None else 1
    table.check(made.min_clients >= least, "min_clients", f"at least {least}")
    table.check(made.goal_clients >= made.min_clients, "goal_clients", f"at least min_clients, {made.min_clients}")
    table.check(made.max_clients >= made.goal_clients, "max_clients", f"at least goal_clients, {made.goal_clients}")
    table.check(1 <= made.over_selection <= 100, "over_selection", "from 1 to 100")
    table.check(made.rounds >= 0, "rounds", "at least 0, where 0 means for ever")
    names = ("selection_timeout_s", "report_timeout_s", "aggregate_timeout_s")
    _positive(table, {name: getattr(made, name) for name in names})


def _secagg(table: _Table) -> SecAggConfig:
    names = table.table("vectors")
    given = table.fill(SecAggConfig, "vectors")
    table.close()
    table.check(names is not None and bool(names.items()), "vectors", "a table of names, each with modulus and length")
    assert names is not None
    vectors = {name: _vector(names, name) for name in names.items()}
    table.check(0 <= given["dropout_rate"] < 1, "dropout_rate", "at least 0 and below 1")
    table.check(given["min_visible"] >= 0, "min_visible", "at least 0")
    table.check(given["round_timeout_s"] >= 0, "round_timeout_s", "at least 0")
    return SecAggConfig(vectors=vectors, **given)


def _vector(names: _Table, name: str) -> tuple[int, int]:
    """F-090: Read a vector; its modulus is given, or 2 to the power of output_bitwidth."""
    table = names.table(name)
    assert table is not None
    modulus, length = table.get("modulus", int, 0), table.get("length", int)
    bits = table.get("output_bitwidth", int, 0)
    table.close()
    table.check(modulus == 0 or bits == 0, "output_bitwidth", "left out where there is a modulus")
    table.check(0 <= bits <= 62, "output_bitwidth", "from 1 to 62")
    modulus = modulus or 2**bits
    table.check(1 < modulus <= MOST_MODULUS, "modulus", f"above 1 and at most 2^62 = {MOST_MODULUS}")
    table.check(length >= 1, "length", "at least 1")
    size = (modulus - 1).bit_length() * length
    table.check(size <= MOST_BITS, "length", f"so small that the vector has at most 2^31 bits, not {size}")
    return modulus, length


def _thresholds(secagg: _Table, made: TaskConfig) -> None:
    """F-092: Check for each size of a cohort that the threshold is a majority, and not above the size."""
    assert made.secagg is not None
    for clients in range(made.min_clients, made.cohort + 1):
        needed = made.threshold(clients)
        if 2 * needed <= clients:
            text = f"so small that more than half of {clients} clients must survive; {needed} would be enough"
            raise secagg.fail("dropout_rate", text)
    visible = made.secagg.min_visible
    secagg.check(visible <= made.cohort, "min_visible", f"at most {made.cohort}, the most clients of a round")


def _positive(table: _Table, seconds: Mapping[str, float]) -> None:
    for key, value in seconds.items():
        table.check(value > 0, key, "above 0")


def _entrypoints(table: _Table, names: Mapping[str, str]) -> None:
    for key, name in names.items():
        module, sign, function = name.partition(":")
        table.check(not name or bool(module and sign and function), key, "MODULE:FUNCTION")


def _distinct(names: list[str], table: _Table, key: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{table.where}: two of [[{key}]] have the name {name!r}")
