"""Every requirement of every protocol, by id; and the reasons why some of them cannot be tested over the network.

The tables of requirements, ``requirements.tsv`` in the package of each protocol, are made by ``make docs`` from
``docs/reference``.
"""

from __future__ import annotations

from invoker_conformance.requirements import table_of
from invoker_conformance.scenario import PROTOCOLS

_REASONS = {
    "the process and its environment: start-up, ports, exit codes": (
        "R-001 R-002 R-003 R-004 R-005 R-006 R-008 R-009 R-010 R-014 R-016 R-140"
    ),
    "cannot be seen from outside the process": (
        "R-011 E-003 E-127 G-022 G-102 G-103 T-035 T-039 T-049 T-086 T-158 T-177 F-037 F-097 F-119 F-131 F-140 F-141"
    ),
    "hooks and signals of the process": "R-017 R-018 R-019 R-020 R-021 R-022 R-023 R-024 R-025 R-026 R-027 R-028",
    "how an author writes a function in one language": "R-035 R-040 R-043 R-044 R-056 R-071 R-171 E-129",
    "needs the target started with another configuration": "R-069 R-132 E-055",
    "not offered: functions are loaded at start": "R-158",
    "nothing on the wire to judge": "E-105",
    "waits half a minute for a body that does not come": "G-014",
    "what a client does or must accept": (
        "G-020 G-039 G-050 G-085 G-086 G-089 G-090 G-093 G-094 G-095 G-096 G-097 G-098 G-111 G-112 T-068 T-079 T-162"
    ),
    "needs the target's start or end to be watched": (
        "G-104 T-034 T-153 T-164 T-165 T-166 T-176 F-049 F-083 F-090 F-137 F-142 F-143"
    ),
    "what the target writes into its log": "G-105 G-106 T-167 T-168",
    "the answers of other routes are not part of this protocol": "G-107",
    "takes minutes of waiting": "T-007 T-008 T-011 T-087 T-094 T-163",
    "takes 10 000 sessions": "T-012",
    "an operator chooses it": "T-060 F-139",
    "needs an error class of the target": "T-066",
    "an option of the target's functions": "T-074",
    "needs a class of the target": "T-084",
    "needs pandas on both sides": "T-108",
    "needs numpy in the target": "T-114",
    "needs a language model that the suite scripts": (
        "T-133 T-134 T-135 T-136 T-137 T-138 T-139 T-140 T-141 T-142 T-143 T-144 T-145 T-146 T-147 T-148 T-149"
    ),
    "needs the suite to serve tools of its own": "T-169 T-170 T-171 T-172 T-173 T-174 T-175",
    "what a device does": (
        "F-057 F-058 F-068 F-069 F-070 F-071 F-072 F-073 F-075 F-076 F-077 F-078 F-095 F-099 F-100 F-101 F-102 F-103 "
        "F-104 F-105 F-106 F-107 F-108 F-109 F-110 F-111 F-112 F-144 F-145"
    ),
    "plans are opaque to the protocol": "F-074",
    "the form of checkpoints is the target's own": "F-085 F-086 F-087",
    "not offered": "F-132",
}
"""The ids of the requirements that no scenario tests, by the reason."""

_UNJUDGED = {id_: reason for reason, ids in _REASONS.items() for id_ in ids.split()}

BY_PROTOCOL = {protocol: table_of(f"invoker_conformance.{protocol}", _UNJUDGED) for protocol in PROTOCOLS}
ALL = {id_: requirement for table in BY_PROTOCOL.values() for id_, requirement in table.items()}
