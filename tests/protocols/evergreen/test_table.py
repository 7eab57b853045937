"""`Table`: which function an action names, and how its parameters are bound (E-071 to E-088)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import pytest
from google.protobuf import any_pb2, struct_pb2

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.author.reader import read
from invoker.context import Context
from invoker.core.steps import Open, Terms
from invoker.protocols.evergreen.errors import EvergreenError
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.evergreen.table import Table
from invoker.testing import Harness
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.functions import (
    add,
    constant,
    named,
    pick,
    relay,
    scale,
    several,
    sink,
    split,
    tagged,
    ticks,
    upper,
)
from tests.protocols.evergreen.models import source
from tests.protocols.evergreen.notation import JSON, A, F, K


def opened(c: Conversation) -> Open:
    """The one invocation's step."""
    (one,) = c.invocations.values()
    return one.open


# Names of actions.


@pytest.mark.parametrize("name", ["upper", "mymod:upper", "GENERATE", "generate"])
def test_E071_a_function_has_its_own_name_its_entrypoint_and_configured_ones(name):
    """All of them run it."""
    spec = read(upper, entrypoint="mymod:upper")
    c = Conversation(spec, actions={"GENERATE": "upper", "generate": "mymod:upper"})
    c.send(A(name, {"x": "p"}, {"y": "r"}), F("p", 0, "hi"))
    assert opened(c).function == "upper"


@pytest.mark.parametrize("name", ["Upper", "UPPER", "generate", "mymod", "", "lower"])
def test_E072_other_names_are_not_found(name):
    """Names are case-sensitive; the empty one names nothing."""
    c = Conversation(upper, actions={"GENERATE": "upper"}).send(A(name, {"x": "p"}, {"y": "r"}))
    c.fails("ANF", f"no action is named '{name}'")
    assert not c.invocations


def test_E072_a_near_name_is_suggested():
    """Else those that there are."""
    Conversation(upper, add).send(A("uper")).fails("ANF", "did you mean 'upper'")
    Conversation(upper, add).send(A("zzz")).fails("ANF", "there are upper, add")


def test_E071_a_configured_name_may_hide_a_function():
    """The operator's word counts before a function's own name."""
    c = Conversation(upper, constant, actions={"upper": "constant"}).send(A("upper", {}, {"y": "r"}))
    assert c.texts("r") == ["42"]


def test_E071_names_that_are_configured_for_nothing_are_not_offered():
    """They are not found either."""
    table = Table([read(upper)], EvergreenSettings(actions={"GONE": "nothing", "U": "upper"}))
    assert list(table.names) == ["U", "upper"]


@pytest.mark.parametrize("target", [None, "", "gpu"])
def test_E073_the_default_target_and_those_of_the_settings_run(target):
    """A target without an id is the default one (E-074)."""
    c = Conversation(constant, targets=("gpu", "cpu")).send(A("constant", {}, {"y": "r"}, target=target))
    assert c.texts("r") == ["42"]


@pytest.mark.parametrize("targets", [(), ("gpu",)])
def test_E074_an_unknown_target_is_not_found(targets):
    """The text names it and the action."""
    c = Conversation(constant, targets=targets).send(A("constant", {}, {"y": "r"}, target="tpu"))
    c.fails("TNF", "action 'constant' asks for target 'tpu'")


def test_E072_an_unknown_name_wins_over_an_unknown_target():
    """The action is looked for first."""
    Conversation(targets=("gpu",)).send(A("nobody", target="tpu")).fails("ANF")


# Inputs.


def test_E075_inputs_are_bound_by_name_in_the_order_of_parameters():
    """The order in the message means nothing."""
    for inputs in permutations({"a": "p", "b": "q"}.items()):
        c = Conversation(add).send(A("add", inputs, {"y": "r"}))
        c.send(F("p", 0, "1", type=JSON), F("q", 0, "2", type=JSON))
        assert opened(c).bound == ("a", "b")
        assert (c.invocations["a1"].payloads(0), c.invocations["a1"].payloads(1)) == ([b"1"], [b"2"])


def test_E075_an_alias_stands_for_its_parameter():
    """As the operator configured it."""
    c = Conversation(upper, inputs={"prompt": "x"}).send(A("upper", {"prompt": "p"}, {"y": "r"}), F("p", 0, "hi"))
    assert c.texts("r") == ["HI"]
    assert opened(c).bound == ("x",)


