"""Simulations for tests."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import msgspec

from invoker.protocols.federated.verbs.simulation.chances import Chances, read_spread
from invoker.protocols.federated.verbs.simulation.clock import SimulatedLoop
from invoker.protocols.federated.verbs.simulation.results import Results
from invoker.protocols.federated.verbs.simulation.scene import Scene, SceneOptions
from invoker.protocols.federated.verbs.simulation.show import Bar
from invoker.protocols.federated.verbs.simulation.simulated_server import House
from invoker.protocols.federated.verbs.simulation.work import WorkOptions
from tests.protocols.federated.verbs.simulation import functions

HERE = "tests.protocols.federated.verbs.simulation.functions"
SECAGG = """
[population.task.secagg]
vectors = { w = { modulus = 1073741824, length = 3 } }
min_visible = 2
dropout_rate = 0.4
"""


def rounds(folder: Path, *, secagg: bool = False, more: str = "", **changes: Any) -> str:
    """A file of rounds with one task."""
    said: dict[str, Any] = {
        "name": "train", "aggregate": f"{HERE}:gather", "plan": f"{HERE}:train", "initial": f"{HERE}:initial",
        "min_clients": 10, "goal_clients": 20, "max_clients": 20, "over_selection": 1.0, "selection_timeout_s": 30.0,
        "report_timeout_s": 60.0, "rounds": 2,
    } | changes  # fmt: skip
    lines = ["[[population]]", 'name = "p"', "retry_min_s = 0", "retry_max_s = 1", "rejected_min_s = 0"]
    lines += ["rejected_max_s = 1", more, "[[population.task]]"]
    lines += [f"{key} = {msgspec.json.encode(value).decode()}" for key, value in said.items()]
    path = folder / "rounds.toml"
    path.write_text("\n".join(lines) + (SECAGG if secagg else ""))
    return str(path)


class Simulated(msgspec.Struct):
    """What came of a simulation."""

    results: Results
    notes: list[str]
    why: str
    house: Any = None


def simulate(
    path: str, *, devices: int = 25, dropout: float = 0.0, seed: int = 1, metric: Any = None, **work: Any
) -> Simulated:
    """Simulate a file of rounds to its end."""
    notes: list[str] = []
    house = House(path, populations=(), rounds=0, seed=seed)
    given = WorkOptions(**({"devices": devices, "examples": functions.examples, "seed": seed} | work))
    chances = Chances(
        latency=read_spread("0.01..0.2"), train_s=read_spread("exp:2"), dropout=dropout, every_s=5.0, seed=seed
    )
    options = SceneOptions(work=given, chances=chances, metric=metric)
    scene = Scene(house, options, told=lambda _: None, note=notes.append, bar=Bar(io.StringIO(), 1))
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        results = runner.run(scene.run())
    return Simulated(results, notes, scene.why, house)
