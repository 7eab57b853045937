"""Values of JSON, and times."""

from __future__ import annotations

import datetime as dt

import pytest
from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from invoker.protocols.typed.values import (
    duration,
    fill,
    fill_struct,
    from_duration,
    from_timestamp,
    plain,
    plain_struct,
    timestamp,
)

TEXT = st.text(st.characters(codec="utf-8"))
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_H107_what_json_says_comes_back(value):
    """Integers come back as integers."""
    message = struct_pb2.Value()
    fill(message, value)
    found = plain(struct_pb2.Value.FromString(message.SerializeToString()))
    assert found == value
    assert isinstance(value, float) or type(found) is type(value)


def test_H107_an_empty_list_and_an_empty_object_are_told_apart():
    """A value that is not set is null."""
    for value in ([], {}, [{}], {"a": []}):
        message = struct_pb2.Value()
        fill(message, value)
        assert plain(message) == value
    assert plain(struct_pb2.Value()) is None


def test_an_object_is_a_struct():
    """Its names are those of the object."""
    message = struct_pb2.Struct()
    fill_struct(message, {"a": (1, "b")})
    assert plain_struct(message) == {"a": [1, "b"]}


def test_H107_an_integer_that_a_double_cannot_hold_is_refused():
    """It would come back as another one."""
    with pytest.raises(ValueError, match=r"beyond 2\*\*53"):
        fill(struct_pb2.Value(), 2**53 + 1)


@given(st.datetimes())
def test_H105_moments_come_back_to_the_microsecond(moment):
    """One without a zone is taken for UTC."""
    made = timestamp_pb2.Timestamp(**timestamp(moment))
    assert made.ToDatetime() == moment
    assert from_timestamp(made) == moment.replace(tzinfo=dt.UTC)


def test_H105_a_moment_of_another_zone_comes_in_utc():
    """It is the same moment."""
    moment = dt.datetime(2020, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert from_timestamp(timestamp_pb2.Timestamp(**timestamp(moment))) == moment


@given(st.timedeltas(dt.timedelta(days=-100_000), dt.timedelta(days=100_000)))
def test_H105_durations_come_back_to_the_microsecond(passed):
    """Seconds and nanoseconds have the same sign, as protobuf wants it."""
    made = duration_pb2.Duration(**duration(passed))
    assert made.seconds * made.nanos >= 0
    assert made.ToTimedelta() == passed
    assert from_duration(made) == passed
