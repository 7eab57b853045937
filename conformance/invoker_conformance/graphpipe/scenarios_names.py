"""Names of inputs and outputs, declared types and shapes. Catalogue 2.4, 2.5."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.requests import Request, drafted, infer
from invoker_conformance.graphpipe.rules import told
from invoker_conformance.graphpipe.tensors import FLOAT64, INT32, Tensor, floats, numbers, strings
from invoker_conformance.scenario import Failure, NotProvided, scenario

LEFT, RIGHT = floats(5, 7), floats(2, 3)
SUM, DIFFERENCE, PRODUCT = floats(7, 10), floats(3, 4), floats(10, 21)


def both(names: Sequence[str] = (), outputs: Sequence[str] = ()) -> Request:
    """Make a request with the two inputs of ``arithmetic``; the left one comes first."""
    return infer(LEFT, RIGHT, names=names, outputs=outputs)


@scenario("GT-33", "G-051", function="arithmetic")
async def number_of_names(asker: Asker) -> None:
    """There must be as many input names as tensors, or none."""
    for names in (("left",), ("left", "right", "left"), ("",)):
        await asker.refuses(both(names), 3)
    await asker.refuses(infer(names=("left",)), 3)
    await asker.gives(both(("left", "right")), SUM, DIFFERENCE, PRODUCT)


@scenario("GT-33", "G-054", function="arithmetic")
async def wrong_names(asker: Asker) -> None:
    """Unknown names, such as those with a capital letter, and duplicates are refused; the message contains the name."""
    for name in ("middle", "Left", "left ", "input2", "sum", "0"):
        await asker.refuses(both((name, "right")), 4, mentions=[name])
    for names in (("left", "left"), ("left", "input0"), ("", "left")):
        await asker.refuses(both(names), 6, mentions=["left"])


@scenario("G-084", "G-054", function="arithmetic")
async def several_errors(asker: Asker) -> None:
    """The errors of several inputs may come at once, one for each input."""
    for request, code in (
        (infer(strings(b"a"), strings(b"b")), 8),
        (infer(LEFT, RIGHT, names=("middle", "centre")), 4),
    ):
        answer = await asker.ask(request)
        asker.has_error(answer, code)
        errors = asker.checked(answer).errors
        if len(errors) == 1:
            raise NotProvided("several errors in one answer")
        if [each for each, _ in errors[:2]] != [code, code]:
            raise Failure(str(asker.checked(answer)), f"{told([code])} for each of two inputs", answer.sent)


@scenario("GT-33", "G-052", "G-053", function="arithmetic")
async def default_names(asker: Asker) -> None:
    """Without names tensors are the inputs in order; an empty name, or one never set, is the input at its place."""
    for names in ((), ("", ""), ("left", ""), ("", "right")):
        await asker.gives(both(names), SUM, DIFFERENCE, PRODUCT)
    for unset in ((0,), (1,), (0, 1)):
        of = drafted(LEFT, RIGHT, names=("left", "right"))
        built = of.built()
        for index in unset:
            built.patch(built.places[of.part(1)] + 4 + 4 * index, "I", 0)
        await asker.gives(of.request(built, f"whose names {unset} are not set"), SUM, DIFFERENCE, PRODUCT)


@scenario("GT-34", "G-070", function="arithmetic")
async def swapped_inputs(asker: Asker) -> None:
    """Named inputs that come in another order reach the right parameters."""
    await asker.gives(both(("right", "left")), SUM, floats(-3, -4), PRODUCT)


@scenario("G-069", function="arithmetic")
async def aliases(asker: Asker) -> None:
    """``input<i>`` and ``output<i>`` work beside the declared names."""
    await asker.gives(both(("input1", "input0"), ("output1",)), floats(-3, -4))
    await asker.gives(both(("left", "input1"), ("output2", "sum")), PRODUCT, SUM)


@scenario("G-055", function="arithmetic")
async def missing_and_surplus_inputs(asker: Asker) -> None:
    """The error names a required input that is missing; a surplus tensor is an unknown input."""
    await asker.refuses(infer(LEFT), 7, mentions=["right"])
    await asker.refuses(infer(LEFT, names=("right",)), 7, mentions=["left"])
    await asker.refuses(infer(), 7)
    await asker.refuses(infer(LEFT, RIGHT, LEFT), 4)


@scenario("GT-36", "G-056", function="scaled")
async def input_with_default(asker: Asker) -> None:
    """An input with a default may be left out, or given by place or by name."""
    factor = numbers(FLOAT64, (), (10,))
    await asker.gives(infer(floats(1, 2)), floats(2, 4))
    await asker.gives(infer(floats(1, 2), factor), floats(10, 20))
    await asker.gives(infer(factor, floats(1, 2), names=("by", "x")), floats(10, 20))
    await asker.refuses(infer(factor, names=("by",)), 7, mentions=["x"])


@scenario("GT-35", "G-057", function="arithmetic")
async def wanted_outputs(asker: Asker) -> None:
    """For a subset, another order or a repeated output, exactly the requested outputs come, in this order."""
    every = {"sum": SUM, "difference": DIFFERENCE, "product": PRODUCT}
    for names in (
        ("difference",),
        ("product", "difference", "sum"),
        ("sum", "sum"),
        ("product", "sum", "product", "product"),
    ):
        await asker.gives(both(outputs=names), *(every[name] for name in names))


@scenario("GT-35", "G-058", function="arithmetic")
async def outputs_by_default(asker: Asker) -> None:
    """Without names all outputs come in declared order."""
    await asker.gives(both(), SUM, DIFFERENCE, PRODUCT)


@scenario("GT-35", "G-059", function="arithmetic")
async def unknown_outputs(asker: Asker) -> None:
    """An unknown or empty name of an output is refused, also beside known ones."""
    for names in (("quotient",), ("",), ("sum", "quotient"), ("output3",), ("left",)):
        await asker.refuses(both(outputs=names), 5)
    of = drafted(LEFT, RIGHT, outputs=("sum", "product"))
    built = of.built()
    built.patch(built.places[of.part(3)] + 4, "I", 0)
    await asker.refuses(of.request(built, "whose first output's name is not set"), 5)


@scenario("G-060", function=("arithmetic", "marks"))
async def only_wanted_outputs_are_computed(asker: Asker) -> None:
    """A function can see which outputs are wanted."""
    watch = await asker.watch("arithmetic.sum", "arithmetic.product")
    await asker.gives(both(outputs=("product",)), PRODUCT)
    await watch.stays("arithmetic.product", 1)
    await watch.stays("arithmetic.sum")


@scenario("GT-37", "G-062", function="triples")
async def declared_shape(asker: Asker) -> None:
    """For a shape [-1, 3], no rows and five are accepted; another size, rank, or a scalar are refused."""
    for rows in (0, 1, 5):
        tensor = floats(*range(3 * rows), shape=(rows, 3))
        await asker.gives(infer(tensor), tensor)
    for shape, count in (((5, 4), 20), ((3,), 3), ((1, 1, 3), 3), ((), 1), ((3, 0), 0)):
        await asker.refuses(infer(floats(*range(count), shape=shape)), 9)


@scenario("GT-38", "G-061", function="triples")
async def declared_type(asker: Asker) -> None:
    """Another type than the declared one is refused, also where every value could be converted."""
    for type_ in (FLOAT64, INT32):
        await asker.refuses(infer(numbers(type_, (1, 3), (1, 2, 3))), 8)
    await asker.refuses(infer(strings(b"1", b"2", b"3", shape=(1, 3))), 8)


@scenario("GT-38", "G-061", function="forgiving")
async def casting(asker: Asker) -> None:
    """A function that opts in gets numbers cast to its type; a number that does not fit, and text, are refused."""
    for type_ in (FLOAT64, INT32):
        await asker.gives(infer(numbers(type_, (3,), (1, 2, -3))), floats(1, 2, -3))
    await asker.refuses(infer(numbers(FLOAT64, (1,), (1e300,))), 8)
    await asker.refuses(infer(strings(b"1")), 8)


@scenario("G-063", function="arithmetic")
async def sizes_in_common(asker: Asker) -> None:
    """Inputs that must have a size in common are refused when their sizes differ."""
    await asker.refuses(infer(floats(1, 2), floats(1, 2, 3)), 9)
    await asker.gives(infer(floats(), floats()), floats(), floats(), floats())


@scenario("GT-39", "G-067", function="constant")
async def no_inputs(asker: Asker) -> None:
    """A function without inputs is called without tensors, and a tensor is refused."""
    await asker.gives(infer(), floats(1, 2, 3))
    await asker.gives(infer(outputs=("output0", "output0")), floats(1, 2, 3), floats(1, 2, 3))
    await asker.refuses(infer(floats(1)), 4)


@scenario("G-074", function=("shout", "sums"))
async def functions_without_arrays(asker: Asker) -> None:
    """A text is a String of one element, and nested lists are a tensor; other values are refused."""
    await asker.gives(infer(strings(b"abc", shape=())), strings(b"ABC", shape=()))
    await asker.gives(infer(strings(b"abc")), strings(b"ABC", shape=()))
    await asker.refuses(infer(strings(b"a", b"b")), 8, 9)
    await asker.refuses(infer(floats(1)), 8)
    rows = numbers(FLOAT64, (2, 2), (1, 2, 3, 4))
    await asker.gives(infer(rows), numbers(FLOAT64, (2,), (3, 7)), function="sums")
    await asker.refuses(infer(strings(b"a", shape=(1, 1))), 8, 9, function="sums")


@scenario("G-012", "G-101", function=("arithmetic", "mirror"))
async def good_among_bad(asker: Asker) -> None:
    """Bad requests beside good ones, on connections of their own, change nothing for the good ones."""
    bad = Tensor(INT32, (3,), bytes(3))
    async with asyncio.TaskGroup() as group:
        for number in range(25):
            group.create_task(asker.gives(both(), SUM, DIFFERENCE, PRODUCT))
            group.create_task(asker.refuses(infer(bad), 10, function="mirror"))
            group.create_task(asker.gives(infer(floats(number)), floats(number), function="mirror"))
