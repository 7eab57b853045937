"""Accuracy over the rounds of functions/iris.toml and functions/iris_secagg.toml, compared with central training.

``python -m benchmarks.federated`` runs both files with a real server, and fifty devices of a real ``invoker device``.
It writes docs/explanation/plots/federated-accuracy.svg, and fails if a model's accuracy differs by more than TOLERANCE.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.plots import curves
from functions import federated
from invoker.testing import TestServer

ROOT = Path(__file__).resolve().parent.parent
PLOT = ROOT / "docs" / "explanation" / "plots" / "federated-accuracy.svg"
ROUNDS, DEVICES = 20, 50
TIMES = 26
"""How often each device checks in: once per round, and a few more times in case it was late or had to wait."""

TOLERANCE = 0.02
"""The allowed difference in accuracy after the last round, compared with central training of as many steps."""

LIMIT_S = 300.0


def accuracies(rounds: str, functions: Sequence[str]) -> list[float]:
    """Run all rounds of a file with fifty devices, and return the accuracy after each round.

    Raises:
        RuntimeError: Not all rounds were completed.
    """
    server = TestServer(str(ROOT / "functions" / rounds), "--federated-peer-sessions", "100")
    try:
        words = [sys.executable, "-m", "invoker", "device", *functions, "--server", server.grpc]
        words += ["--population", "iris", "--examples", "functions.federated:examples"]
        words += ["--devices", str(DEVICES), "--times", str(TIMES)]
        with tempfile.TemporaryFile() as log:
            subprocess.run(words, cwd=ROOT, stdout=log, stderr=log, timeout=LIMIT_S, check=False)
        found = [float(one) for one in re.findall(r"accuracy ([\d.]+)", server.log())]
    finally:
        server.close()
    if len(found) != ROUNDS:
        raise RuntimeError(f"{len(found)} of {ROUNDS} rounds of {rounds} were completed")
    return found


def main() -> int:
    """Run both files, write the plot, and return 1 if an accuracy differs too much."""
    central = [federated.accuracy(federated.central(count)) for count in range(1, ROUNDS + 1)]
    measured = {
        "plain": accuracies("iris.toml", ["functions.federated:train", "functions.federated:eligible"]),
        "secure": accuracies("iris_secagg.toml", ["functions.federated:train_secure"]),
    }
    lines = {"in one place": central, **measured}
    PLOT.write_text(curves("Irises on fifty devices", "accuracy after each round", lines, low=0.8, high=1.0))
    worst = max(abs(one[-1] - central[-1]) for one in measured.values())
    for name, values in lines.items():
        print(f"{name:13} {values[0]:.3f} after the first round, {values[-1]:.3f} after the last")
    print(f"the largest difference at the end is {worst:.3f}; at most {TOLERANCE} is allowed")
    return 0 if worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
