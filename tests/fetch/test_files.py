"""`invoker.fetch.files`: regular files below allowed roots, and nothing else."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from invoker.errors import InvocationError, Status
from invoker.fetch import files as filerefs
from invoker.fetch.files import path_of, read_file

MOST = 1_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file, beside it a secret."""
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"content")
    (folder / "sub" / "b c.txt").write_bytes(b"below")
    (tmp_path / "secret.txt").write_bytes(b"secret")
    (tmp_path / "rootless").mkdir()
    (tmp_path / "rootless" / "a.txt").write_bytes(b"secret")
    return folder


def content(uri: str, *roots: Path, most: int = MOST) -> bytes:
    pieces: list[bytes] = []
    read_file(uri, roots, most, pieces.append)
    return b"".join(pieces)


def error(uri: str, *roots: Path, most: int = MOST) -> InvocationError:
    with pytest.raises(InvocationError) as caught:
        content(uri, *roots, most=most)
    return caught.value


def refused(uri: str, *roots: Path) -> str:
    """The text of a refusal."""
    met = error(uri, *roots)
    assert met.status is Status.PERMISSION_DENIED
    return str(met)


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "FILE://{}", "file://localhost{}", "file://LocalHost{}"])
def test_E053_ET66_ref_file_inside_root(root: Path, form: str) -> None:
    """The authority is empty or localhost."""
    assert content(form.format(root / "a.txt"), root) == b"content"


def test_E053_any_of_several_roots_will_do(root: Path, tmp_path: Path) -> None:
    """One that does not exist allows nothing."""
    uri = f"file://{root}/sub/b%20c.txt"
    assert content(uri, tmp_path / "nowhere", tmp_path / "rootless", root / "sub") == b"below"
    refused(uri, tmp_path / "nowhere", tmp_path / "rootless")


def test_E053_percent_signs_are_decoded_once(root: Path) -> None:
    """What is left afterwards is part of a name."""
    (root / "%41.txt").write_bytes(b"percent")
    (root / "A.txt").write_bytes(b"letter")
    (root / "日.txt").write_bytes(b"day")
    (root / os.fsdecode(b"\xff")).write_bytes(b"no text")
    assert content(f"file://{root}/%2541.txt", root) == b"percent"
    assert content(f"file://{root}/%41.txt", root) == b"letter"
    assert content(f"file://{root}/%E6%97%A5.txt", root) == b"day"
    assert content(f"file://{root}/%FF", root) == b"no text"


@pytest.mark.parametrize(
    "tail",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/%2E./secret.txt",
        "/sub/../a.txt",
        "/sub/%2e%2e/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/%2e%2e%2fsecret.txt",
        "/./a.txt",
        "//a.txt",
        "/sub%2fb%20c.txt",
        "/a.txt/",
        "/a.txt%00",
        "/a.txt%00.png",
        "/a.txt%",
        "/a.txt%4",
        "/a.txt%zz",
        "/b c.txt",
        "/日.txt",
        "/a.txt?x",
        "/a.txt#x",
        "\\a.txt",
        "/a.txt\n",
    ],
)
def test_E053_ET66_ref_file_dotdot_and_other_odd_paths_are_refused(root: Path, tail: str) -> None:
    """Before anything is looked at: encoded once, twice, or not at all."""
    refused(f"file://{root}{tail}", root)


def test_E053_what_is_elsewhere_is_refused_whether_it_exists_or_not(root: Path, tmp_path: Path) -> None:
    """So that nobody can ask which files there are."""
    there = refused(f"file://{tmp_path}/secret.txt", root)
    gone = refused(f"file://{tmp_path}/nothing.txt", root)
    assert there.replace("secret", "nothing") == gone
    refused(f"file://{tmp_path}/rootless/a.txt", root)
    refused("file:///etc/passwd", root)
    refused(f"file:////{root}/a.txt", root)


def test_E053_without_roots_everything_is_refused(root: Path) -> None:
    """That is the default."""
    refused(f"file://{root}/a.txt")


