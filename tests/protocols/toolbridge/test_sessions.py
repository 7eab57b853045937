"""The rpcs about host sessions, against a store in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.spaces import MemoryStore, StoreLimits
from invoker.core.steps import Answered, Ask, Close, Send, Step, Timer
from invoker.core.store import Hold, Put
from invoker.errors import Status
from invoker.protocols.toolbridge.host_sessions import space_of
from invoker.protocols.toolbridge.sessions import CleanupSession, GetSessionInfo, GetSessionTools, InitializeSession
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.tools import Tools
from invoker.protocols.toolbridge.unary import UnarySession
from tests.protocols.toolbridge.hosts import SECOND, began, new_host_sessions


class Subscriber:
    """A subscriber that keeps its answers."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def answered(self, key: str, value: Any) -> None:
        self.answers.append(value)

    def has_news(self, news: Any) -> None:
        raise AssertionError("it subscribes to nothing")


class Hosted:
    """`HostSessions` and a store on one clock, and the rpcs about sessions."""

    def __init__(self, limits: StoreLimits | None = None, settings: BridgeSettings | None = None) -> None:
        self.host_sessions = new_host_sessions(settings or BridgeSettings(ttl_s=60.0))
        self.host_sessions.tools = Tools(())
        self.store = MemoryStore(limits, clock=lambda: self.host_sessions.now)

    def run(self, kind: type[UnarySession[Any]], request: Any) -> tuple[list[bytes], Close | None]:
        """What an rpc sends, and how it ends if it does."""
        session, subscriber = kind(self.host_sessions), Subscriber()
        sent: list[bytes] = []
        steps: Sequence[Step] = session.receive(request.SerializeToString())
        while steps:
            asked = [one for one in steps if isinstance(one, Ask)]
            sent += [one.frame for one in steps if isinstance(one, Send)]
            if closed := [one for one in steps if isinstance(one, Close)]:
                return sent, closed[0]
            for one in asked:
                self.store.ask(subscriber, one.key, one.question)
            steps = session.deliver(Answered("k", subscriber.answers.pop())) if subscriber.answers else ()
        return sent, None

    def init(self, session_id: str = "s1", **fields: Any) -> pb.InitializeSessionResponse:
        (sent,), close = self.run(InitializeSession, pb.InitializeSessionRequest(session_id=session_id, **fields))
        assert close == Close()
        return pb.InitializeSessionResponse.FromString(sent)

    def clean(self, session_id: str = "s1", *, force: bool = False) -> pb.StatusResponse:
        (sent,), close = self.run(CleanupSession, pb.CleanupSessionRequest(session_id=session_id, force=force))
        assert close == Close()
        return pb.StatusResponse.FromString(sent)

    def info(self, session_id: str = "s1") -> pb.SessionInfo:
        sent, close = self.run(GetSessionInfo, pb.GetSessionInfoRequest(session_id=session_id))
        assert close == Close()
        return pb.SessionInfo.FromString(sent[0])

    def code_of_info(self, session_id: str = "s1") -> str:
        """Why a session is not there."""
        sent, close = self.run(GetSessionInfo, pb.GetSessionInfoRequest(session_id=session_id))
        assert sent == []
        assert close is not None
        assert close.error is not None
        assert close.error.status is Status.NOT_FOUND
        ((_, info),) = close.trailers
        assert isinstance(info, bytes)
        return pb.ErrorInfo.FromString(info).details["code"]

    def keep(self, name: str) -> None:
        """Write a variable."""
        self.store.ask(Subscriber(), "put", Put(space_of("s1"), f"var/{name}", b"1"))


def test_T001_a_fresh_session_tells_what_it_can_call():
    """How many tools, and what is served."""
    hosted = Hosted()
    hosted.host_sessions.capabilities = ("streaming", "batch")
    response = hosted.init()
    assert response.success
    assert not response.HasField("error")
    assert response.tool_count == 0
    assert list(response.capabilities) == ["streaming", "batch"]
    assert hosted.host_sessions.find("s1") is not None


@pytest.mark.parametrize("session_id", ["", "x" * 257, "é" * 129, "a\nb", "a\x7fb", "\x85"])
def test_T002_T003_an_id_that_is_none_is_refused(session_id):
    """In-band, with the name of the field; nothing is made."""
    response = Hosted().init(session_id)
    assert not response.success
    assert response.error.type == "ValidationError"
    assert response.error.details["field"] == "session_id"


