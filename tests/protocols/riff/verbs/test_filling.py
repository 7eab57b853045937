"""Tests of arguments together with what the server tells."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import pytest

from invoker._pb.invoker import describe_pb2 as pb
from invoker.connect.failure import UnknownName, UsageError
from invoker.connect.sources import Part
from invoker.protocols.riff.client.known import NOTHING, Known
from invoker.protocols.riff.verbs.call import add_arguments
from invoker.protocols.riff.verbs.filling import TEXT_FIRST, Filled, fill
from invoker.protocols.riff.verbs.plan import make_plan

TEXT, JSON = ["text/plain", "application/json"], ["application/json"]


def taking(*inputs: str, outputs: tuple[pb.Output, ...] = (pb.Output(name="out"),)) -> Known:
    """A function with these inputs; ``name=`` is an option."""
    made = [pb.Input(name=one.rstrip("="), type="str", media_types=TEXT, is_option=one.endswith("=")) for one in inputs]
    return Known(pb.Function(inputs=made, outputs=outputs))


def typed(words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(["127.0.0.1:8081", *words.split()])


def filled(words: str, known: Known) -> Filled:
    return fill(typed(words), known)


@pytest.mark.parametrize(
    ("words", "known", "names", "first"),
    [
        ("", NOTHING, None, []),
        ("-d x", taking("name"), ("name",), []),
        ("--arg b=1", taking("a", "b"), ("a", "b"), []),
        ("-d x --arg k=3", taking("a", "j=", "k="), ("a", "k"), [1]),
        ("-d x --arg 2=3 --arg 1=4", taking("a", "j=", "k="), ("a", "j", "k"), [1, 2]),
        ("", taking("a=", "b="), ("a",), []),
        ("--arg b=1", taking("a=", "b="), ("a", "b"), [1]),
        ("--no-input", taking("a=", "b="), (), []),
        ("--no-input", taking("a"), ("a",), []),
        ("--inputs x,k", taking("a", "k="), ("x", "k"), [1]),
        ("--inputs x,y", NOTHING, ("x", "y"), []),
        ("", taking(), (), []),
    ],
)
def test_names_of_required_inputs_and_of_the_options_that_are_given(
    words: str, known: Known, names: tuple[str, ...] | None, first: list[int]
) -> None:
    """R-165: in their order; the options' values are sent first (R-166)."""
    made = filled(words, known)
    assert (made.inputs, list(made.sent_first)) == (names, first)


def test_further_inputs_that_are_not_given_are_not_announced() -> None:
    """Of a function with ``*args`` behind other inputs; those that are given by index get labels."""
    many = Known(pb.Function(open_inputs=True, inputs=[pb.Input(name="a"), pb.Input(name="rest")]))
    assert filled("-d 3", many).inputs == ("a",)
    assert filled("--arg 0=3", many).inputs == ("a",)
    assert filled("-d 3 --arg 1=4", many).inputs == ("a", "#1")
    assert filled("--arg 3=4 --arg 1=4", many).inputs == ("a", "#1", "#2", "#3")
    alone = Known(pb.Function(open_inputs=True, inputs=[pb.Input(name="rest"), pb.Input(name="k", is_option=True)]))
    assert filled("-d 3", alone).inputs == ("#0",)
    assert filled("--no-input", alone).inputs == ()
    assert filled("--arg 1=3", alone).inputs == ("#0", "#1")


def elements(*, types: Sequence[str] = ()) -> Known:
    """A function with ``*more`` and an option."""
    more = pb.Input(name="more", media_types=types, is_stream=True)
    return Known(pb.Function(name="f", open_inputs=True, inputs=[more, pb.Input(name="k", is_option=True)]))


def test_options_are_named_behind_the_elements_of_args() -> None:
    """At least one label is in front, since the first name is no option's; the elements have one media type."""
    plan = make_plan(typed("--arg k=3 --arg 1=b --arg 0=a --arg 0=c"), elements(types=JSON))
    assert (plan.request.input_names, list(plan.request.sent_first)) == (("#0", "#1", "k"), [2])
    assert plan.inputs == ((Part(b"a"), Part(b"c")), (Part(b"b"),), (Part(b"3"),))
    assert [plan.request.content_type_of(at) for at in range(3)] == [
        "application/json",
        "application/json",
        "text/plain",
    ]
    plan = make_plan(typed("--arg k=@-"), elements())
    assert (plan.request.input_names, plan.inputs) == (("#0", "k"), ((), (Part(path="-"),)))


def test_any_name_may_be_a_keyword_argument_where_the_server_says_so() -> None:
    """Its value is sent before those of the inputs; without ``*args`` and a label, too."""
    both = Known(pb.Function(inputs=[pb.Input(name="a", is_stream=True)], open_names=True))
    plan = make_plan(typed("--arg z=1 --arg a=2"), both)
    assert (plan.request.input_names, list(plan.request.sent_first)) == (("a", "z"), [1])
    alone = Known(pb.Function(inputs=[pb.Input(name="in", is_trigger=True)], open_names=True))
    plan = make_plan(typed("--arg z=1"), alone)
    assert (plan.request.input_names, plan.inputs, plan.reads_stdin) == (("z",), ((Part(b"1"),),), False)