def test_E053_ET66_ref_file_symlink_escape(root: Path, tmp_path: Path) -> None:
    """Links are followed, but only as long as they end below a root."""
    (root / "out.txt").symlink_to(tmp_path / "secret.txt")
    (root / "outdir").symlink_to(tmp_path)
    (root / "up.txt").symlink_to("../secret.txt")
    (root / "broken.txt").symlink_to(tmp_path / "nothing.txt")
    (root / "loop").symlink_to("loop")
    (root / "in.txt").symlink_to("sub/b c.txt")
    for name in ("out.txt", "outdir/secret.txt", "outdir/root/../secret.txt", "up.txt", "broken.txt", "loop", "loop/x"):
        refused(f"file://{root}/{name}", root)
    assert content(f"file://{root}/in.txt", root) == b"below"
    assert content(f"file://{root}/outdir/root/a.txt", root) == b"content"


def test_E053_a_root_may_be_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    """The operator's own links are the operator's business."""
    (tmp_path / "alias").symlink_to(root)
    assert content(f"file://{tmp_path}/alias/a.txt", tmp_path / "alias") == b"content"
    assert content(f"file://{root}/a.txt", tmp_path / "alias") == b"content"


@pytest.mark.parametrize("kind", ["fifo", "socket", "directory"])
def test_E053_ET66_ref_file_fifo_and_others_are_no_regular_files(root: Path, kind: str) -> None:
    """Nothing waits for a writer that never comes."""
    odd = root / "odd"
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "directory":
        odd.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(odd))
    assert "is not a regular file" in refused(f"file://{odd}", root)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/proc/self/environ", "/proc/version", "/sys/kernel/mm"])
def test_E053_devices_and_proc_are_refused_even_below_a_root(path: str) -> None:
    """An operator who allows everything does not mean those."""
    refused(f"file://{path}", Path("/"))


