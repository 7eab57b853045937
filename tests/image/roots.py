"""Bare root file systems, and the steps of a Containerfile run in them without an engine. Takes Linux and root."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.image.containerfile import Stage, expand, words

SUITE = "bookworm"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Runs in mount and process namespaces of its own: $1 is the root, $2 a folder of this machine, $3 its place in $1.
_NAMESPACE = """set -e
mount --bind "$1" "$1"
mount --bind "$2" "$1/$3"
mount -o remount,bind,ro "$1/$3"
mount -t proc proc "$1/proc"
"""
_READ_ONLY = 'mount -o remount,bind,ro "$1"\n'


def bare_root(folder: Path) -> None:
    """Make the root that stands for the base image: Debian's smallest, with its Python.

    Raises:
        subprocess.CalledProcessError: It could not be had, most likely because there is no network or a slow one.
    """
    limit = ["timeout", "--kill-after=30", "300"]  # it ends the programs that mmdebstrap has started, too
    command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3,python3-venv", SUITE, str(folder)]
    subprocess.run([*limit, *command], check=True)


@dataclass
class Image:
    """A root with the settings that its steps made.

    Attributes:
        root: The folder that holds it.
        env: Variables of its processes.
        workdir: Where they start.
        user: ``uid:gid``.
        command: Its entrypoint, or nothing.
    """

    root: Path
    env: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    workdir: str = "/"
    user: str = "0:0"
    command: list[str] = field(default_factory=list)

    def inside(self, path: str) -> Path:
        """Where a path of the image is on this machine; a relative one starts at the work directory."""
        return self.root / str(Path(self.workdir, path)).lstrip("/")


def build(stage: Stage, image: Image, earlier: Mapping[str, Image], context: Path, wheels: Path) -> None:
    """Run the steps of a stage.

    Args:
        stage: What to do.
        image: A copy of its base, which is changed.
        earlier: The stages before it, by name.
        context: The folder that COPY copies from.
        wheels: The packages that pip finds; there is no index, so nothing else can get in.

    Raises:
        subprocess.CalledProcessError: A step failed.
    """
    for word, rest in stage.steps:
        if word == "RUN":
            offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/mnt", "PIP_QUIET": "1", "HOME": "/root"}
            with running(image, ["sh", "-ec", rest], folder=wheels, seen_as="/mnt", env=offline) as process:
                code = process.wait(300)
            if code:
                raise subprocess.CalledProcessError(code, rest)
        elif word == "COPY":
            _copy(rest, image, earlier, context)
        elif word == "ENV":
            name, _, value = rest.partition("=")
            image.env[name] = expand(value, image.env)
        elif word == "WORKDIR":
            image.workdir = rest
            image.inside(".").mkdir(parents=True, exist_ok=True)
        elif word == "USER":
            image.user = rest
        elif word == "ENTRYPOINT":
            image.command = words(rest)


@contextmanager
def running(image: Image, command: Sequence[str], *, folder: Path, seen_as: str, env: Mapping[str, str],
            read_only: bool = False, **popen: int) -> Iterator[subprocess.Popen[bytes]]:  # fmt: skip
    """Run a command in an image, as its process 1 and its user; ``folder`` is seen at a path of the image, read-only.

    A read-only root also has no capability left and can gain no privilege, as the manifests ask for.
    """
    uid, _, gid = image.user.partition(":")
    become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    if read_only:
        become += ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    variables = [f"{name}={value}" for name, value in (image.env | dict(env)).items()]
    script = _NAMESPACE + (_READ_ONLY if read_only else "") + 'root=$1\nshift 3\nexec chroot "$root" "$@"'
    shell = ["sh", "-c", script, "sh", str(image.root), str(folder), seen_as]
    inner = [*become, "env", "-i", "-C", image.workdir, *variables, *command]
    process = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", *shell, *inner], **popen)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def _copy(rest: str, image: Image, earlier: Mapping[str, Image], context: Path) -> None:
    *sources, target = rest.split()
    start = context
    if sources[0].startswith("--from="):
        start = earlier[sources.pop(0).removeprefix("--from=")].root
    for source in sources:
        path, into = start / source.lstrip("/"), image.inside(target)
        if path.is_dir():
            shutil.copytree(path, into, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            into = into / path.name if target.endswith("/") else into
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, into)
