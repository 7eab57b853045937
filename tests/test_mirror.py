"""The tests mirror the package: whoever opens a module knows where its tests are."""

from __future__ import annotations

from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Each package of the tree, and the folder of `tests/` that mirrors it.
PACKAGES = {ROOT / "invoker": Path(), ROOT / "conformance/invoker_conformance": Path("conformance")}

# Names that are never tested by a file of their own.
ANYWHERE = {
    "__init__.py": "only gathers names: tests/test_exports.py",
    "__main__.py": "only calls cli.main: tests/cli/test_main.py and tests/e2e",
}
# Modules that are tested together, by pattern, and where.
TOGETHER = {
    "_pb/**": "generated: `python -m tools proto`",
    "version.py": "one line: tests/test_packaging.py",
    "core/session.py": "an interface without code: the tests of the sessions in protocols/",
    "protocols/federated/forms.py": "what is shared: tests/protocols/federated/test_outgoing.py",
    "protocols/typed/reading.py": "the codec's lower half: tests/protocols/typed/test_codec.py",
    "protocols/typed/writing.py": "so is this",
    "protocols/typed/kinds.py": "types only: tests/protocols/typed/test_types.py",
    "protocols/evergreen/store.py": "the lower half of Graph: tests/protocols/evergreen/test_graph.py",
    "protocols/federated/backing.py": "words only: tests/protocols/federated/house.py is one",
    "protocols/federated/members.py": "devices of the coordinator: tests/protocols/federated/test_coordinator.py",
    "protocols/federated/tally.py": "what is counted there",
    "protocols/graphpipe/settings.py": "settings as data: tests/protocols/graphpipe/service/test_attach.py",
    "protocols/federated/settings.py": "so are these: tests/protocols/federated/service/test_attach.py",
    "protocols/web/settings.py": "and this one: tests/protocols/web/service/page/test_attach.py",
    "execution/thread/wire.py": "an interface without code: tests/execution/wires.py is one",
    "stores/backend.py": "an interface without code: tests/stores/test_several.py",
    "stores/rows.py": "the lower half of SqliteBackend: tests/stores/test_shared.py, test_sqlite.py",
    "stores/owners.py": "so is this",
    "execution/keeping.py": "the lower half of Whole: tests/execution/test_whole_long.py",
    "execution/nested/order.py": "what the scope asks: tests/execution/nested/test_scope.py",
    "execution/bodies/calls.py": "the caller's side of it: tests/execution/nested/test_scope.py",
    "protocols/federated/client/conversation.py": "a part of the client: test_client.py beside it",
    "protocols/federated/client/reading.py": "what the session reads: tests/protocols/federated/client/test_session.py",
    "protocols/federated/client/messages.py": "types only: tests/protocols/federated/client/test_session.py",
    "protocols/federated/verbs/simulation/simulated_server.py": "whole simulations: test_scene.py beside it",
    "protocols/federated/verbs/simulation/crowd.py": "so is this",
    "protocols/federated/verbs/simulation/device.py": "and this",
    "execution/outlet.py": "so is this: tests/execution/wholes.py has one",
    "execution/loop/wire.py": "so is this: tests/execution/loopcalls.py has one",
    "transports/grpc/operations.py": "the base of calls: tests/transports/grpc/test_threadcall.py",
    "codecs/annotations.py": "what codecs ask: tests/codecs/test_typed.py",
    "codecs/anyvalue/errors.py": "raised by tests/codecs/anyvalue/test_pack.py and test_unpack.py",
    "codecs/anyvalue/names.py": "names only, and Opaque: tests/codecs/anyvalue/test_unpack.py",
    "codecs/anyvalue/builtin.py": "a part of pack: tests/codecs/anyvalue/test_pack.py",
    "codecs/anyvalue/numbers.py": "a part of pack and unpack: tests/codecs/anyvalue/test_pack.py",
    "codecs/anyvalue/trees.py": "a part of unpack: tests/codecs/anyvalue/test_unpack.py",
    "codecs/anyvalue/foreign.py": "so is this: tests/codecs/anyvalue/test_unpack.py",
    "conformance/riff/scenarios_*.py": "each judges a right and a faulty peer: tests/conformance/test_runner.py",
    "conformance/evergreen/scenarios_*.py": "so do these: tests/conformance/evergreen/test_scenarios.py",
    "conformance/graphpipe/scenarios_*.py": "and these: tests/conformance/graphpipe/test_scenarios.py",
    "conformance/toolbridge/scenarios_*.py": "and these: tests/conformance/toolbridge/test_every_scenario.py",
    "conformance/federated/scenarios_*.py": "and these: tests/conformance/federated/test_every_scenario.py",
    "conformance/federated/circle.py": "what they go through: tests/conformance/federated/test_every_scenario.py",
    "conformance/evergreen/actions.py": "what scenarios send: tests/conformance/evergreen/test_scenarios.py",
}


def modules() -> list[Path]:
    """Modules that need a test file, as the tests mirror them."""
    found = [
        folder / path.relative_to(package)
        for package, folder in PACKAGES.items()
        for path in sorted(package.rglob("*.py"))
    ]
    return [path for path in found if path.name not in ANYWHERE and not any(map(partial(fits, path), TOGETHER))]


def fits(path: Path, pattern: str) -> bool:
    """Whether a module is one of a pattern."""
    return fnmatch(path.as_posix(), pattern)


def test_each_module_has_its_test_file() -> None:
    """`invoker/a/b.py` is tested by `tests/a/test_b.py`; the conformance suite, by `tests/conformance`."""
    missing = [
        f"{path} has no {expected}"
        for path in modules()
        if not (ROOT / (expected := Path("tests", path.parent, f"test_{path.name}"))).is_file()
    ]
    assert not missing, "\n".join(missing)


def test_each_exception_is_still_there() -> None:
    """An exception for a module that is gone is removed."""
    there = [
        folder / path.relative_to(package) for package, folder in PACKAGES.items() for path in package.rglob("*.py")
    ]
    gone = [pattern for pattern in TOGETHER if not any(fits(path, pattern) for path in there)]
    assert not gone


def test_each_test_folder_is_a_package() -> None:
    """Files of equal names in different folders need `__init__.py` to be told apart."""
    bare = {path.parent for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()}
    assert not bare


LONGEST = 400


@pytest.mark.parametrize("folder", ["invoker", "conformance", "tests", "tools", "benchmarks", "functions"])
def test_no_file_is_longer_than_a_reader_can_hold(folder: str) -> None:
    """Nor a file of tests: it is split by what it is about. Generated files are nobody's to read."""
    lengths = {path: path.read_text().count("\n") for path in (ROOT / folder).rglob("*.py") if "_pb" not in path.parts}
    assert lengths
    assert {path.relative_to(ROOT).as_posix(): one for path, one in lengths.items() if one > LONGEST} == {}