def test_E053_proc_is_refused_by_its_device_too(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be mounted elsewhere, where its name says nothing."""
    device = (root / "a.txt").stat().st_dev
    monkeypatch.setattr(filerefs, "_pseudo_devices", lambda: {device})
    assert "is not a regular file" in refused(f"file://{root}/a.txt", root)


def test_E053_a_missing_file_is_not_found(root: Path) -> None:
    """Below a root, clients may know what there is."""
    for name in ("nothing.txt", "nodir/x", "a.txt/x"):
        met = error(f"file://{root}/{name}", root)
        assert met.status is Status.NOT_FOUND
        assert str(met).startswith("Invoker: Reference Failed: ")


def test_E053_a_file_that_cannot_be_read_is_unavailable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text says nothing about why."""

    def no(descriptor: int, size: int) -> bytes:
        raise PermissionError(13, "Permission denied", "/server/path")

    monkeypatch.setattr(os, "read", no)
    met = error(f"file://{root}/a.txt", root)
    assert met.status is Status.UNAVAILABLE
    assert str(met).endswith("' cannot be read")


def test_E053_the_size_is_limited(root: Path) -> None:
    """Before the first byte is read."""
    uri = f"file://{root}/a.txt"
    assert content(uri, root, most=7) == b"content"
    met = error(uri, root, most=6)
    assert met.status is Status.RESOURCE_EXHAUSTED
    assert "holds 7 bytes, which exceeds the limit of 6 bytes" in str(met)


def test_a_large_file_comes_in_pieces(root: Path) -> None:
    """It is never held as a whole."""
    data = os.urandom(300_000)
    (root / "large").write_bytes(data)
    pieces: list[bytes] = []
    read_file(f"file://{root}/large", [root], MOST, pieces.append)
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= 64 * 1024


def test_a_file_that_grows_ends_where_it_ended_when_it_was_opened(root: Path) -> None:
    """Reading a log does not go on for ever."""
    path = root / "log"
    path.write_bytes(bytes(100_000))
    read = 0

    def grow(piece: bytes) -> None:
        nonlocal read
        read += len(piece)
        with path.open("ab") as file:
            file.write(bytes(100_000))

    read_file(f"file://{path}", [root], MOST, grow)
    assert read == 100_000


def test_a_file_that_is_cut_while_it_is_read_fails(root: Path) -> None:
    """Half a file is no file."""
    path = root / "log"
    path.write_bytes(bytes(100_000))

    def cut(piece: bytes) -> None:
        path.write_bytes(b"")

    with pytest.raises(InvocationError, match="changed while it was read"):
        read_file(f"file://{path}", [root], MOST, cut)


Swap = Callable[[Path, Path], None]


def swap_file(root: Path, secrets: Path) -> None:
    (root / "sub" / "x").unlink()
    (root / "sub" / "x").symlink_to(secrets / "x")


def swap_folder(root: Path, secrets: Path) -> None:
    (root / "sub").rename(root / "old")
    (root / "sub").symlink_to(secrets)


@pytest.mark.parametrize("swap", [swap_file, swap_folder])
@pytest.mark.parametrize("when", ["resolved", "looked at"])
def test_E053_a_link_put_there_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: Swap, when: str
) -> None:
    """Between the check and the opening, and between the last look and the opening."""
    root, secrets = tmp_path / "root", tmp_path / "secrets"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "x").write_bytes(b"public")
    secrets.mkdir()
    (secrets / "x").write_bytes(b"secret")
    opened = os.open

    def late(path: str, flags: int, *rest: int, **options: int) -> int:
        names = {"resolved": str(root), "looked at": "x"}
        if path == names[when] and not (root / "old").exists() and not (root / "sub" / "x").is_symlink():
            swap(root, secrets)
        return opened(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", late)
    if when == "looked at" and swap is swap_folder:
        # The folder is open already: what was checked is read, wherever it was moved.
        assert content(f"file://{root}/sub/x", root) == b"public"
    else:
        refused(f"file://{root}/sub/x", root)


def test_E053_proc_is_refused_by_its_name_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems inside it have devices of their own."""
    monkeypatch.setattr(filerefs, "_pseudo_devices", set)
    assert "is not below a root" in refused("file:///proc/version", Path("/"))


def test_E053_a_fifo_put_there_after_the_look_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened is looked at once more; opening it does not wait for a writer."""
    opened = os.open

    def late(path: str, flags: int, *rest: int, **options: int) -> int:
        if path == "a.txt":
            (root / "a.txt").unlink()
            os.mkfifo(root / "a.txt")
        return opened(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", late)
    assert "is not a regular file" in refused(f"file://{root}/a.txt", root)


def test_no_descriptor_is_left_open(root: Path) -> None:
    """Neither after reading nor after any refusal."""
    os.mkfifo(root / "fifo")
    before = len(list(Path("/proc/self/fd").iterdir()))
    content(f"file://{root}/sub/b%20c.txt", root)
    for name in ("fifo", "nothing", "sub/nothing", "sub", "a.txt/b"):
        error(f"file://{root}/{name}", root)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    "uri", ["file://path/to/sunset.mp4", "file://server/share/x", "file://127.0.0.1/x", "file://x:80/y"]
)
def test_E054_another_authority_is_refused_with_a_hint(uri: str) -> None:
    """`file://path/to/x` names a machine called path."""
    with pytest.raises(InvocationError) as caught:
        path_of(uri)
    assert caught.value.status is Status.PERMISSION_DENIED
    authority = uri.split("/")[2]
    assert f"the authority of '{uri}' is '{authority}', which is not this machine" in str(caught.value)
    assert "three slashes: file:///path" in str(caught.value)


@pytest.mark.parametrize(
    "uri", ["file:a.txt", "file:./a.txt", "file://", "file:", "file://localhost", "file:?x", "file:~/x"]
)
def test_E058_a_path_that_is_not_absolute_is_refused(uri: str) -> None:
    """The working directory of the server is nobody's business."""
    with pytest.raises(InvocationError, match="Reference Refused"):
        path_of(uri)


def test_E058_no_text_names_a_path_of_the_server(root: Path, tmp_path: Path) -> None:
    """A client reads of its own URI only, not where its links lead."""
    veiled = tmp_path / "veiled"
    veiled.mkdir()
    (tmp_path / "link").symlink_to(root)
    (root / "away").symlink_to(veiled / "x")
    (root / "gone").symlink_to(root / "nothing")
    for name in ("away", "gone", "sub"):
        text = str(error(f"file://{tmp_path}/link/{name}", root))
        assert "veiled" not in text
        assert "nothing" not in text
