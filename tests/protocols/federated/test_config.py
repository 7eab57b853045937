"""What rounds.toml may say, and which of its errors stop the process."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from invoker.errors import ConfigError
from invoker.protocols.federated.config import PopulationConfig, SecAggConfig, TaskConfig, parse

TASK = {
    "name": '"train"',
    "aggregate": '"functions.federated:mean"',
    "plan": '"functions.federated:train"',
    "initial": '"functions.federated:initial"',
    "min_clients": "10",
    "goal_clients": "40",
    "max_clients": "60",
}
SECAGG = "[population.task.secagg]\nvectors = { w = { modulus = 5, length = 3 } }\n"


def file(population: str = "", secagg: str = "", **task: str | None) -> str:
    """A file of one population and one task; None leaves a key out."""
    lines = [f"{key} = {value}" for key, value in {**TASK, **task}.items() if value is not None]
    return "\n".join(['[[population]]\nname = "iris"', population, "[[population.task]]", *lines, secagg])


def test_F137_a_file_says_what_populations_tasks_and_rounds_there_are():
    """Keys become fields, whole numbers may stand for seconds, and what is left out has a default."""
    (population,) = parse(file("retry_min_s = 5", params="{ rate = 0.5 }", rounds="20")).populations
    (task,) = population.tasks
    assert (population.name, population.retry_min_s, population.retry_max_s) == ("iris", 5.0, 600.0)
    assert isinstance(population.retry_min_s, float)
    assert (task.min_clients, task.goal_clients, task.max_clients) == (10, 40, 60)
    assert (task.params, task.rounds, task.over_selection, task.secagg) == ({"rate": 0.5}, 20, 1.3, None)
    assert task.cohort == 52
    assert not population.has_eligibility
    assert population.entrypoints == ("functions.federated:mean", "functions.federated:initial")


def test_F049_no_more_are_accepted_than_the_most():
    """The goal times over-selection, but at most max_clients; without one, the goal is the most."""
    assert parse(file(max_clients="45")).populations[0].tasks[0].cohort == 45
    assert parse(file(max_clients=None)).populations[0].tasks[0].cohort == 40


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "rounds.toml is not valid TOML"),
        ("", "rounds.toml: population must be at least one"),
        ("populations = 1", "rounds.toml: populations is not known; did you mean 'population'?"),
        ("[task]", "rounds.toml: task is not known; there are population"),
        ("[population]", r"rounds.toml: population must be an array of tables; write \[\[population\]\]"),
        ("[[populations]]\n[[population.task]]", "populations is not known; did you mean 'population'?"),
        (file("retry_min = 3"), "population 'iris': retry_min is not known; did you mean 'retry_min_s'?"),
        ("population = 3", r"rounds.toml: population must be \[\[population\]\] tables; it is 3"),
        ('[[population]]\nname = "a"', "population 'a': task must be at least one"),
        ("[[population]]", "population 'number 1': name is missing"),
        (file("nmae = 3"), "population 'iris': nmae is not known; did you mean 'name'?"),
        (file("retry_min_s = 700"), "population 'iris': retry_max_s must be at least retry_min_s, which is 700"),
        (file("rejected_min_s = -1"), "rejected_min_s must be at least 0; it is -1"),
        (file("retry_max_s = inf"), "retry_max_s must be a finite number"),
        (file('api_key = "a"\napi_key_env = "B"'), "api_key must be left out where api_key_env is given"),
        (file('eligibility = "a:b"\neligibility_file = "c"'), "eligibility must be left out"),
        (file('eligibility = "ab"'), "eligibility must be MODULE:FUNCTION; it is 'ab'"),
        (file("eligibility_timeout_s = 0"), "eligibility_timeout_s must be above 0"),
        (file() + "\n" + file(), r"two of \[\[population\]\] have the name 'iris'"),
        (file(name=None), "population 'iris', task 'number 1': name is missing"),
        (file(extra="1"), "population 'iris', task 'train': extra is not known"),
        (file(min_clients='"3"'), "task 'train': min_clients must be a whole number; it is '3'"),
        (file(min_clients="true"), "task 'train': min_clients must be a whole number"),
        (file(params="3"), "task 'train': params must be a table"),
        (file(plan_file='"x"'), "task 'train': plan must be given, or plan_file, but not both"),
        (file(plan=None), "task 'train': plan must be given"),
        (file(initial=None), "task 'train': initial must be given"),
        (file(aggregate='"mean"'), "task 'train': aggregate must be MODULE:FUNCTION; it is 'mean'"),
        (file(aggregate='""'), "task 'train': aggregate must be MODULE:FUNCTION; it is ''"),
    ],
)
def test_F137_what_cannot_be_is_told_by_population_task_and_key(text, said):
    """Unknown keys, other types, missing and contradicting keys stop the start."""
    with pytest.raises(ConfigError, match=said):
        parse(text)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"min_clients": "0"}, "min_clients must be at least 1; it is 0"),
        ({"goal_clients": "9"}, "goal_clients must be at least min_clients, 10; it is 9"),
        ({"max_clients": "39"}, "max_clients must be at least goal_clients, 40; it is 39"),
        ({"over_selection": "0.9"}, "over_selection must be from 1 to 100"),
        ({"over_selection": "nan"}, "over_selection must be a finite number"),
        ({"rounds": "-1"}, "rounds must be at least 0"),
        ({"selection_timeout_s": "0"}, "selection_timeout_s must be above 0"),
        ({"report_timeout_s": "-1"}, "report_timeout_s must be above 0"),
        ({"aggregate_timeout_s": "0"}, "aggregate_timeout_s must be above 0"),
        ({"min_clients": "1", "secagg": SECAGG}, "min_clients must be at least 2; it is 1"),
    ],
)
def test_F049_numbers_of_a_round_fit_together(task, said):
    """1 <= min <= goal <= max, 2 with secure aggregation, and times that pass."""
    with pytest.raises(ConfigError, match="population 'iris', task 'train': " + said):
        parse(file(**task))


def secagg(vector: str = "modulus = 5, length = 3", rest: str = "") -> str:
    return f"[population.task.secagg]\nvectors = {{ w = {{ {vector} }} }}\n{rest}"


@pytest.mark.parametrize(
    ("vector", "said"),
    [
        ("modulus = 1, length = 3", "modulus must be above 1"),
        ("modulus = 0, length = 3", "modulus must be above 1"),
        ("modulus = -4, length = 3", "modulus must be above 1"),
        (f"modulus = {2**62 + 1}, length = 3", "modulus must be above 1 and at most 2"),
        ("output_bitwidth = 63, length = 3", "output_bitwidth must be from 1 to 62"),
        ("modulus = 4, output_bitwidth = 2, length = 3", "output_bitwidth must be left out"),
        ("modulus = 5, length = 0", "length must be at least 1"),
        ("modulus = 5", "length is missing"),
        (f"modulus = 4, length = {2**30 + 1}", "length must be so small"),
        ("modulus = 5, length = 3, size = 4", "size is not known"),
    ],
)
def test_F090_a_modulus_is_from_2_to_2_to_the_62(vector, said):
    """Other moduli, and vectors that are too long, stop the start; the text names the vector."""
    with pytest.raises(ConfigError, match=f"task 'train', secagg, vectors, w: {said}"):
        parse(file(secagg=secagg(vector)))


def test_F090_a_bit_width_stands_for_a_power_of_two():
    """Without a modulus it is 2 to the power of output_bitwidth; 2^62 is allowed."""
    text = secagg(f"output_bitwidth = 20, length = 3 }}, v = {{ modulus = {2**62}, length = 1")
    task = parse(file(secagg=text)).populations[0].tasks[0]
    assert task.secagg == SecAggConfig(vectors={"w": (2**20, 3), "v": (2**62, 1)})
    assert task.step_s == 150.0


@pytest.mark.parametrize(
    ("clients", "rate", "needed"), [(10, 0.1, 10), (52, 0.1, 47), (40, 0.25, 30), (20, 0.0, 20), (11, 0.49, 10)]
)
def test_F092_the_threshold_is_the_least_and_what_dropouts_leave(clients, rate, needed):
    """t = max(min_clients, ceil(n * (1 - dropout_rate)))."""
    task = parse(file(secagg=secagg(rest=f"dropout_rate = {rate}"))).populations[0].tasks[0]
    assert task.threshold(clients) == needed


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (
            "dropout_rate = 0.5",
            "dropout_rate must be so small that more than half of 20 clients must survive; 10 would",
        ),
        ("dropout_rate = 1.0", "dropout_rate must be at least 0 and below 1"),
        ("dropout_rate = -0.1", "dropout_rate must be at least 0"),
        ("min_visible = 53", "min_visible must be at most 52"),
        ("min_visible = -1", "min_visible must be at least 0"),
        ("round_timeout_s = -1", "round_timeout_s must be at least 0"),
        ("dropout = 1", "dropout is not known"),
    ],
)
def test_F092_a_threshold_is_a_majority_of_any_cohort(rest, said):
    """If some size that a cohort may have does not need more than a half, the process does not start."""
    with pytest.raises(ConfigError, match=f"task 'train', secagg: {said}"):
        parse(file(secagg=secagg(rest=rest)))


def test_F133_a_round_of_secure_aggregation_has_a_quarter_of_the_time():
    """Unless the file says another time."""
    given = file(secagg=secagg(rest="round_timeout_s = 7"), report_timeout_s="100")
    assert parse(given).populations[0].tasks[0].step_s == 7
    assert parse(file(secagg=secagg(), report_timeout_s="100")).populations[0].tasks[0].step_s == 25


@pytest.mark.parametrize(
    ("heading", "kind"), [("[[population]]", PopulationConfig), ("[[population.task]]", TaskConfig),
                          ("[population.task.secagg]", SecAggConfig)]
)  # fmt: skip
def test_the_reference_lists_every_key_with_its_default(heading, kind):
    """In the order of the file."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "rounds.md").read_text()
    rows = page.partition(f"## `{heading}`")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", rows, re.MULTILINE))
    for one in fields(kind):
        default = told.pop(one.name.removesuffix("s") if one.name == "tasks" else one.name)
        if default not in ("required", "none", "the goal", "`{}`"):
            assert tomllib.loads(f"x = {default.strip('`')}") == {"x": one.default}, one.name
    assert not told


def test_the_example_of_the_reference_is_right():
    """It can be read."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "rounds.md").read_text()
    (task,) = parse(page.partition("```toml\n")[2].partition("```")[0]).populations[0].tasks
    assert task.secagg == SecAggConfig(vectors={"weights": (1048576, 15)})
