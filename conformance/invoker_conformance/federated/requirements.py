"""The requirements of federated compute that a report cites: id, level, a sentence, and which no outsider can judge.

The full wording, with sources and reasons, is in ``docs/reference/federated.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import read_table

__all__ = ["REQUIREMENTS"]

_INSIDE = "needs a view inside the process"
_DEVICE = "what a device does"
_START = "needs the target's start or end to be watched"
_OPERATOR = "an operator chooses it"
_FORM = "the form of checkpoints is the target's own"

_UNJUDGED = {
    "F-037": "not to be told from outside",
    "F-049": _START,
    **{f"F-{n:03}": _DEVICE for n in (57, 58, 68, 69, 70, 71, 72, 73, 75, 76, 77, 78)},
    "F-074": "plans are opaque to the protocol",
    "F-083": _START,
    **dict.fromkeys(("F-085", "F-086", "F-087"), _FORM),
    "F-090": _START,
    **{f"F-{n:03}": _DEVICE for n in (95, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112)},
    "F-097": _INSIDE,
    "F-119": _INSIDE,
    "F-131": _INSIDE,
    "F-132": "not offered",
    "F-137": _START,
    "F-139": _OPERATOR,
    "F-140": _INSIDE,
    "F-141": _INSIDE,
    "F-142": _START,
    "F-143": _START,
    "F-144": _DEVICE,
    "F-145": _DEVICE,
}

_TABLE = """
F-001 MUST    The first message must be a checkin of either kind.
F-002 MUST    A client that asks for an ack gets one, with both windows, before the response.
F-003 MUST    A client that does not ask for an ack gets none.
F-004 MUST    The ack comes within a second, even when the decision waits for a cohort.
F-005 MUST    An unknown population ends the session with NOT_FOUND before any ack.
F-006 MUST    Metadata that name another population than the checkin are INVALID_ARGUMENT.
F-007 SHOULD  The API key is checked where one is configured.
F-008 MUST    A second checkin of either kind, a report before acceptance and a second report are refused.
F-009 MUST    Both checkins name the same population, token, attestation and version.
F-010 MUST    The field internal_client_id is ignored.
F-011 MUST*   Messages without content are ignored, at most 1000.
F-012 MUST    A half-close without a report ends the session with OK and frees the place.
F-013 MUST    A cancelled session frees its place within a second.
F-014 MUST*   Sessions that stay silent are ended.
F-015 MUST    The answer to the report is the last message, and the end is OK.
F-016 MUST    A report after the round has closed ends with ABORTED.
F-017 MUST    A report of another round or population is INVALID_ARGUMENT.
F-018 MUST    The first response tells the sizes of chunks, never 0 where chunks are wanted.
F-019 MUST    Later options replace the earlier ones as a whole.
F-020 MUST    A client that takes no chunks gets none, and options of zeros.
F-021 MUST    The compression level is one that the client has offered.
F-022 MUST    A message in chunks is a Start, Data of the agreed size, and an End.
F-023 MUST    A Start tells the size of the message and its size on the wire.
F-024 MUST    Nothing is sent while as many Data are without an ack as were agreed on.
F-025 MUST    Each Data is acked as it comes, by its index.
F-026 PEER    Real clients send on only while they are answered at once.
F-027 MUST    Both directions may be in transfer at once.
F-028 MUST    Data out of turn, a wrong count and pieces out of place are refused.
F-029 MUST    Another message inside an unfinished transfer is refused.
F-030 MUST    An ack is of the oldest chunk without one; any other is refused.
F-031 MUST    A message in chunks that is itself a chunk is refused.
F-032 MUST    The bytes on the wire are as many as were told; 0 means that none were.
F-033 MUST    Compressed messages are zlib streams; gzip is understood, too.
F-034 MUST*   What inflates beyond its size, or beyond the limit, is refused without being inflated.
F-035 MUST*   Impossible sizes, chunks that are too large, and broken streams are refused.
F-036 MUST    An unknown compression level is refused.
F-037 SHOULD  gRPC does not compress what is compressed already.
F-038 MUST    Every message may come in chunks once options are there.
F-039 MUST*   Messages above 4 MiB work in chunks, and only so.
F-040 MUST    An eligibility task is given where there is one, with an id; else it is said that there is none.
F-041 MUST    A checkin without eligibility info where there is such a task is rejected.
F-042 MUST    Eligibility info where there is no such task is a filter.
F-043 MUST    Tasks without a weight are never assigned.
F-044 MUST    Weights that cannot be, and a task with two, are INVALID_ARGUMENT.
F-045 MUST    Unknown tasks are ignored; info of another version is rejected.
F-046 MUST*   Tasks are assigned by chance, in proportion to their weights.
F-047 MUST    An acceptance has an id, a task, a plan and a checkpoint.
F-048 MUST    Ids are those of the round: the same for all its clients, another one in each.
F-049 MUST*   A round has a least, a goal and a most of clients, and time limits.
F-050 MUST*   A round begins when enough wait, or at its time limit with the fewest; else all are rejected.
F-051 MUST*   A round closes at its goal, or at its time limit with the fewest reports; else it fails.
F-052 MUST    Whom a full round has no place for is rejected at once.
F-053 MUST*   Reports that come too late do not count.
F-054 MUST    Retry tokens are opaque and short; a token that nobody has made counts as none.
F-055 MUST    A token before its time is rejected.
F-056 MUST    Windows are 0 <= delay_min <= delay_max, with delay_max set.
F-057 MUST    A device samples its window once.
F-058 MUST    A device chooses the window by how its session ended.
F-059 MUST    Clients without an ack are told their windows in the answers.
F-060 MUST    A report with an error is answered and not aggregated.
F-061 MUST    A code that nobody knows counts as an error.
F-062 MUST    Stats are read, and what is no stats is let be.
F-063 PEER    A device of secure aggregation whose plan failed just leaves.
F-064 MUST*   A report has at most 100 events, and 1 MiB of them.
F-065 MUST    What can be downloaded is offered only to clients that download.
F-066 MUST    Downloads have unguessable paths and their media types; gzip only where it was offered.
F-067 MUST    A cache id is that of the content; a resource that has one may be cached for a time.
F-068 MUST    A device refuses a resource without an address.
F-069 MUST    A device downloads over https, or from localhost.
F-070 MUST    A device makes statuses of HTTP codes.
F-071 MUST    A device checks the length of what it downloads.
F-072 MUST    A device keeps what it may keep.
F-073 MUST    A device fills templates of slices.
F-074 MUST*   A plan is opaque to the protocol.
F-075 MUST*   A plan's function is given a checkpoint and examples, and gives an update.
F-076 MUST    Examples are read as fast as the plan takes them.
F-077 MUST    A plan that fails is reported as INTERNAL.
F-078 MUST    An eligibility plan gives weights of tasks.
F-079 MUST*   The reports of a round are one input stream, in order, and its output is the next checkpoint.
F-080 MUST    A frame has the update, and headers that tell nothing of the client.
F-081 MUST    A report is answered when the function's queue has taken it.
F-082 MUST*   A function that fails leaves the checkpoint as it was.
F-083 MUST*   A round is committed whole or not at all.
F-084 MUST*   A function that ends early closes its round.
F-085 SHOULD* There are functions for means and sums.
F-086 MUST*   An update that does not fit excludes its client only.
F-087 MAY     Aggregands are checked.
F-088 MUST    Secure aggregation is only for clients that know it.
F-089 MUST    An acceptance into it names the variant, every vector with its modulus, and the numbers of clients.
F-090 MUST    A modulus is from 2 to 2^62.
F-091 MUST    The expected number of clients is the most that there can be.
F-092 MUST    The threshold is a majority, and at least 2.
F-093 MUST    The masked input comes with the report, and nothing else does.
F-094 MUST    The answer to the report is a message of its own, the last one.
F-095 MUST    Numbers are below their modulus.
F-096 MUST    The cryptography is that of the catalogue.
F-097 MUST    Secrets come from the operating system.
F-098 MUST    Messages of secure aggregation may come in chunks.
F-099 MUST    A device advertises fresh keys.
F-100 MUST    A device finds itself by its keys.
F-101 MUST    A device checks the keys of all.
F-102 MUST    A device counts those that are left.
F-103 MUST    A device has a share for each that is left.
F-104 SHOULD* A device computes the session id itself.
F-105 MUST    A device checks the shares that it is given.
F-106 MUST    A device takes those without shares for dead.
F-107 MUST    A device checks who is said to be dead.
F-108 MUST    A device gives one kind of share of each.
F-109 MUST    A device never gives both shares of one device.
F-110 MUST    A device takes early success for success.
F-111 MUST    A device refuses messages out of turn.
F-112 MUST    A device whose plan failed sends nothing.
F-113 MUST    Keys that are no points, or another's, put out their client alone.
F-114 MUST*   Keys that are not compressed put out their client.
F-115 MUST    Keys are told in the cohort's order, the dead as empty pairs; the silent are told so.
F-116 MUST    Shares are one entry for each client, empty for itself and the dead.
F-117 MUST    Entry j of client i comes as entry i to client j.
F-118 MUST    Vectors of other names or sizes put out their client.
F-119 MUST    Masked inputs are added as they come.
F-120 MUST    Missing clients are those that sent shares and no input.
F-121 MUST    An unmasking reply has one entry for each, of the right kind.
F-122 MUST    A client that is lost behind its masked input stays in the sum.
F-123 MUST    After enough replies the others hear of early success, then the answer.
F-124 MUST    With too few left all hear that too many aborted, and the round fails.
F-125 MUST    A message twice or out of its round puts out its client alone.
F-126 MUST    A client that aborts is not told so.
F-127 MUST*   Noise keys that do not fit are made of other shares, or the round fails.
F-128 MUST*   Shares that do not agree fail the round.
F-129 MUST    A sum of too few is never seen.
F-130 MUST*   The function gets one frame: the sum, and of how many.
F-131 MUST*   Masks are made beside the loop.
F-132 MAY     Groups of neighbours.
F-133 MUST*   Each round of secure aggregation has its own time.
F-134 MUST    Options of an acceptance are whole.
F-135 MUST    Limbs that cannot be prove that shares are wrong.
F-136 MUST    Chunks without an ack are counted over all messages.
F-137 MUST*   What cannot be served stops the start.
F-138 MUST    Populations and tasks share no state.
F-139 MUST*   Sessions are bounded.
F-140 MUST    No update of one client is visible.
F-141 MUST*   There are metrics.
F-142 SHOULD  TLS and a key are required outside loopback.
F-143 MUST*   A target that stops accepts nobody, and lets rounds end.
F-144 MUST    A device counts bytes.
F-145 MUST    A device can be stopped.
F-146 MUST    What a real client writes is taken, byte for byte.
"""

REQUIREMENTS = read_table(_TABLE, _UNJUDGED)
"""Every requirement by id, in the order of the catalogue."""