def test_a_value_that_the_function_cannot_take_is_refused_before_the_call() -> None:
    """The second of a single one, one beyond the last, one behind an option that only its position gives."""
    each = [pb.Input(name="xs", is_stream=True), *(pb.Input(name=one, is_option=True) for one in "kl")]
    function = pb.Function(name="f", inputs=each)
    make_plan(typed("-d 1 -d 2 --arg xs=3 --arg 2=5"), Known(function))
    function.inputs[2].is_positional = True
    for known, words, said in (
        (Known(function), "-d 1 --arg k=2 --arg 1=2", "'f' is given its input 'k' twice"),
        (Known(function), "-d 1 --arg 3=2", "'f' takes 3 inputs by position, and 4 are given"),
        (Known(function), "-d 1 --arg l=2", "'f' cannot be given its input 'l' without 'k'"),
        (Known(function), "--arg =2", "'f' has no input ''; it has xs, k, l"),
        (elements(), "--arg x=2", "'f' has no input 'x'; it has k, *more"),
        (elements(), "--arg 1000=2", "'f' is given 1001 inputs, which exceeds the limit of 1000"),
    ):
        with pytest.raises(UsageError) as caught:
            make_plan(typed(words), known)
        assert str(caught.value) == said


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ("-d 1", "b"), ("--arg a=1 --arg k=2", "b"), ("--arg b=1", ""), ("--arg b=@-", "a"), ("", "b"), ("-n", ""),
        ("-d 1 --arg b=@/dev/null", ""), ("--inputs a,b -d 1", ""),
    ],
)  # fmt: skip
def test_a_required_input_for_which_nothing_is_given_is_a_mistake(words: str, missing: str) -> None:
    """It is told before the call. Stdin gives the first input, and a file without lines is an input without values."""
    if not missing:
        make_plan(typed(words), taking("a", "b", "k="))
        return
    with pytest.raises(
        UsageError, match=f"needs its input '{missing}', which is not given; give --arg {missing}=VALUE"
    ):
        make_plan(typed(words), taking("a", "b", "k="))
    make_plan(typed("--arg b=@-"), taking("a=", "b="))


def test_all_required_inputs_for_which_nothing_is_given_are_told() -> None:
    """At once, each with the argument that gives it."""
    text = "needs its input 'b', which is not given; give --arg b=VALUE --arg c=VALUE, or"
    with pytest.raises(UsageError, match=text):
        make_plan(typed("-d 1"), taking("a", "b", "c"))


def test_text_is_asked_for_first_where_an_output_is_a_str() -> None:
    """Elsewhere the server chooses; what the caller asks for wins."""
    both = taking("a", outputs=(pb.Output(name="s", media_types=TEXT), pb.Output(name="n")))
    assert filled("", both).accepts == (TEXT_FIRST, "*/*")
    assert filled("", both).outputs == ("s", "n")
    assert list(make_plan(typed("-d x"), both).request.accept) == [TEXT_FIRST, "*/*"]
    assert list(make_plan(typed("-d x --json"), both).request.accept) == JSON * 2
    assert list(make_plan(typed("-d x --accept a/b"), both).request.accept) == ["a/b"] * 2


def test_types_of_values_are_those_that_the_function_takes() -> None:
    """Unless the caller says others; the text of an error says what is wanted."""
    rows = Known(pb.Function(inputs=[pb.Input(name="rows", type="list[int]", media_types=JSON)], outputs=[pb.Output()]))
    made = make_plan(typed("-d [1]"), rows)
    assert made.request.content_type_of(0) == "application/json"
    assert made.framings[0].hint == "input 'rows' takes list[int], which is written as application/json"
    assert make_plan(typed("-d [1] -t text/plain"), rows).request.content_type_of(0) == "text/plain"
    assert make_plan(typed("-d [1]")).request.content_type_of(0) == "text/plain"


def test_a_source_is_sent_nothing_and_a_trigger_one_value() -> None:
    """Neither waits for stdin."""
    assert make_plan(typed(""), taking()).inputs == ()
    with pytest.raises(UsageError, match=r"^'' takes no input by position, and 1 are given$"):
        make_plan(typed("-d x"), taking())
    trigger = Known(pb.Function(inputs=[pb.Input(name="in", is_trigger=True)], outputs=[pb.Output()]))
    assert make_plan(typed(""), trigger).inputs == ((Part(b""),),)
    assert make_plan(typed("-d @-"), trigger).reads_stdin
    assert make_plan(typed("--no-input"), trigger).inputs == ()


def test_a_sink_is_asked_for_nothing() -> None:
    """And to ask it for something is a mistake."""
    sink = taking("a", outputs=())
    assert make_plan(typed("-d x"), sink).request.accepts() == ()
    with pytest.raises(UsageError, match="the function has no output, but --accept asks for one"):
        make_plan(typed("-d x --accept a/b"), sink)


def test_a_name_may_wait_for_the_server() -> None:
    """Until it has told its names; then the nearest is suggested."""
    with pytest.raises(UnknownName):
        make_plan(typed("--arg name=x"))
    assert make_plan(typed("--arg name=x"), taking("name")).inputs == ((Part(b"x"),),)
    listed = "it has name, temperature"
    for key, hint in (("temprature", "did you mean 'temperature'?"), ("zebra", listed)):
        with pytest.raises(UsageError) as caught:
            make_plan(typed(f"--arg {key}=x"), taking("name", "temperature="))
        assert str(caught.value) == f"'' has no input '{key}'; {hint}"
