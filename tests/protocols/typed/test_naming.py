"""Names of protobuf."""

from __future__ import annotations

import pytest

from invoker.protocols.typed.naming import (
    Names,
    camel,
    field_word,
    json_name,
    package_of,
    service_of,
    snake,
    upper,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("running_mean", "RunningMean"),
        ("fooBar", "FooBar"),
        ("a.b-c d", "ABCD"),
        ("Box[int]", "BoxInt"),
        ("2nd", "X2nd"),
        ("ключ", "X"),
        ("_private", "Private"),
    ],
)
def test_H101_methods_and_messages_are_in_capitals(text, found):
    """Signs that protobuf does not take part words; a name begins with a letter."""
    assert camel(text) == found


@pytest.mark.parametrize(
    ("text", "found"), [("RunningMean", "running_mean"), ("HTTPServer", "http_server"), ("int64", "int64"), ("9", "x9")]
)
def test_members_of_unions_are_in_snake_case(text, found):
    """Each hump is a word."""
    assert snake(text) == found


def test_values_of_enums_are_in_capitals():
    """As buf wants them."""
    assert upper("DarkGreen") == "DARK_GREEN"


@pytest.mark.parametrize(
    ("text", "found"), [("words", "words"), ("fooBar", "fooBar"), ("größe", "gr_e"), ("_", "x"), ("_x", "x")]
)
def test_H101_fields_are_called_as_their_parameters(text, found):
    """As far as protobuf takes the names."""
    assert field_word(text) == found


def test_json_names_are_those_of_protoc():
    """A letter behind an underline becomes a capital."""
    assert [json_name(one) for one in ("foo_bar", "fooBar", "item_1", "x")] == ["fooBar", "fooBar", "item1", "x"]


def test_H101_the_package_is_the_module():
    """One without a name is called functions."""
    assert [package_of(one) for one in ("shop.Cart", "square", "")] == ["shop.cart", "square", "functions"]
    assert service_of("shop.cart_items") == "CartItemsService"


def test_H101_a_name_that_is_taken_gets_a_number():
    """The number stands before what always ends the name."""
    names = Names("Row", key=str.lower)
    assert [names.give("row"), names.give("Row"), names.give("Add", "Request"), names.give("Add", "Request")] == [
        "row2", "Row3", "AddRequest", "Add2Request",
    ]  # fmt: skip
