"""What two worlds must agree on, and what they may do differently.

The protocol promises the replies of each output and their order, the status with its text, and the trailers. Logs and
counters tell the same story. These differences are allowed, and no others:

* **A function that ends before its inputs do** (its case ``is_early``). What the caller sent behind that end is read by
  the loop's driver, which reads whatever comes, and by a whole conversation, which has everything before it begins; a
  thread reads only what its function pulls. So counts of input differ, and so does whether a violation behind the end
  is noticed: the call ends as the function does, or with the violation.
* **A violation among the inputs** is found when its frame is read. How many replies came before it differs, and so do
  the counts. It is the same violation.
* **One of two outputs fails, or two read one input**: how much the other has given by then differs, and whose value it
  is (``is_loose``, ``is_shared``).
"""

from __future__ import annotations

from typing import Any

from tests.simulate.seen import Seen, Witness

_OF_A_DRIVER = "run"
"""The field that names the driver."""
_COUNTS = ("frames_in", "bytes_in")
_REPLIES = ("frames_out", "bytes_out")


def compare(witness: Witness, one: Seen, other: Seen) -> None:
    """Fail unless two worlds agree on a conversation whose end is sure."""
    plan, expect = one.plan, witness.expect
    if not witness.scene.is_sure(plan):
        return
    case, where = plan.case, f"of {one.number} in the worlds of {one.world} and {other.world}"
    is_fault_behind = bool(plan.faults) and case.is_early
    mine, theirs = _end(one), _end(other)
    if not is_fault_behind:
        expect(mine == theirs, f"ends {where}: {mine}, {theirs}")
    if not plan.faults and not case.is_loose and not case.is_shared:
        expect(one.payloads == other.payloads, f"replies {where}: {one.payloads}, {other.payloads}")
    if plan.faults:
        return
    left_out = {_OF_A_DRIVER, *(_COUNTS if case.is_early else ()), *(_REPLIES if case.is_loose else ())}
    expect(
        _line(one, left_out) == _line(other, left_out),
        f"lines {where}: {_line(one, left_out)}, {_line(other, left_out)}",
    )
    expect(one.warnings == other.warnings, f"warnings {where}: {one.warnings}, {other.warnings}")


def _end(seen: Seen) -> tuple[str, str, Any]:
    return seen.status, str(seen.error or ""), tuple(seen.closes[0].trailers)


def _line(seen: Seen, left_out: set[str]) -> dict[str, Any] | None:
    return None if seen.ended is None else {key: value for key, value in seen.ended.items() if key not in left_out}
