"""Plans: the bytes by which a server tells devices which function to run (F-074).

A plan of the first kind names a function that the device already has, and contains no code. A plan of the second kind
contains a pickled function. A client runs it only if the client has a key and the signature of the plan is valid.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.message import EMPTY
from invoker.protocols.federated.wire.names import PLAN_MAGIC


class Plan(msgspec.Struct, frozen=True):
    """A plan, which says what a device runs.

    Attributes:
        fn: The name of the function, ``module:function``, on the server and the device.
        params: Values for parameters of the function, by name.
        function: The function itself, if the plan contains it.
    """

    fn: str
    params: Mapping[str, Any] = EMPTY
    function: Callable[..., Any] | None = None


def entrypoint_plan(fn: str, params: Mapping[str, Any] = EMPTY) -> bytes:
    """Make a plan that names a function of the device."""
    return PLAN_MAGIC + json.dumps({"kind": "entrypoint", "fn": fn, "params": dict(params)}, sort_keys=True).encode()


def pickle_plan(function: Callable[..., Any], key: bytes, *, fn: str = "", params: Mapping[str, Any] = EMPTY) -> bytes:
    """Make a plan that contains its function, for clients that have the key.

    Args:
        function: The function, which cloudpickle pickles by value.
        key: The key that signs the plan; at least 16 bytes.
        fn: The name of the function in logs.
        params: Values for parameters of the function, by name.
    """
    import cloudpickle

    said = {"kind": "cloudpickle", "fn": fn or function.__qualname__, "params": dict(params)}
    said["pickle"] = base64.b64encode(cloudpickle.dumps(function)).decode()
    said["hmac"] = _signature(said, key)
    return PLAN_MAGIC + json.dumps(said, sort_keys=True).encode()


def read_plan(data: bytes, *, pickle_key: bytes | None = None) -> Plan:
    """Parse a plan.

    Args:
        data: The bytes from the server.
        pickle_key: The key that signs plans which contain their function; None: such plans are refused.

    Raises:
        CallFailed: UNIMPLEMENTED: this device does not run such plans.
    """
    if not data.startswith(PLAN_MAGIC):
        raise _refused(f"its {len(data)} bytes do not begin with INVPLAN1")
    try:
        said = json.loads(data[len(PLAN_MAGIC) :])
    except ValueError as error:
        raise _refused(f"it is not JSON: {error}") from None
    except RecursionError:
        raise _refused("it is nested too deeply") from None
    params = said.get("params", {}) if isinstance(said, dict) else None
    if not isinstance(params, dict) or not isinstance(said.get("fn"), str) or not said["fn"]:
        raise _refused('it is not like {"kind": "entrypoint", "fn": "module:function", "params": {}}')
    if said.get("kind") == "entrypoint":
        return Plan(said["fn"], params)
    if said.get("kind") == "cloudpickle":
        return Plan(said["fn"], params, _unpickled(said, pickle_key))
    raise _refused(f"its kind is {str(said.get('kind'))[:40]!r}, and must be 'entrypoint' or 'cloudpickle'")


def _unpickled(said: dict[str, Any], key: bytes | None) -> Callable[..., Any]:
    if key is None:
        raise _refused("it contains code, and this client does not allow code")
    if not hmac.compare_digest(str(said.get("hmac")).encode(), _signature(said, key).encode()):
        raise _refused("it contains code, and its signature is wrong")
    import pickle

    try:
        function: Callable[..., Any] = pickle.loads(base64.b64decode(said["pickle"]))  # noqa: S301 - the signature was checked
    except (binascii.Error, pickle.UnpicklingError, ImportError, AttributeError, EOFError) as error:
        raise _refused(f"its code cannot be loaded: {error}") from None
    return function


def _signature(said: Mapping[str, Any], key: bytes) -> str:
    """The signature over all fields of the plan except the signature itself."""
    signed = {name: said[name] for name in said if name != "hmac"}
    return hmac.new(key, PLAN_MAGIC + json.dumps(signed, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def _refused(why: str) -> CallFailed:
    return CallFailed(Status.UNIMPLEMENTED, f"the plan cannot be run: {why}")