def test_E075_an_exact_name_wins_over_an_alias():
    """Aliases are for all functions; one of them may have a parameter of that name."""

    def answer(prompt: str) -> str:
        return prompt

    c = Conversation(answer, inputs={"prompt": "text"}).send(A("answer", {"prompt": "p"}, {"y": "r"}), F("p", 0, "hi"))
    assert c.texts("r") == ["hi"]


def test_E078_an_alias_and_its_parameter_are_one_name():
    """Both at once are a name that comes twice."""
    c = Conversation(upper, inputs={"prompt": "x"}).send(A("upper", {"x": "p", "prompt": "q"}, {"y": "r"}))
    c.fails("ACT", "action 'upper' #1 is given its input 'x' twice")


def test_E076_an_unknown_input_aborts():
    """A near name is suggested."""
    Conversation(upper).send(A("upper", {"x": "p", "X": "q"})).fails("ACT", "action 'upper' #1 has no input 'X'")
    Conversation(named).send(A("named", {"x": "p", "why": "q"})).half_close().fails("MISS")
    Conversation(constant).send(A("constant", {"x": "p"})).fails("ACT", "has no input 'x'; it has none")
    Conversation(relay, inputs={"prompt": "text"}).send(A("relay", {"prompt": "p"})).fails(
        "ACT", "no input '(prompt|text)'"
    )


def test_E076_a_function_of_any_names_takes_them():
    """They go to ``**kwargs``, in the order of their names behind its parameters."""
    c = Conversation(named).send(A("named", {"z": "q", "b": "q", "x": "p"}, {"y": "r"}), F("p", 0, "a"), F("q", 0, "1"))
    assert opened(c).bound == ("x", "b", "z")
    assert c.texts("r") == ["ab=1z=1"]


def test_E075_R164_a_function_of_any_number_has_its_options_by_name():
    """An option is none of the inputs, and is one leaf."""

    def cat(*parts: Iterator[str], sep: str = "") -> Iterator[str]:
        yield sep.join("".join(part) for part in parts)

    cat_of = A("cat", {"b": "q", "sep": "s", "a": "p"}, {"y": "r"})
    c = Conversation(cat).send(cat_of, F("p", 0, "1"), F("q", 0, "2"), F("s", 0, "+")).half_close()
    assert opened(c).bound == ("a", "b", "sep")
    assert Harness(cat).function.binding(("a", "b", "sep")).spec.inputs[2].single
    c = Conversation(cat).send(
        cat_of, F("p", 0, "1"), F("q", 0, "2"), K("s", 0, "t", "u"), F("t", 0, "+"), F("u", 0, "-")
    )
    c.fails("BAD", "input 'sep': expected 1 chunk, got 2")
    plain = Conversation(cat).send(A("cat", {"a": "p"}, {"y": "r"}), F("p", 0, "1"))
    assert opened(plain).bound == ("a",)


def test_E075_a_function_of_any_number_takes_names_as_they_sort():
    """They are positions."""
    c = Conversation(several).send(A("several", {"b": "q", "a": "p"}, {"y": "r"}), F("p", 0, "1"), F("q", 0, "2"))
    assert opened(c).bound == opened(c).input_names == ("a", "b")
    assert c.texts("r") == ["12"]


@pytest.mark.parametrize("inputs", [{}, {"b": "p"}])
def test_E077_a_missing_input_without_default_aborts_at_once(inputs):
    """Not at the half-close: the names are known."""
    c = Conversation(add).send(A("add", inputs, {"y": "r"}))
    c.fails("ACT", "action 'add' #1 needs its input 'a', which is not given")


def test_E077_a_default_stands_for_a_missing_input():
    """The parameter is not bound."""
    c = Conversation(scale).send(A("scale", {"x": "p"}, {"y": "r"}), F("p", 0, "4", type=JSON)).half_close()
    assert opened(c).bound == ("x",)
    assert c.texts("r") == ["40"]


def test_E077_a_parameter_with_a_default_may_be_given():
    """Then it is an input as any other."""
    c = Conversation(scale).send(A("scale", {"by": "q", "x": "p"}, {"y": "r"}))
    c.send(F("p", 0, "4", type=JSON), F("q", 0, "3", type=JSON)).half_close()
    assert opened(c).bound == ("x", "by")
    assert c.texts("r") == ["12"]


