"""The text of a .proto file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from invoker import function
from invoker.protocols.typed.text import proto_text
from tests.protocols.typed.written import schema_of


@dataclass
class Item:
    """What is bought.

    Not shown.
    """

    name: str
    note: Any


def order(items: Iterator[Item], rush: bool = False) -> Iterator[int]:
    """Order items.

    At length.

    Args:
        rush: Send it
            today.
    """
    yield from ()


TEXT = """\
// shop/shop.proto, made of the signatures of the functions by `invoker proto`.

syntax = "proto3";

package shop;

import "google/protobuf/struct.proto";

// Functions of the module shop.
service ShopService {
  // Order items.
  rpc Order(stream OrderRequest) returns (stream OrderResponse);
}

message OrderRequest {
  Item items = 1;
  // Send it today. In the first message, if at all.
  optional bool rush = 2;
}

message OrderResponse {
  int64 out = 1;
}

// What is bought.
message Item {
  string name = 1;
  google.protobuf.Value note = 2;
}
"""


def test_H104_the_file_has_service_messages_and_comments():
    """The first line says where it belongs; imports are those that are needed."""
    assert proto_text(schema_of(order)) == TEXT


def test_H113_a_safe_function_has_no_side_effects():
    """So that clients may ask it by GET."""

    @function(safe=True)
    def look(x: int) -> int: ...

    assert (
        "  rpc Look(LookRequest) returns (LookResponse) {\n    option idempotency_level = NO_SIDE_EFFECTS;\n  }\n}\n"
    ) in proto_text(schema_of(look))


def test_H101_a_package_may_have_a_part_called_google():
    """The names of protobuf's own messages then begin with a dot."""
    schema = schema_of(order)
    schema.package = "my.google"
    assert "  .google.protobuf.Value note = 2;" in proto_text(schema)
