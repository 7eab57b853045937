"""Which parameter takes what a caller gives, and all that is wrong (tests/protocols/binding: each protocol says it)."""

import pytest

from invoker.author.binding import Binder
from invoker.author.reader import read


def fill(text: str, count: int = 2, *, sep: str = " ") -> str: ...
def anything(text: str = "none", **more): ...
def total(*xs: int) -> int: ...
def names_of(fn, count, *keywords):
    found = Binder(read(fn)).call(count, keywords)
    return found.names if not found.faults else [(one.code, one.name) for one in found.faults]


def every(a, /, *more, **names): ...


def test_a_call_gives_each_value_the_name_of_its_input():
    """Elements of ``*args`` have their index; a name of ``**kwargs`` that means another input has a prefix."""
    assert names_of(fill, 2, "sep") == ("text", "count", "sep")
    assert names_of(total, 2) == ("#0", "#1")
    assert names_of(every, 2, "a", "b") == ("a", "#1", "**a", "**b")
    assert names_of(anything, 0, "**b", "b") == ("****b", "b")


def test_all_faults_of_a_call_are_found_at_once():
    """What is given wrongly comes before what is missing."""
    assert names_of(fill, 4, "text", "zzz") == [
        ("too_many_args", ""),
        ("duplicate_arg", "text"),
        ("unknown_arg", "zzz"),
    ]
    assert names_of(fill, 0, "x" * 1000) == [("unknown_arg", "x" * 256), ("missing_arg", "text")]
    assert names_of(fill, 0, "etxt") == names_of(fill, 0, "etxt", "count") == [("unknown_arg", "etxt")]
    faults = Binder(read(fill)).call(1, [f"coun{number}" for number in range(500)]).faults
    assert [("did you mean 'count'" in str(one)) for one in faults] == [True] * 8 + [False] * 92
    (fault,) = Binder(read(fill), most=3).call(2, ("sep", "a")).faults
    assert str(fault) == "'fill' is given 4 inputs, which exceeds the limit of 3"
    assert fault.said_of("action 'fill' #1") == "action 'fill' #1 is given 4 inputs, which exceeds the limit of 3"


def test_what_was_found_is_kept_within_a_bound():
    """Callers choose the names, and what they send once must not stay."""
    binder = Binder(read(anything))
    assert binder.call(1, ("b",)) is binder.call(1, ("b",))
    assert binder.named(("b",)) is binder.named(("b",)) is not binder.call(0, ("b",))
    for index in range(200):
        binder.call(0, (f"n{index}",))
    binder.call(0, ("x" * 5000,))
    assert len(binder.kept) <= 64
    assert all(len("".join(one.names)) <= 4096 for one in binder.kept.values())
    assert not Binder(read(fill)).call(0).names


@pytest.mark.parametrize(
    ("of", "given", "order"),
    [
        (fill, "sep text", "text sep"),
        (fill, "count", "count"),
        (total, "p10 p9 p1", "p1 p9 p10"),
        (fill, "z text b", "text b z"),
    ],
)
def test_E075_names_are_put_in_the_order_of_the_parameters(of, given, order):
    """Then those that are none, by their numbers."""
    names = given.split()
    assert [names[place] for place in Binder(read(of)).order(names)] == order.split()