@pytest.mark.parametrize(("inputs", "result"), [({}, "102"), ({"second": "p"}, "107"), ({"first": "p"}, "702")])
def test_E077_a_function_of_defaults_only_needs_nothing(inputs, result):
    """Any of its parameters may be given."""
    c = Conversation(pick).send(A("pick", inputs, {"y": "r"}), F("p", 0, "7", type=JSON)).half_close()
    assert c.is_ok
    assert c.texts("r") == [result]


def test_E077_a_function_without_parameters_is_called_once():
    """It needs no input."""
    c = Conversation(constant).send(A("constant", {}, {"y": "r"})).half_close()
    assert c.is_ok
    assert (c.texts("r"), opened(c).bound) == (["42"], ())


def test_E077_a_context_is_no_input():
    """The function gets it from the machinery."""

    def aware(x: str, ctx: Context) -> str:
        return x

    Conversation(aware).send(A("aware", {"x": "p", "ctx": "q"})).fails("ACT", "no input 'ctx'")
    assert Conversation(aware).send(A("aware", {"x": "p"}, {"y": "r"})).is_open


@pytest.mark.parametrize("kind", ["input", "output"])
def test_E078_a_name_that_comes_twice_aborts(kind):
    """Among inputs or among outputs; the same name in both is legal."""
    twice = [("x", "p"), ("x", "q")]
    action = A("relay", twice) if kind == "input" else A("relay", {"x": "p"}, twice)
    said = "is given its input" if kind == "input" else "has the output"
    Conversation(relay).send(action).fails("ACT", f"action 'relay' #1 {said} 'x' twice")
    assert Conversation(relay).send(A("relay", {"x": "p"}, {"x": "r"})).is_open


@pytest.mark.parametrize(("name", "node", "what"), [("", "p", "name"), ("x", "", "node id"), ("", "", "name")])
@pytest.mark.parametrize("kind", ["input", "output"])
def test_E080_an_empty_name_or_id_aborts(kind, name, node, what):
    """The text says which of both."""
    pair = {name: node}
    action = A("relay", pair) if kind == "input" else A("relay", {"x": "q"}, pair)
    Conversation(relay).send(action).fails("ACT", f"action 'relay' #1 has an {kind} .* with an empty {what}")


@pytest.mark.parametrize(
    "action",
    [
        A("x" * 1025),
        A("relay", {"y" * 1025: "p"}),
        A("relay", {"x": "p" * 1025}),
        A("relay", {"x": "p"}, {"o": "r" * 1025}),
    ],
    ids=["action", "input", "input id", "output id"],
)
def test_E115_names_and_ids_of_actions_have_a_limit(action):
    """1,024 bytes, as ids of fragments (E-026)."""
    Conversation(relay).send(action).fails("LIM", "1025 bytes")


# Outputs.


def test_E085_a_function_of_one_output_takes_any_name_for_it():
    """But one name only."""
    for name in ("out", "answer", "日"):
        assert Conversation(constant).send(A("constant", {}, {name: "r"})).texts("r") == ["42"]
    Conversation(constant).send(A("constant", {}, {"a": "r", "b": "r2"})).fails("ACT", "has no output 'a'")


def test_E085_outputs_are_bound_by_name():
    """Whatever their order in the message."""
    for outputs in permutations({"left": "r1", "right": "r2"}.items()):
        c = Conversation(split).send(A("split", {"x": "p"}, outputs)).emit("a1", "L", 0).emit("a1", "R", 1).finish("a1")
        assert (c.texts("r1"), c.texts("r2")) == (["L"], ["R"])


@pytest.mark.parametrize("outputs", [{"middle": "r"}, {"left": "r", "middle": "r2"}, {"Left": "r"}])
def test_E085_unknown_outputs_abort(outputs):
    """The text says what there is."""
    c = Conversation(split).send(A("split", {"x": "p"}, outputs))
    c.fails("ACT", "action 'split' #1 has no output '[mL].*'; it has left, right")


def test_E085_a_function_without_outputs_takes_none():
    """A sink runs for its effect."""
    Conversation(sink).send(A("sink", {"x": "p"}, {"y": "r"})).fails("ACT", "has no output 'y'; it has none")


def test_E085_a_function_of_any_outputs_takes_those_that_are_listed():
    """In the order of the message."""
    c = Conversation(tagged).send(A("tagged", {"x": "p"}, {"b": "r1", "a": "r2"}))
    assert opened(c).output_names == ("b", "a")
    c.emit("a1", "B", 0).emit("a1", {"k": 1}, 1).finish("a1")
    assert (c.texts("r1"), c.texts("r2")) == (["B"], ['{"k": 1}'])