@pytest.mark.parametrize("session_id", ["x" * 256, "é" * 128, "a b/c", "\u200b"])
def test_T003_ids_of_any_letters_are_taken(session_id):
    """Up to 256 bytes."""
    assert Hosted().init(session_id).success


def test_T004_an_equal_request_finds_the_session():
    """Its state is kept, its age as well, and it is used by this."""
    hosted = Hosted()
    hosted.init(metadata={"a": "1", "b": "2"}, callback_address="")
    hosted.keep("x")
    hosted.host_sessions.now += 50 * SECOND
    assert hosted.init(metadata={"b": "2", "a": "1"}, config=pb.SessionConfig()).success
    hosted.host_sessions.now += 50 * SECOND
    info = hosted.info()
    assert (info.variable_count, info.created_at.seconds) == (1, 1000)
    assert hosted.host_sessions.created == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": {"a": "2"}},
        {"callback_address": "127.0.0.1:1"},
        {"config": pb.SessionConfig(default_timeout_ms=5)},
        {"config": pb.SessionConfig(enable_caching=True)},
    ],
)
def test_T005_another_request_of_the_same_id_is_refused(fields):
    """The session that is there is not touched."""
    hosted = Hosted()
    hosted.init()
    response = hosted.init(**fields)
    assert not response.success
    assert (response.error.type, response.error.details["code"]) == ("ValidationError", "session_exists")
    session = hosted.host_sessions.find("s1")
    assert session is not None
    assert session.timeout_ms == 0
    assert not session.caches


@pytest.mark.parametrize("name", ["max_concurrent_tools", "default_timeout_ms"])
def test_T006_a_negative_config_is_refused_by_name(name):
    """Zero and nothing are the default."""
    response = Hosted().init(config=pb.SessionConfig(**{name: -1}))
    assert response.error.type == "ValidationError"
    assert response.error.details["field"] == f"config.{name}"


def test_T008_T009_a_session_that_is_gone_or_never_was_has_one_kind():
    """The code tells them apart, before anybody has swept."""
    hosted = Hosted()
    assert hosted.code_of_info() == "unknown"
    hosted.init()
    hosted.host_sessions.now += 60 * SECOND
    assert hosted.code_of_info() == "expired"


def test_T012_too_many_sessions_are_refused():
    """Those that are there stay."""
    hosted = Hosted(StoreLimits(spaces=2))
    hosted.init("a")
    hosted.init("b")
    response = hosted.init("c")
    assert (response.error.type, response.error.details["code"]) == ("ResourceExhausted", "session_quota")
    assert hosted.info("a").session_id == "a"


def test_T013_a_session_in_use_is_not_cleaned_up_without_force():
    """How many operations run is told; nothing has changed."""
    hosted = Hosted()
    hosted.init()
    session = hosted.host_sessions.sessions["s1"]
    began(hosted.host_sessions, session)
    began(hosted.host_sessions, session, is_tool=False)
    response = hosted.clean()
    assert not response.success
    assert response.error.type == "ValidationError"
    assert dict(response.error.details) == {"code": "active_operations", "active_operations": "2"}
    assert hosted.info().active_operations == 2


def test_T013_what_runs_in_another_process_counts_as_well():
    """The store knows of it; the session can be called afterwards."""
    hosted = Hosted()
    hosted.init()
    other = Subscriber()
    hosted.store.ask(other, "hold", Hold(space_of("s1")))
    response = hosted.clean()
    assert response.error.details["active_operations"] == "1"
    began(hosted.host_sessions, hosted.host_sessions.sessions["s1"])


def test_T014_a_forced_clean_up_deletes_a_session_in_use():
    """Nothing begins in it any more."""
    hosted = Hosted()
    hosted.init()
    began(hosted.host_sessions, hosted.host_sessions.sessions["s1"])
    assert hosted.clean(force=True).success
    assert hosted.code_of_info() == "cleaned"
    assert hosted.host_sessions.sessions == {}


