"""What the server runs of its own for one call of each kind, as `tools.calls` counts it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.calls import CATALOGUES, connected
from tools.server import serving
from tools.wires import CALLS

_PROTOCOLS = {
    "riff sync": "riff", "http sync": "web", "graphpipe": "graphpipe", "typed": "typed", "evergreen": "evergreen",
    "toolbridge": "toolbridge",
}  # fmt: skip


@pytest.mark.timeout(60)
def test_a_call_runs_no_code_of_other_protocols(tmp_path: Path):
    """All default protocols are served; what a call passes lies in the folder of its own, and in none beside it."""
    path, module = tmp_path / "counts", CATALOGUES["sync"]
    program = (sys.executable, "-m", "tools.counted")
    found = {}
    with serving(module, program=program, env={"COUNTS": str(path)}) as server, connected(path) as counted:
        for kind in _PROTOCOLS:
            with CALLS[kind](server, module, 1) as ask:
                files = [Path(one).parts for one in counted.cost(ask, times=1)]
            found[kind] = {parts[1] for parts in files if parts[0] == "protocols"}
    assert found == {kind: {protocol} for kind, protocol in _PROTOCOLS.items()}
