"""``python -m tests.image``: run the steps of deploy/Containerfile in a bare root, then serve from it.

This is for machines without a container engine: the same steps on Debian's smallest root, the same hashes, then a
read-only root file system, the image's user, no capability and process id 1. Debian's Python stands for that of the
base image. A machine that cannot do it says so and is let pass; a step that fails is an error.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from tests.image.containerfile import PATH, stages
from tests.image.readme import read
from tests.image.roots import Image, bare_root, build, running

ROOT = PATH.parents[1]
COMPILERS = ("cc", "gcc", "g++", "c++", "clang", "tcc", "as", "ld", "make", "rustc", "go")
BINARIES = ("usr/local/bin", "usr/bin", "bin", "usr/sbin", "opt/invoker/bin")
FUNCTION = "def double(x: int) -> int:\n    return 2 * x\n"


def main() -> int:
    """Do it all in a temporary folder; the exit code is 1 when the image is not as it should be."""
    if why := missing():
        print(f"SKIPPED: the steps of deploy/Containerfile are not run: {why}", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory(prefix="invoker-image-") as folder:
        work = Path(folder)
        try:
            bare_root(work / "base")
        except subprocess.CalledProcessError as error:
            print(f"SKIPPED: the steps of deploy/Containerfile are not run: no bare root: {error}", file=sys.stderr)
            return 0
        image = built(work)
        clean(image)
        (work / "functions").mkdir()
        (work / "functions" / "mymod.py").write_text(FUNCTION)
        for extra in ((), ("--workers", "2")):
            serve(image, work / "functions", extra)
        read(image, work / "readme")
    print("the image of deploy/Containerfile serves from a read-only root")
    return 0


def missing() -> str:
    """What this machine lacks."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "it takes root on Linux"
    if gone := [name for name in ("mmdebstrap", "unshare", "chroot") if shutil.which(name) is None]:
        return f"there is no {' and no '.join(gone)} (Debian: apt-get install mmdebstrap)"
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, text=True, check=False
    )
    return f"no namespace can be made: {done.stderr.strip()}" if done.returncode else ""


def built(work: Path) -> Image:
    """The last stage, with all stages' steps run."""
    wheels, base = work / "wheels", work / "base"
    version = subprocess.run(
        ["chroot", str(base), "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
         "--python-version", version, "--require-hashes", "-r", str(ROOT / "requirements/base.lock"),
         "-d", str(wheels)],
        check=True,
    )  # fmt: skip
    made: dict[str, Image] = {}
    for number, stage in enumerate(stages(PATH.read_text())):
        image = made[stage.name] = Image(work / f"stage{number}")
        subprocess.run(["cp", "-a", str(base), str(image.root)], check=True)
        build(stage, image, made, ROOT, wheels)
    return image


def clean(image: Image) -> None:
    """What must not be in the image is not in it.

    Raises:
        SystemExit: There is a compiler, or the user is root.
    """
    found = [f"{folder}/{name}" for folder in BINARIES for name in COMPILERS if (image.root / folder / name).exists()]
    expect(not found, f"there is no compiler in the image {found}")
    expect(not image.user.startswith("0:"), f"its user is {image.user}, not root")


def serve(image: Image, functions: Path, extra: tuple[str, ...]) -> None:
    """Serve a function that is mounted, call it on both ports, and stop it.

    Raises:
        SystemExit: Something is not as it should be.
    """
    http, grpc = free_port(), free_port()
    env = {"PORT": str(http), "GRPC_PORT": str(grpc), "INVOKER_HOST": "127.0.0.1"}
    command = [*image.command, "mymod:double", *extra]
    popen = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with running(image, command, folder=functions, seen_as="/functions", env=env, read_only=True, **popen) as process:
        assert process.stderr is not None
        log = []
        for line in process.stderr:
            log.append(line.decode())
            if str(http) in log[-1]:
                break
        expect(process.poll() is None, f"{' '.join(command)} starts: {''.join(log)}")
        inner = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{inner}/status").read_text().splitlines())
        expect(status["NSpid"].split()[-1] == "1", "it is process 1 of the container")
        expect(status["Uid"].split()[0] == image.user.partition(":")[0], f"it runs as {status['Uid'].split()[0]}")
        expect(int(status["CapEff"], 16) == 0 and status["NoNewPrivs"] == "1", "it has no capability, and gains none")
        mounts = [line.split() for line in Path(f"/proc/{inner}/mountinfo").read_text().splitlines()]
        expect(
            all(one[5].startswith("ro") for one in mounts if one[4] in {"/", "/functions"}), "its files are read-only"
        )
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/readyz", timeout=10) as answer:
            expect(answer.status == 200, "/readyz says 200")
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/", data=b"21", timeout=10) as answer:
            text = answer.read().decode()
        expect(text == "42", f"HTTP answers {text}")
        called = subprocess.run(
            [sys.executable, "-m", "invoker", "call", f"127.0.0.1:{grpc}", "--json", "--data", "21"],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        expect(called.stdout.strip() == "42", f"gRPC answers {called.stdout.strip()}{called.stderr.strip()}")
        os.kill(inner, signal.SIGTERM)
        rest = process.stderr.read().decode()
        code = process.wait(60)
        expect(code == 0, f"SIGTERM ends it with exit code {code}{rest if code else ''}")


def expect(fine: bool, text: str) -> None:
    """Say what was looked at.

    Raises:
        SystemExit: It is not so.
    """
    print(f"  {'ok' if fine else 'NOT SO'}: {text}", flush=True)
    if not fine:
        sys.exit(1)


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
