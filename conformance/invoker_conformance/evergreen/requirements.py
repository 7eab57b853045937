"""The requirements of the Evergreen front that a report cites: id, level, a sentence, and which no outsider can judge.

The full wording, with sources and reasons, is in ``docs/reference/evergreen.md``.
"""

from __future__ import annotations

from invoker_conformance.requirements import read_table

__all__ = ["REQUIREMENTS"]

_INSIDE = "needs a view inside the process"
_AUTHOR = "how an author writes a function in one language"
_OPTION = "needs the target started with another configuration"

_UNJUDGED = {
    "E-003": _INSIDE,
    "E-055": _OPTION,
    "E-105": "nothing on the wire to judge",
    "E-127": _INSIDE,
    "E-129": _AUTHOR,
}

_TABLE = """
E-001 MUST   One StartSession call is one session, on the same gRPC port as riff.
E-002 MUST   Ids are scoped to the session: equal ids in two sessions are unrelated.
E-003 MUST   Nodes and outputs live until the session ends, then are released.
E-004 MUST   Half-close: running actions finish, their outputs are sent, then OK.
E-005 MUST*  Half-close without any action, or without any message: OK at once.
E-006 MUST   Finished actions do not end the session.
E-007 MUST   Many actions a session; later ones may use earlier nodes.
E-008 MUST   An empty message is ignored.
E-009 MUST   Fragments and actions of one message have no mutual order.
E-010 MUST   Cancel, lost connection, deadline, oversize message cancel all actions; none is taken for a half-close.
E-011 MAY    An abort carries exactly one status and no further fragments.
E-012 MUST*  One session's abort leaves others intact.
E-013 MUST   An undecodable message aborts.
E-014 SHOULD* Initial metadata is sent at the start of the session.
E-015 MUST   The server sends no actions.
E-016 MUST   Ids carry no meaning: renaming all consistently gives the same outcome.
E-017 MUST   Missing seq is 0, missing continued is false: a lone fragment is a complete node.
E-018 MUST   Fragments may arrive in any order; content is ordered by seq.
E-019 MUST   A second fragment with the same id and seq is dropped silently, also after completion.
E-020 MUST   The duplicate check comes before all other checks of the content.
E-021 MUST   A seq above the final one aborts.
E-022 MUST   So it does when the high seq arrived first.
E-023 MUST*  Two different final seqs abort.
E-024 MUST   A negative seq aborts.
E-025 MUST*  A sparse seq is stored without preallocation.
E-026 MUST*  An empty id aborts; one above the limit of its length, too.
E-027 MUST   A fragment with both children and a chunk aborts.
E-028 MUST   A conflict of kinds between fragments of one node aborts, in any order.
E-029 MUST*  A fragment with neither is legal: it ends a node, or is an empty node.
E-030 MUST   After an empty fragment at seq 0 chunks abort, children are legal.
E-031 MUST   A gap below the final seq keeps the node incomplete.
E-032 MUST   An unused incomplete node is no error at half-close.
E-033 SHOULD A client may send all fragments of a session again.
E-034 MUST   A chunk at seq 0 must have metadata.
E-035 MUST   Metadata on any other seq aborts as soon as it arrives.
E-036 MAY    A switch tolerates metadata on other seqs.
E-037 MUST   Metadata of seq 0 applies to the whole leaf.
E-038 MUST   An empty mimetype is application/octet-stream.
E-039 MUST*  A malformed mimetype fails only when the leaf has to be decoded.
E-040 MUST   Fragment boundaries have no meaning.
E-041 MUST   A leaf with metadata and no payload is valid and empty.
E-042 MUST   A leaf is the concatenation of data and resolved references by seq.
E-043 MUST   Leaves below an interior node may differ in type.
E-044 SHOULD Role, file name, capture time and experimental metadata are readable by the function.
E-045 MUST   Capture times never reorder anything.
E-046 MUST   text/* and the listed markup types decode as text.
E-047 MUST   A type without codec is given as bytes to parameters that take them, else it is an error.
E-048 MUST   A payload that cannot be decoded aborts.
E-049 SHOULD EndOfTurn is skipped for payload parameters and visible in message form.
E-050 MUST   References are URIs; data: is supported, anything else is refused by default.
E-051 MUST   The node's mimetype wins over that of a reference.
E-052 MUST*  data: in base64 and percent form; malformed is a bad input.
E-053 MAY*   file: below configured roots only.
E-054 MUST   file: with another host is refused.
E-055 MAY*   http: to allowed and public addresses only.
E-056 MUST*  References are resolved at first use; unused ones are never touched.
E-057 MUST   A failed reference aborts.
E-058 MUST*  A relative reference is refused, and no path of the server is shown.
E-059 MUST*  Outputs hold data, no references.
E-060 MUST   Child lists of a node are concatenated by seq.
E-061 MUST   Children may be named before they arrive.
E-062 MUST   An input is the depth-first, left-to-right list of leaves, each handed on as soon as it may.
E-063 MUST   A node may be a child of several parents, several times, and input of several actions.
E-064 MUST   Self-inclusion aborts when the closing edge arrives, used or not.
E-065 MUST   The limit of depth holds, without recursion.
E-066 MUST*  Exponential sharing is bounded by the limits.
E-067 MUST*  An empty child id aborts.
E-068 MUST   An output may be child of a later node or input of a later action.
E-069 SHOULD* A cycle through actions aborts.
E-070 MUST*  Work on the graph is near linear.
E-071 MUST   The name of an action selects the function.
E-072 MUST   An unknown or empty name aborts.
E-073 MUST   No target, or an empty one, is the default target.
E-074 MUST   An unknown target aborts.
E-075 MUST   Names of inputs are names of parameters.
E-076 MUST   An unknown name of an input aborts, unless the function takes any.
E-077 MUST   A parameter without default and without input aborts; a default is used.
E-078 MUST   The same name twice aborts.
E-079 MUST   The same node under several names is legal.
E-080 MUST*  An empty name or id of a parameter aborts.
E-081 MUST   Ids of outputs must be new.
E-082 MUST   To be referenced does not make an id used.
E-083 MUST*  A client's fragment for an output aborts.
E-084 MUST   The same action again is no retry.
E-085 MUST   Names of outputs are those of the function; a single output takes any name.
E-086 MUST   An output that is not listed is not sent.
E-087 MUST   Without outputs an action runs for its effect.
E-088 MUST   Configs reach the function, unknown types, too.
E-089 MUST   An action may arrive before all, some or none of its nodes.
E-090 MAY    An action starts at once.
E-091 MUST   Actions of a session run concurrently.
E-092 MUST   One action is one invocation; a stream has one item a leaf.
E-093 MUST   A plain function with one parameter is mapped over the leaves.
E-094 MUST*  A plain function with several parameters takes exactly one leaf each.
E-095 MUST   A text or bytes stream receives fragments as they come.
E-096 MUST   The root of an output has the id that the action gave.
E-097 MUST   One value is one leaf; a large one is split, text between characters.
E-098 MUST   A stream of text or bytes is one leaf, each item sent at once, ended by a terminator.
E-099 MUST   A stream of other values is an interior root with a child an item.
E-100 MUST*  Generated ids are unique and never those of the client.
E-101 MUST*  An empty stream is one terminator.
E-102 MUST*  To mix text with other kinds on one output fails.
E-103 MUST   seq of each output ascends from 0 without gaps, metadata on seq 0 only, nothing after the final one.
E-104 MUST*  The type of an output is concrete: declared, or by its value.
E-105 MUST   The specification has no wish list of types.
E-106 MUST   A result that cannot be serialised is an action failure.
E-107 MUST   Outputs are retained for later actions and counted.
E-108 MUST*  To use an output that is not retained aborts.
E-109 MUST   Outputs of concurrent actions may interleave; order holds in each.
E-110 MUST   A client that does not read suspends the functions.
E-111 MUST   A function may finish without reading its input.
E-112 MUST   A failing action aborts after its fragments were sent; other actions are cancelled.
E-113 MUST   Malformed or missing inputs have the codes of client errors.
E-114 MUST*  After half-close, actions that wait for nodes without producer abort; not before.
E-115 MUST   Limits abort.
E-116 MUST   No traceback, paths or default texts of gRPC.
E-117 MUST   An exit in a function is an action failure.
E-118 MAY*   Extensions are negotiated in metadata; unknown ones are ignored.
E-119 MAY    DROP releases a node.
E-120 MAY    SET_TTL drops a node and what is below it after a time.
E-121 MAY    partial-failures: a failing action does not abort and has a status node.
E-122 MAY    CANCEL cancels an action by one of its outputs.
E-123 MAY    discovery: __list_actions tells the actions.
E-124 MAY*   accept: a config negotiates types of outputs.
E-125 PEER   Actions have a schema, derived from the function.
E-126 PEER   A function may send to its outputs by name.
E-127 PEER   At the end of a session actions get time to finish.
E-128 PEER   The status of an action is visible to the caller.
E-129 MAY    Actions may call actions.
E-130 PEER   To put after the end is an error for the writer.
E-131 PEER   The default type is application/octet-stream.
"""

REQUIREMENTS = read_table(_TABLE, _UNJUDGED)
"""Every requirement of the catalogue by its id, in its order."""