def test_T014_a_forced_clean_up_waits_for_what_runs_five_seconds_at_most():
    """Whoever holds the space has that long to let go of it."""
    hosted = Hosted()
    hosted.init()
    holder = Subscriber()
    hosted.store.ask(holder, "hold", Hold(space_of("s1")))
    session = CleanupSession(hosted.host_sessions)
    request = pb.CleanupSessionRequest(session_id="s1", force=True).SerializeToString()
    ask, timer = session.receive(request)
    assert isinstance(ask, Ask)
    assert timer == Timer(5.0)
    subscriber = Subscriber()
    hosted.store.ask(subscriber, ask.key, ask.question)
    assert subscriber.answers == []
    sent, close = session.elapsed()
    assert isinstance(sent, Send)
    assert pb.StatusResponse.FromString(sent.frame).success
    assert close == Close()
    hosted.store.leave(holder)
    assert subscriber.answers == [None]


def test_T015_cleaning_up_what_is_not_there_succeeds():
    """It says something."""
    response = Hosted().clean("never")
    assert response.success
    assert response.message
    assert not response.HasField("error")


def test_T016_the_counters_of_a_session_are_live():
    """This call is not among the operations."""
    hosted = Hosted()
    hosted.init(metadata={"a": "1"})
    hosted.keep("x")
    hosted.host_sessions.now += 5 * SECOND
    info = hosted.info()
    assert (info.session_id, info.variable_count, info.active_operations) == ("s1", 1, 0)
    assert dict(info.metadata) == {"a": "1"}
    assert (info.created_at.seconds, info.last_activity.seconds) == (1000, 1005)


def test_T004_metadata_in_another_order_are_equal():
    """A map has none, and clients send it as they like."""
    hosted = Hosted()
    metadata = {f"name-{number}": str(number) for number in range(32)}
    assert hosted.init(metadata=metadata).success
    assert hosted.init(metadata=dict(reversed(metadata.items()))).success
    assert hosted.init(metadata={**metadata, "name-7": "other"}).error.details["code"] == "session_exists"


@pytest.mark.parametrize(
    ("metadata", "is_taken"),
    [
        ({str(n): "" for n in range(32)}, True),
        ({str(n): "" for n in range(33)}, False),
        ({"a": "x" * 4095}, True),
        ({"a": "x" * 4096}, False),
        ({f"{n}": "x" for n in range(100_000)}, False),
    ],
)
def test_T018_the_metadata_of_a_session_are_few(metadata, is_taken):
    """32 entries, 4096 bytes of names and values."""
    response = Hosted().init(metadata=metadata)
    assert response.success is is_taken
    if not is_taken:
        assert response.error.details["field"] == "metadata"


def test_T020_a_session_made_anew_starts_empty():
    """After a clean-up and after it has expired."""
    hosted = Hosted()
    hosted.init()
    hosted.keep("x")
    hosted.host_sessions.now += SECOND
    hosted.clean()
    hosted.init()
    assert (hosted.info().variable_count, hosted.info().created_at.seconds) == (0, 1001)
    hosted.keep("x")
    hosted.host_sessions.now += 60 * SECOND
    hosted.init()
    assert (hosted.info().variable_count, hosted.info().created_at.seconds) == (0, 1061)


def test_T033_the_tools_of_a_session_are_listed():
    """Those of the host come behind those of this process."""

    class Some:
        specs = (pb.ToolSpec(name="b"), pb.ToolSpec(name="c"))
        tells = True

        def __len__(self) -> int:
            return 2

    class Others:
        specs = (pb.ToolSpec(name="callback:a"),)

    hosted = Hosted()
    hosted.init()
    hosted.host_sessions.tools = Some()
    hosted.host_sessions.sessions["s1"].callback = Others()
    sent, _ = hosted.run(GetSessionTools, pb.GetSessionToolsRequest(session_id="s1"))
    names = [one.name for one in pb.GetSessionToolsResponse.FromString(sent[0]).tools]
    assert names == ["b", "c", "callback:a"]
    assert hosted.info().tool_count == 3


def test_T153_no_session_is_made_while_the_process_drains():
    """The status says that another process may."""
    hosted = Hosted()
    hosted.host_sessions.drains = lambda: True
    sent, close = hosted.run(InitializeSession, pb.InitializeSessionRequest(session_id="s1"))
    assert sent == []
    assert close is not None
    assert close.error is not None
    assert close.error.status is Status.UNAVAILABLE
