"""The rpcs that get, set and list variables, against a store in memory."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import pytest
from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import unpack
from invoker.core.spaces import StoreLimits
from invoker.core.steps import Answered, Ask, Await, Close
from invoker.core.store import Reason, Refused
from invoker.errors import Status
from invoker.protocols.toolbridge.errors import BridgeError
from invoker.protocols.toolbridge.variables import GetSessionVariable, ListSessionVariables, SetSessionVariable
from tests.protocols.toolbridge.hosts import SECOND
from tests.protocols.toolbridge.varied import Varied, any_of


def ns(stamp):
    return stamp.seconds * SECOND + stamp.nanos


def test_T115_a_missing_variable_is_no_error():
    """It does not exist, and has no value."""
    response = Varied().get("a", metadata=True)
    assert not response.exists
    assert not response.HasField("value")
    assert not response.HasField("metadata")


def test_T116_metadata_comes_when_it_is_asked_for():
    """Only then."""
    varied = Varied()
    varied.put("a", 5)
    assert not varied.get("a").HasField("metadata")
    assert varied.get("a", metadata=True).HasField("metadata")
    assert unpack(varied.get("a").value.SerializeToString()) == 5


def test_T117_a_variable_may_hold_none():
    """Which is told from a missing one, also where it is an empty Any."""
    varied = Varied()
    varied.put("a", None)
    varied.put("empty", any_pb2.Any())
    for name in ("a", "empty"):
        response = varied.get(name)
        assert response.exists
        assert response.HasField("value")
        assert unpack(response.value.SerializeToString()) is None


def test_T118_a_missing_variable_is_made_only_if_that_is_asked_for():
    """Else the error says so, and nothing is made."""
    varied = Varied()
    response = varied.put("a", 1, create=False)
    assert not response.success
    assert (response.error.type, response.error.details["code"]) == ("ValidationError", "variable_not_found")
    assert not varied.get("a").exists
    assert varied.put("a", 1).success
    assert varied.put("a", 2, create=False).success
    assert unpack(varied.get("a").value.SerializeToString()) == 2


def test_T119_a_request_without_a_value_deletes():
    """A missing variable is told, whether it may be made or not."""
    varied = Varied()
    varied.put("a", 1)
    watch = varied.watch()
    assert varied.put("a").success
    assert [(one.operation, one.HasField("value")) for one in watch.tell()] == [("delete", False)]
    assert not varied.get("a").exists
    for create in (True, False):
        assert varied.put("a", create=create).error.details["code"] == "variable_not_found"


def test_T098_T119_an_empty_value_is_none_and_no_value_deletes():
    """What counts is whether the field is there."""
    varied = Varied()
    assert varied.put("a", any_pb2.Any()).success
    found = varied.get("a")
    assert found.exists
    assert unpack(found.value.SerializeToString()) is None
    assert varied.put("a").success
    assert not varied.get("a").exists


def test_T120_the_server_owns_most_of_the_metadata():
    """What a caller says of times and types does not count; tags are replaced only where metadata is sent."""
    varied = Varied()
    lie = pb.VariableMetadata(type="lie", created_by="python", tags={"env": "prod"})
    lie.created_at.seconds = 1
    varied.put("a", 1, metadata=lie)
    first = varied.get("a", metadata=True).metadata
    assert (first.type, first.created_by, dict(first.tags)) == ("integer", "python", {"env": "prod"})
    assert ns(first.created_at) == ns(first.updated_at) == varied.host_sessions.now
    varied.host_sessions.now += SECOND
    varied.put("a", "text")
    second = varied.get("a", metadata=True).metadata
    assert (second.type, second.created_by, dict(second.tags)) == ("string", "python", {"env": "prod"})
    assert ns(second.updated_at) - ns(second.created_at) == SECOND
    varied.put("a", 1, metadata=pb.VariableMetadata(created_by="elixir", tags={"team": "x"}))
    third = varied.get("a", metadata=True).metadata
    assert (third.created_by, dict(third.tags)) == ("python", {"team": "x"})
    varied.put("a", 1, metadata=pb.VariableMetadata())
    assert not varied.get("a", metadata=True).metadata.tags
    varied.put("b", 1)
    assert varied.get("b", metadata=True).metadata.created_by == "elixir"
    for name, by in (("c", ""), ("d", "elixir"), ("e", "ruby")):
        varied.put(name, 1, metadata=pb.VariableMetadata(created_by=by))
        assert varied.get(name, metadata=True).metadata.created_by == "elixir"


def test_T121_the_time_of_an_update_grows_with_each():
    """Also while the clock stands still."""
    varied = Varied()
    times = []
    for number in range(5):
        varied.put("a", number)
        times.append(ns(varied.get("a", metadata=True).metadata.updated_at))
    assert times == sorted(set(times))


FRAME = any_pb2.Any(type_url="type.googleapis.com/pandas.DataFrame", value=b"PAR1")
UNREADABLE = {
    "no_url": any_pb2.Any(value=b"x"),
    "own": any_pb2.Any(type_url="x/own.Type", value=b"\xff"),
    "broken": any_pb2.Any(type_url="type.googleapis.com/google.protobuf.Int64Value", value=b"\xff"),
    "text": any_pb2.Any(type_url="type.googleapis.com/google.protobuf.StringValue", value=b"\x0a\x02\xff\xfe"),
    "json": any_pb2.Any(type_url="type.googleapis.com/google.protobuf.StringValue", value=b"{"),
    "list": any_pb2.Any(type_url="type.googleapis.com/google.protobuf.ListValue", value=b"\x0a\x05"),
    "map": any_pb2.Any(type_url="type.googleapis.com/google.protobuf.Struct", value=b"\x0a" + b"\xff" * 100_000),
}


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=list(UNREADABLE))
@pytest.mark.parametrize("is_aside", [False, True])
def test_T052_a_value_that_no_tool_could_read_is_refused_when_it_is_set(value, is_aside):
    """Whoever wants it would fail, long after its sender; a large one is read elsewhere, while others go on."""
    varied, work = Varied(), []
    varied.put("a", 1)
    if is_aside:
        varied.host_sessions.aside = SimpleNamespace(is_due=lambda: True, run=work.append)
    session = SetSessionVariable(varied.host_sessions)
    request = pb.SetVariableRequest(session_id="s1", variable_name="a", value=value)
    first, *rest = session.receive(request.SerializeToString())
    if is_aside and value.ByteSize() > 65_536:
        assert isinstance(first, Await)
        first.begin()
        with pytest.raises(BridgeError) as caught:
            work[0]()
        first, *rest = session.deliver(Answered(first.key, caught.value))
    response = pb.StatusResponse.FromString(first.frame)
    assert rest == [Close()]
    assert (response.success, response.error.type) == (False, "ValidationError")
    assert (response.error.details["code"], response.error.details["field"]) == ("decode", "value")
    assert unpack(varied.get("a").value.SerializeToString()) == 1


def test_T108_a_frame_is_kept_where_nobody_here_can_read_it():
    """Another worker may, and so may the host."""
    assert Varied().put("a", FRAME).success


def test_a_large_value_that_can_be_read_is_set_behind_that():
    varied, work = Varied(), []
    varied.host_sessions.aside = SimpleNamespace(is_due=lambda: True, run=work.append)
    session = SetSessionVariable(varied.host_sessions)
    request = pb.SetVariableRequest(session_id="s1", variable_name="a", value=any_of(["x" * 100] * 1000))
    (wait,) = session.receive(request.SerializeToString())
    wait.begin()
    assert work[0]() is None
    (ask,) = session.deliver(Answered(wait.key, None))
    assert isinstance(ask, Ask)


KINDS = [
    (None, "null"), (any_pb2.Any(), "null"), (True, "boolean"), (5, "integer"), (2**70, "integer"), (-1.5, "float"),
    ("text", "string"), ("", "string"), (b"\0", "binary"), ([1, "a"], "list"), ({"a": 1}, "map"), (FRAME, "dataframe"),
    (dt.datetime.now(dt.UTC), "opaque"),
    (any_pb2.Any(type_url="type.googleapis.com/python.Decimal", value=b"\x0a\x011"), "opaque"),
    (any_pb2.Any(type_url="type.googleapis.com/google.protobuf.StringValue", value=b'{"a": 1}'), "map"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind"), KINDS)
def test_T122_a_variable_has_a_type(value, kind):
    """By its value."""
    varied = Varied()
    assert varied.put("a", value).success
    (info,) = varied.listed()
    assert (info.type, info.metadata.type) == (kind, kind)
    assert varied.get("a").value == (value if isinstance(value, any_pb2.Any) else any_of(value))


def test_T123_a_list_is_sorted_and_filtered():
    """By code points; by the prefix, and by all of the tags."""
    varied = Varied()
    tags = {"é": {"env": "prod", "team": "x"}, "B": {"env": "prod"}, "a1": {"env": "dev", "team": ""}, "a": {}}
    for name, those in tags.items():
        varied.put(name, 1, metadata=pb.VariableMetadata(tags=those))

    def names(*asked: str, **more: int) -> list[str]:
        return [one.name for one in varied.listed(*asked, **more)]

    assert names() == ["B", "a", "a1", "é"]
    assert names("a") == ["a", "a1"]
    assert names("", "env=prod") == ["B", "é"]
    assert names("", "env=prod", "team") == ["é"]
    assert names("", "team") == ["a1", "é"]
    assert names("", "team=") == ["a1"]
    assert names("z") == names("", "env=other") == []
    assert names(limit=2) == ["B", "a"]
    assert names("", "team", limit=1) == ["a1"]
    status, info = varied.refusal(ListSessionVariables, pb.ListVariablesRequest(session_id="s1", limit=-1))
    assert (status, info.details["field"]) == (Status.INVALID_ARGUMENT, "limit")


def test_a_list_is_filtered_by_a_hundred_tags_at_most():
    """Each variable is held against each tag; with a million tags nothing else would run for hours."""
    varied = Varied()
    varied.put("a", 1, metadata=pb.VariableMetadata(tags={"t": "1"}))
    assert len(varied.listed("", *["t"] * 100)) == 1
    status, info = varied.refusal(ListSessionVariables, pb.ListVariablesRequest(session_id="s1", tags=["t"] * 101))
    assert (status, info.details["field"]) == (Status.INVALID_ARGUMENT, "tags")


def test_T123_a_list_has_a_thousand_unless_it_is_said():
    """They are read in pages."""
    varied = Varied()
    for number in range(1100):
        varied.put(f"{number:04}", number)
    assert [one.name for one in varied.listed()] == [f"{number:04}" for number in range(1000)]
    assert len(varied.listed(limit=1050)) == 1050
    assert len(varied.listed(limit=5000)) == 1100


def test_T124_the_size_is_that_of_the_encoded_value():
    """In bytes."""
    varied = Varied()
    varied.put("a", "x" * 1000)
    (info,) = varied.listed()
    assert info.size_bytes == any_of("x" * 1000).ByteSize()


@pytest.mark.parametrize("name", ["", "x" * 257, "é" * 129, "a\nb", "\x7f"])
def test_T125_a_name_that_is_none_is_refused(name):
    """In-band where the response can tell it, else by the status."""
    varied = Varied()
    error = varied.put(name, 1).error
    assert (error.type, error.details["field"]) == ("ValidationError", "variable_name")
    status, info = varied.refusal(GetSessionVariable, pb.GetVariableRequest(session_id="s1", variable_name=name))
    assert (status, info.type) == (Status.INVALID_ARGUMENT, "ValidationError")
    assert varied.put("é" * 128, 1).success


def test_T125_a_session_has_a_quota():
    """Of variables and of bytes; a variable that is there may still be written."""
    varied = Varied(StoreLimits(items=2, space_bytes=5000))
    assert varied.put("a", 1).success
    assert varied.put("b", 1).success
    for error in (varied.put("c", 1).error, varied.put("a", "x" * 5000).error):
        assert (error.type, error.details["code"]) == ("ResourceExhausted", "variable_quota")
    assert varied.put("a", 2).success


def test_T017_sessions_have_variables_of_their_own():
    """A name of one is nothing in the other."""
    varied = Varied()
    varied.make("s2")
    varied.put("a", 1)
    assert not varied.get("a", "s2").exists


@pytest.mark.parametrize(("session_id", "code"), [("s1", "cleaned"), ("s2", "unknown"), ("s3", "expired")])
def test_T008_T009_a_session_that_is_gone_says_why(session_id, code):
    """In-band or by the status, with the trailer."""
    varied = Varied()
    varied.make("s3")
    varied.host_sessions.now += 60 * SECOND
    varied.make("s1")
    varied.drop("s1")
    error = varied.put("a", 1, session_id=session_id).error
    assert (error.type, error.details["code"]) == ("SessionExpired", code)
    for kind, request in (
        (GetSessionVariable, pb.GetVariableRequest(session_id=session_id, variable_name="a")),
        (ListSessionVariables, pb.ListVariablesRequest(session_id=session_id)),
    ):
        status, info = varied.refusal(kind, request)  # type: ignore[type-abstract]
        assert (status, info.type, info.details["code"]) == (Status.NOT_FOUND, "SessionExpired", code)


def test_a_store_that_cannot_be_reached_is_told():
    """In-band, or as UNAVAILABLE, so that clients try again."""
    varied = Varied()
    write = SetSessionVariable(varied.host_sessions)
    write.receive(pb.SetVariableRequest(session_id="s1", variable_name="a", value=any_of(1)).SerializeToString())
    (sent, _) = write.deliver(Answered("variables", Refused(Reason.UNAVAILABLE)))
    error = pb.StatusResponse.FromString(sent.frame).error  # type: ignore[union-attr]
    assert (error.type, error.details["code"]) == ("InternalError", "store")
    read = GetSessionVariable(varied.host_sessions)
    read.receive(pb.GetVariableRequest(session_id="s1", variable_name="a").SerializeToString())
    (close,) = read.deliver(Answered("variables", Refused(Reason.UNAVAILABLE)))
    assert close.error.status is Status.UNAVAILABLE  # type: ignore[union-attr]
