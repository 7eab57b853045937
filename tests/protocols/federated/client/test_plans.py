"""`invoker.protocols.federated.client.plans`: what a device runs, and what it does not."""

from __future__ import annotations

import base64
import json

import pytest

from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.protocols.federated.client.plans import entrypoint_plan, pickle_plan, read_plan
from invoker.protocols.federated.wire.names import PLAN_MAGIC

KEY = b"0123456789abcdef"


def double(checkpoint: int, rate: int = 2) -> int:
    """A function that a plan brings."""
    return checkpoint * rate


def test_F074_a_plan_names_a_function() -> None:
    """Magic and JSON, there and back."""
    data = entrypoint_plan("functions.federated:train", {"rate": 0.5})
    assert data.startswith(b"INVPLAN1\n{")
    assert json.loads(data[9:]) == {"kind": "entrypoint", "fn": "functions.federated:train", "params": {"rate": 0.5}}
    plan = read_plan(data)
    assert (plan.fn, plan.params, plan.function) == ("functions.federated:train", {"rate": 0.5}, None)
    assert read_plan(PLAN_MAGIC + b'{"kind": "entrypoint", "fn": "m:f"}').params == {}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "do not begin with INVPLAN1"),
        (b"\x0a\x05graph", "do not begin with INVPLAN1"),
        (PLAN_MAGIC + b"{", "not JSON"),
        (PLAN_MAGIC + b"\xff", "not JSON"),
        (PLAN_MAGIC + b"[" * 100_000, "nested too deeply|not JSON"),
        (PLAN_MAGIC + b"[]", "it is not like"),
        (PLAN_MAGIC + b'{"kind": "entrypoint", "fn": "", "params": {}}', "it is not like"),
        (PLAN_MAGIC + b'{"kind": "entrypoint", "fn": 5}', "it is not like"),
        (PLAN_MAGIC + b'{"kind": "entrypoint", "fn": "m:f", "params": []}', "it is not like"),
        (PLAN_MAGIC + b'{"kind": "tensorflow", "fn": "m:f"}', "its kind is 'tensorflow'"),
    ],
)
def test_F074_other_plans_are_not_run(data: bytes, text: str) -> None:
    """The status is UNIMPLEMENTED."""
    with pytest.raises(CallFailed, match=text) as caught:
        read_plan(data)
    assert caught.value.status is Status.UNIMPLEMENTED


def test_F074_code_is_taken_only_with_a_key_and_a_valid_signature() -> None:
    """Without a key, with another one, or changed in any part, nothing is unpickled."""
    data = pickle_plan(double, KEY, params={"rate": 3})
    plan = read_plan(data, pickle_key=KEY)
    assert plan.function is not None
    assert (plan.fn, plan.function(7, **plan.params)) == ("double", 21)
    with pytest.raises(CallFailed, match="it contains code, and this client does not allow code"):
        read_plan(data)
    with pytest.raises(CallFailed, match="its signature is wrong"):
        read_plan(data, pickle_key=b"another key 1234")
    said = json.loads(data[len(PLAN_MAGIC) :])
    bomb = base64.b64encode(b"cos\nsystem\n(S'exit 1'\ntR.").decode()
    for changed in ({"pickle": bomb}, {"params": {"rate": 4}}, {"fn": "other"}, {"hmac": None}, {"more": 1}):
        with pytest.raises(CallFailed, match="its signature is wrong"):
            read_plan(PLAN_MAGIC + json.dumps(said | changed).encode(), pickle_key=KEY)
