"""Agents over gRPC, on DSPy, with models that follow a script (scenarios 61 to 68)."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest

pytest.importorskip("dspy")

from invoker._pb.dspex import bridge_pb2 as pb
from tests.conftest import SLOW
from tests.protocols.toolbridge.service.agents.bridged import LEFT, RUNS, House, asking, kinds, observed
from tests.protocols.toolbridge.service.agents.endpoints import Chat, step, text
from tests.transports.bridge import error_of, packed

ADD = step("on", "add", {"a": 1, "b": 2})
FINISH = step("done", "finish")
ANSWER = text(reasoning="so", answer="x")


def run(*said: str | int, signature: str = "question -> answer", **fields: Any) -> list[pb.AgentExecutionChunk]:
    """The chunks of an agent whose model says these things."""
    with Chat(*said) as chat, House(chat.url) as house:
        return house.execute(house.create(signature, **fields))


def test_T140_T142_two_steps_then_finish() -> None:
    """Scenario 61."""
    said = (ADD, step("two", "add", {"a": 3, "b": 4}), FINISH, text(reasoning="so", total="7"))
    chunks = run(*said, signature="question -> total: int", steps=True)
    assert kinds(chunks) == "TAOTAOTAR"
    assert observed(chunks) == [3, 7]
    assert chunks[-1].result.final_answer["total"] == 7
    assert chunks[-1].result.total_steps == len(chunks[-1].result.steps) == 3
    assert [getattr(one, str(one.WhichOneof("content"))).step for one in chunks[:-1]] == [1, 1, 1, 2, 2, 2, 3, 3]


def test_T143_whatever_goes_wrong_in_a_step_is_observed() -> None:
    """Scenario 62."""
    said = (
        step("a", "os.system", {"x": 1}),
        step("b", "add", '{"a": 1, "b": '),
        step("c", "add", "[1]"),
        step("d", "add", {"a": "x", "b": 2}),
        step("e", "add", {"a": 1, "b": 2, "z": 3}),
        step("f", "fail", {}),
        FINISH,
    )
    chunks = run(*said, ANSWER, max_iters=10)
    assert kinds(chunks) == "TAO" * 6 + "TAR"
    errors = [one["error"] for one in observed(chunks)]
    assert [one["type"] for one in errors] == ["ToolNotFound", *["ValidationError"] * 4, "InternalError"]
    assert "os.system" in errors[0]["message"]
    assert "no luck" in errors[5]["message"]


def test_T143_a_tool_that_was_not_selected_is_foreign() -> None:
    chunks = run(step("a", "fail"), FINISH, ANSWER, tool_names=["add"])
    assert observed(chunks)[0]["error"]["type"] == "ToolNotFound"


def test_T143_an_answer_that_cannot_be_read_is_a_step() -> None:
    """DSPy asks once more, for JSON, before it gives up."""
    chunks = run("I am a teapot", "{", FINISH, ANSWER)
    assert kinds(chunks) == "TAOTAR"
    assert observed(chunks)[0]["error"]["type"] == "ValidationError"


def test_a_model_that_answers_in_json_is_understood() -> None:
    said = json.dumps({"next_thought": "on", "next_tool_name": "add", "next_tool_args": {"a": 1, "b": 2}})
    assert observed(run(said, said, FINISH, ANSWER)) == [3]


def test_T144_after_max_iters_the_answer_is_extracted() -> None:
    """Scenario 63."""
    with Chat(ADD, ADD, ANSWER) as chat, House(chat.url) as house:
        assert kinds(house.execute(house.create(max_iters=2))) == "TAOTAOR"
        assert len(chat.asked) == 3


def test_T144_an_extraction_that_fails_is_told() -> None:
    chunks = run(ADD, "nonsense", max_iters=1)
    assert kinds(chunks) == "TAOE"
    assert (chunks[-1].error.type, chunks[-1].error.details["code"]) == ("InternalError", "max_iters")


def test_T142_an_answer_of_another_type_is_none() -> None:
    chunks = run(FINISH, text(reasoning="r", n="many"), signature="question -> n: int")
    assert (kinds(chunks), chunks[-1].error.details["code"]) == ("TAE", "extract")


def test_T141_without_stream_one_chunk_comes() -> None:
    """Scenario 64."""
    with Chat(FINISH, ANSWER) as chat, House(chat.url) as house:
        (only,) = house.execute(house.create(), stream=False)
    assert only.result.final_answer["answer"] == "x"


def test_T137_urls_and_functions_of_the_caller_are_refused() -> None:
    """Scenario 65."""
    with Chat("x") as chat, Chat("x") as other, House(chat.url) as house:
        for llm in ({"base_url": other.url}, {"provider": "os:system"}, {"entrypoint": "os:system"}):
            with pytest.raises(grpc.RpcError) as caught:
                house.create(llm=llm)
            assert error_of(caught.value)[0] is grpc.StatusCode.PERMISSION_DENIED
        assert other.asked == []


def test_T145_an_endpoint_that_has_too_much_to_do() -> None:
    """Scenario 66."""
    assert kinds(run(429, 429, FINISH, ANSWER)) == "TAR"


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "ResourceExhausted"), (500, "InternalError"), (401, "InternalError")]
)
def test_T145_then_its_failure_is_told(status: int, kind: str) -> None:
    (only,) = run(status)
    assert (only.error.type, only.error.details["code"]) == (kind, "llm")


def test_T145_so_is_one_of_the_extraction() -> None:
    chunks = run(FINISH, 500)
    assert (kinds(chunks), chunks[-1].error.details["code"]) == ("TAE", "llm")


def test_T139_the_key_is_told_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Scenario 68: the endpoint repeats the key in its error, and the caller sends one too."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("INVOKER_LLM_KEY_CHAT", "sk-operator")
    audit = tmp_path / "audit"
    with Chat(ADD, 401) as chat, House(chat.url, audit=str(audit), audit_args=("on",), debug=True) as house:
        agent_id = house.create(llm={"api_key": "sk-caller"})
        chunks = house.execute(agent_id)
        info = house.transport.rpc("GetSessionInfo", session_id="s1")
        house.transport.bridge.watch.close()
    assert kinds(chunks) == "TAOE"
    assert chat.asked[0][1]["authorization"] == "Bearer sk-operator"
    told = f"{agent_id}{chunks}{info}{caplog.text}{capfd.readouterr()}{audit.read_text()}"
    assert "sk-operator" not in told
    assert "sk-caller" not in told


def test_T148_calls_of_agents_go_the_way_of_all_calls(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    with Chat(ADD, FINISH, ANSWER) as chat, House(chat.url, audit=str(audit)) as house:
        house.execute(house.create())
        house.transport.bridge.watch.close()
    (line,) = [json.loads(one) for one in audit.read_text().splitlines()]
    assert line["via"] == "agent"


def test_T148_tools_get_the_context_of_the_run() -> None:
    with Chat(step("a", "who"), FINISH, ANSWER) as chat, House(chat.url) as house:
        request = asking(house.create())
        request.context["user"].CopyFrom(packed("ann"))
        chunks = list(house.start("", request))
    assert observed(chunks) == ["{'user': 'ann'}"]


def test_T149_a_cancel_ends_the_tool_and_asks_no_model() -> None:
    """Scenario 67."""
    with Chat(step("a", "forever")) as chat, House(chat.url) as house:
        call = house.start(house.create())
        assert [next(call).WhichOneof("content") for _ in range(2)] == ["thought", "action"]
        assert RUNS.wait(5 * SLOW)
        call.cancel()
        assert LEFT.wait(5 * SLOW)
        while house.active():
            pass
    assert len(chat.asked) == 1


def test_T149_a_cancel_while_the_model_thinks() -> None:
    stop = threading.Event()
    with Chat(lambda _: stop.wait(5 * SLOW)) as chat, House(chat.url) as house:
        try:
            call = house.start(house.create())
            assert chat.came.wait(5 * SLOW)
            call.cancel()
            while house.active():
                pass
        finally:
            stop.set()
    assert len(chat.asked) == 1


def test_a_forced_clean_up_ends_the_run() -> None:
    with Chat(step("a", "forever")) as chat, House(chat.url) as house:
        call = house.start(house.create())
        next(call), next(call)
        assert RUNS.wait(5 * SLOW)
        house.transport.rpc("CleanupSession", session_id="s1", force=True)
        last = list(call)[-1]
        assert LEFT.wait(5 * SLOW)
    assert (last.error.type, last.error.details["code"]) == ("SessionExpired", "cleaned")


def test_many_runs_of_one_agent_at_once_do_not_mix() -> None:
    def echo(n: int) -> str:
        return f"question {n}"

    with House("tests.protocols.toolbridge.service.agents.scripts:repeats") as house:
        agent_id = house.create(max_iters=3)
        calls = [house.start(agent_id, question=echo(n)) for n in range(30)]
        answers = [list(one)[-1].result.final_answer["answer"] for one in calls]
    assert answers == [echo(n) for n in range(30)]


def test_nothing_is_kept_of_a_run() -> None:
    """DSPy's global history and traces would hold what agents were asked."""
    import dspy
    from dspy.clients.base_lm import GLOBAL_HISTORY

    assert kinds(run(ADD, FINISH, ANSWER)) == "TAOTAR"
    assert GLOBAL_HISTORY == []
    assert not dspy.settings.trace


def test_fifty_agents_at_once_leave_the_loop_to_others() -> None:
    """Other rpcs are answered while they run, and each run has an end."""
    with House("tests.protocols.toolbridge.service.agents.scripts:repeats") as house:
        agents = [house.create() for _ in range(50)]
        calls = [house.start(one) for one in agents]
        while house.active():
            assert house.transport.execute("add", 1, 2).success
        assert [kinds(list(one)) for one in calls] == ["TAOTAR"] * 50
