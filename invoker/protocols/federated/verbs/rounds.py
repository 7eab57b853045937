"""Describes a file of rounds for ``invoker inspect rounds.toml``: its aggregation functions and its rounds."""

from __future__ import annotations

from typing import Any

from invoker.author.prepare import Prepared
from invoker.core.catalog import Catalog
from invoker.protocols.federated.config import TaskConfig
from invoker.protocols.federated.service.setups import Setups, with_aggregators
from invoker.settings import Config


def inspected(path: str, *, allow_pickle: bool) -> tuple[tuple[Prepared, ...], dict[str, Any], str]:
    """The functions and the populations of a file of rounds, as JSON data and as text.

    Raises:
        StartupError: The file is invalid, or names a function or file that cannot be used.
    """
    functions, populations = inspected_rounds(path, allow_pickle=allow_pickle)
    return functions, {"rounds": populations}, rounds_text(populations)


def inspected_rounds(path: str, *, allow_pickle: bool) -> tuple[tuple[Prepared, ...], list[dict[str, Any]]]:
    """The functions of a file of rounds, and its populations as JSON data.

    Raises:
        StartupError: The file is invalid, or names a function or file that cannot be used.
    """
    found = with_aggregators(path, (), Config(allow_pickle=allow_pickle))
    setups = Setups(path, Catalog([one.function for one in found]), is_public=False)
    populations = [
        {
            "name": one.name,
            "has_eligibility": one.has_eligibility,
            "tasks": [
                _task(task, len(setups.plan(one.name, task.name)), len(setups.initial(one.name, task.name)))
                for task in one.tasks
            ],
        }
        for one in setups.populations.values()
    ]
    return found, populations


def rounds_text(populations: list[dict[str, Any]]) -> str:
    """The populations and their tasks as text for a terminal."""
    lines = []
    for one in populations:
        lines.append(f"population {one['name']}" + (", with an eligibility task" if one["has_eligibility"] else ""))
        for task in one["tasks"]:
            many = "for ever" if not task["rounds"] else f"{task['rounds']} rounds"
            secure = ", by secure aggregation" if task["secagg"] else ""
            least, most, goal, cohort = (task[key] for key in ("min_clients", "max_clients", "goal_clients", "cohort"))
            select, report, aggregate = (
                f"{task[f'{key}_timeout_s']:g} s" for key in ("selection", "report", "aggregate")
            )
            lines.append(f"  task {task['name']}: {task['aggregate']}{secure}")
            lines.append(f"    devices   {least} to {most}, goal {goal}, {cohort} are accepted")
            lines.append(f"    time      {select} to select, {report} to report, {aggregate} to aggregate")
            sizes = f"plan of {task['plan_bytes']} bytes, first checkpoint of {task['initial_bytes']} bytes"
            lines.append(f"    rounds    {many}; {sizes}")
    return "\n".join(lines)


def _task(task: TaskConfig, plan_bytes: int, initial_bytes: int) -> dict[str, Any]:
    names = ("name", "aggregate", "min_clients", "goal_clients", "max_clients", "cohort", "rounds")
    times = ("selection_timeout_s", "report_timeout_s", "aggregate_timeout_s")
    told = {name: getattr(task, name) for name in (*names, *times)}
    return {**told, "secagg": task.secagg is not None, "plan_bytes": plan_bytes, "initial_bytes": initial_bytes}
