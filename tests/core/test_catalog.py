"""Functions by name."""

import pytest

from invoker.author.prepare import prepare_function
from invoker.core.catalog import Catalog
from invoker.errors import ProtocolViolation


def one(x: int) -> int:
    return x


def two(x: int) -> int:
    return x


def lifted(*functions):
    return [prepare_function(each).function for each in functions]


def test_the_only_function_needs_no_name():
    """An empty name finds the one function."""
    catalog = Catalog(lifted(one))
    assert catalog.find("").spec.name == "one"
    assert catalog.find("one") is catalog.find("")
    assert len(catalog) == 1


def test_several_functions_are_found_by_name():
    """Without a name the caller is told how to give one; a wrong name is told what there is."""
    catalog = Catalog(lifted(one, two))
    assert catalog.find("two").spec.name == "two"
    assert [each.spec.name for each in catalog] == ["one", "two"]
    with pytest.raises(ProtocolViolation, match=r"2 functions .*invoker-function"):
        catalog.find("")
    with pytest.raises(ProtocolViolation, match="no function is named 'three'; this invoker serves one, two"):
        catalog.find("three")


def test_names_are_unique():
    """Two functions of one name cannot be told apart."""
    with pytest.raises(ValueError, match="named 'one'"):
        Catalog(lifted(one, one))


def test_R010_a_function_may_be_made_anew_for_each_invocation():
    """With ``renew`` each find gives a fresh function."""
    catalog = Catalog(lifted(one), renew=lambda function: lifted(one)[0])
    assert catalog.renews
    assert not Catalog(lifted(one)).renews
    assert catalog.find("") is not catalog.find("one")


def test_R010_how_a_function_is_called_is_known_without_making_it_anew():
    """By its name, in any spelling that finds it, and without one if it is the only function."""
    made = []
    catalog = Catalog(lifted(one), renew=lambda function: made.append(function) or function)
    assert [catalog.spec(name).name for name in ("", "one")] == ["one", "one"]
    assert made == []
    with pytest.raises(ProtocolViolation, match="no function is named 'two'"):
        catalog.spec("two")
