"""`invoker.protocols.evergreen.action_engine.table`: names of actions, ports and nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from invoker.author.reader import read
from invoker.errors import Status, StatusError
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.table import LIST_ACTIONS, Binding, Table
from invoker.protocols.evergreen.action_engine.wire import Action
from tests.protocols.evergreen.action_engine.functions import concat, echo, gather, greet, now, split, tag, total


def table(*functions: Any, **settings: Any) -> Table:
    """Of these functions, by the entrypoints ``mod:name``."""
    specs = [read(one, entrypoint=f"mod:{one.__name__}") for one in functions]
    return Table(specs, ActionEngineSettings(**settings))


def ports(*names: str) -> tuple[tuple[str, str], ...]:
    """Ports of the action ``A`` as the peers name their nodes."""
    return tuple((name, f"A#{name}") for name in names)


def bind(function: Any, inputs: tuple[tuple[str, str], ...] = (), outputs: tuple[tuple[str, str], ...] = ()) -> Binding:
    """An action of one function."""
    return table(function).bind(Action("A", function.__name__, inputs, outputs))


def test_inputs_are_bound_in_the_order_of_the_parameters() -> None:
    """Peers list ports in any order."""
    found = bind(concat, ports("b", "a"), ports("y"))
    assert (found.bound, found.inputs) == (("a", "b"), ("A#a", "A#b"))
    assert (found.outputs, found.unwanted) == ({0: "A#y"}, ())


def test_a_parameter_with_a_default_is_bound_if_it_is_named() -> None:
    """Else it keeps its default."""
    assert bind(greet, ports("name")).bound == ("name",)
    assert bind(greet, ports("greeting", "name")).bound == ("name", "greeting")


def test_ports_that_are_left_out_have_the_nodes_that_bear_their_names() -> None:
    """All outputs, and the inputs that are required."""
    found = bind(greet)
    assert (found.bound, found.inputs, found.outputs) == (("name",), ("A#name",), {0: "A#out"})
    assert bind(split).outputs == {0: "A#even", 1: "A#odd"}


def test_a_function_without_parameters_needs_no_port() -> None:
    """It is called once."""
    assert (bind(now).bound, bind(now).inputs) == ((), ())


def test_any_name_is_bound_where_any_is_taken() -> None:
    """By ``**parts``; in the order of the names."""
    assert bind(gather, ports("b", "a")).bound == ("a", "b")


def test_inputs_of_any_number_come_in_the_order_of_their_numbers() -> None:
    """`*parts` has no names of its own."""
    names = ("p10", "p9", "p1")
    found = bind(total, ports(*names))
    assert found.bound == ("p1", "p9", "p10")
    assert found.inputs == ("A#p1", "A#p9", "A#p10")


def test_a_single_output_may_bear_any_name() -> None:
    """Peers know it by the name in their schema."""
    assert bind(echo, ports("x"), (("reply", "n"),)).outputs == {0: "n"}


def test_outputs_without_a_port_are_unwanted() -> None:
    """They are known by their names."""
    found = bind(split, ports("xs"), ports("odd"))
    assert (found.outputs, found.unwanted) == ({1: "A#odd"}, (0,))


def test_outputs_of_any_number_are_those_with_ports() -> None:
    """They keep their names."""
    found = bind(tag, ports("xs"), ports("b", "a"))
    assert (found.outputs, found.output_names) == ({0: "A#b", 1: "A#a"}, ("b", "a"))


@pytest.mark.parametrize(
    ("function", "inputs", "outputs", "text"),
    [
        (concat, ports("a", "a", "b"), (), "'concat' is given its input 'a' twice"),
        (split, ports("xs"), ports("odd", "odd"), "'split' has the output 'odd' twice"),
        (split, ports("xs"), ports("odd", "even", "third"), "no output 'third'; it has even, odd"),
        (split, ports("xs"), (("odd", "n"), ("even", "n")), "the same node to two outputs"),
    ],
)
def test_ports_that_do_not_fit_are_refused(function: Any, inputs: Any, outputs: Any, text: str) -> None:
    """INVALID_ARGUMENT, saying which."""
    with pytest.raises(StatusError, match=text) as met:
        bind(function, inputs, outputs)
    assert met.value.status == Status.INVALID_ARGUMENT


def test_functions_are_found_by_name_entrypoint_and_configured_name() -> None:
    """And inputs by their aliases."""
    known = table(echo, concat, actions={"GENERATE": "echo", "GONE": "nothing"}, inputs={"left": "a"})
    for name in ("echo", "mod:echo", "GENERATE"):
        assert known.bind(Action("A", name, ports("x"))).function == "echo"
    assert known.bind(Action("A", "concat", (("left", "n"), ("b", "m")))).inputs == ("n", "m")
    with pytest.raises(StatusError, match="no action is named 'GONE'"):
        known.bind(Action("A", "GONE"))


def test_an_unknown_name_is_told_with_what_there_is() -> None:
    """NOT_FOUND; a name that is no text is escaped."""
    known = table(echo, concat)
    with pytest.raises(StatusError, match="did you mean 'echo'") as met:
        known.bind(Action("A", "ecko"))
    assert met.value.status == Status.NOT_FOUND
    with pytest.raises(StatusError, match="there are echo, concat") as met:
        known.bind(Action("A", "\udcff"))
    str(met.value).encode()


def test_the_listing_says_what_each_action_takes_and_gives() -> None:
    """One JSON object each, as the peers list theirs."""
    known = table(echo, split, greet, now, actions={"SAY": "echo"})
    listed = {one["name"]: one for one in map(json.loads, known.listing())}
    assert list(listed) == ["SAY", "echo", "split", "greet", "now"]
    text, value, octets = "text/plain", "application/json", "application/octet-stream"
    assert listed["echo"] == {
        "name": "echo",
        "inputs": [{"name": "x", "type": text}],
        "outputs": [{"name": "out", "type": text}],
        "description": "Give back what comes.",
    }
    assert listed["split"]["outputs"] == [{"name": "even", "type": value}, {"name": "odd", "type": octets}]
    assert [one["name"] for one in listed["greet"]["inputs"]] == ["name", "greeting"]
    assert listed["now"]["inputs"] == []


def test_a_function_may_take_the_name_of_the_listing() -> None:
    """Then it is called."""
    assert table(echo).lists(LIST_ACTIONS)
    assert not table(echo, actions={LIST_ACTIONS: "echo"}).lists(LIST_ACTIONS)
    assert not table(echo).lists("echo")