def test_E086_an_output_that_is_not_listed_is_not_sent():
    """The machinery is told to drain it; what comes all the same is dropped."""
    c = Conversation(split).send(A("split", {"x": "p"}, {"right": "r"}))
    assert opened(c).unwanted == (0,)
    c.emit("a1", "L", 0).emit("a1", "R", 1).finish("a1")
    assert set(c.sent.ids) == {"r"}


def test_E087_an_action_without_outputs_runs_for_its_effect():
    """OK and no fragments."""
    c = Conversation(ticks, models={"ticks": source("a", "b")}).send(A("ticks")).half_close()
    assert c.is_ok
    assert (opened(c).unwanted, c.sent.fragments) == ((0,), [])


# Configurations.


def test_E088_configurations_reach_the_function_in_their_order():
    """Known and unknown types alike."""
    struct = struct_pb2.Struct()
    struct.update({"temperature": 0.5})
    action = A("constant", {}, {"y": "r"}, configs=[struct])
    action.configs.append(any_pb2.Any(type_url="type.googleapis.com/some.Thing", value=b"\xff"))
    first, second = opened(Conversation(constant).send(action)).configs
    assert first.to_dict() == {"temperature": 0.5}
    assert (second.type_url, second.value, second.to_dict()) == ("type.googleapis.com/some.Thing", b"\xff", None)


def test_the_metadata_of_the_call_reach_the_function():
    """As in every protocol."""
    c = Conversation(constant, extensions="drop").send(A("constant"))
    assert opened(c).metadata == {"evergreen-extensions": "drop"}


def test_E104_media_types_are_left_to_the_values():
    """No wish list is on the wire: each output accepts anything, by its value (E-105)."""
    c = Conversation(split).send(A("split", {"x": "p"}, {"left": "r"}))
    assert (opened(c).accepts, opened(c).terms) == (("*/*", "*/*"), Terms.LOOSE)


def test_E085_a_streaming_function_of_defaults_and_streams_binds_both():
    """Streams and optional values."""

    def mix(x: Iterator[str], times: int = 2) -> Iterator[str]: ...

    c = Conversation(mix).send(A("mix", {"times": "q", "x": "p"}, {"y": "r"}), K("p", 0), F("q", 0, "3", type=JSON))
    assert opened(c).bound == ("x", "times")
    assert c.invocations["a1"].payloads(1) == [b"3"]


def test_the_binding_of_known_names_has_the_ids_of_its_action() -> None:
    """Only names decide how an action is bound; ids are those of each action, in whatever order they came."""

    def joined(first: str, second: str = "") -> str:
        return first + second

    known = Table([read(joined)], EvergreenSettings())
    for number in range(3):
        made = pb.Action(name="joined", outputs=[pb.NamedParameter(name="any", id=f"o{number}")])
        made.inputs.extend(pb.NamedParameter(name=name, id=f"{name}{number}") for name in ("second", "first"))
        found = known.bind(made, "here")
        assert [(one.name, id) for one, id in found.inputs] == [
            ("first", f"first{number}"),
            ("second", f"second{number}"),
        ]
        assert [(index, one.name, id) for index, one, id in found.outputs] == [(0, "any", f"o{number}")]
        assert found == Table([read(joined)], EvergreenSettings()).bind(made, "here")


def test_E080_ids_are_checked_where_the_names_are_known() -> None:
    """An empty one, and one that is too long."""

    def echo(x: str) -> str:
        return x

    known = Table([read(echo)], EvergreenSettings(name_bytes=40))

    def bind(id: str) -> None:
        known.bind(pb.Action(name="echo", inputs=[pb.NamedParameter(name="x", id=id)]), "here")

    bind("a")
    bind("b" * 40)
    for wrong in ("", "c" * 41, "é" * 21):
        with pytest.raises(EvergreenError, match=r"empty node id|exceeds the limit of 40"):
            bind(wrong)


def test_R011_peers_cannot_fill_the_memory_with_bindings() -> None:
    """The names of outputs may be any; only so many are kept."""

    def echo(x: str) -> str:
        return x

    known = Table([read(echo)], EvergreenSettings())
    for number in range(1000):
        outputs = [pb.NamedParameter(name=f"o{number}", id="o")]
        known.bind(pb.Action(name="echo", inputs=[pb.NamedParameter(name="x", id="a")], outputs=outputs), "here")
    assert len(known._kept) <= 512
