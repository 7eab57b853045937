"""What a file of rounds names: plans, first checkpoints, keys, functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from invoker.author.prepare import Prepared, prepare
from invoker.core.catalog import Catalog
from invoker.errors import ConfigError, DecodeError, LoadError
from invoker.protocols.federated.messages import Blob
from invoker.protocols.federated.saved import Saved
from invoker.protocols.federated.service.setups import Setups, read_rounds, with_aggregators
from invoker.settings import Config
from tests.protocols.federated.service.devices import rounds

MODULE = "tests.protocols.federated.service.functions"


def made(folder: Path, text: str, *, is_public: bool = False) -> Setups:
    """The setups of a file with this text."""
    path = folder / "rounds.toml"
    path.write_text(text)
    found = with_aggregators(str(path), (), Config())
    return Setups(str(path), Catalog([one.function for one in found]), is_public=is_public)


def setup_of(setups: Setups, name: str = "iris", checkpoint: bytes = b"7") -> Any:
    """A population of them."""
    saved = {one.name: Saved(3, checkpoint) for one in setups.populations[name].tasks}
    return setups.setup(name, saved, Blob, None)


def test_F074_a_plan_names_a_function_of_the_device(tmp_path: Path) -> None:
    """With its parameters, behind the magic line; or it is a file as it is."""
    text = rounds().replace('plan = "devices:train"', 'plan = "devices:train"\nparams = { rate = 0.5 }')
    (task,) = setup_of(made(tmp_path, text)).tasks
    magic, _, told = task.plan.data.partition(b"\n")
    assert magic == b"INVPLAN1"
    assert json.loads(told) == {"kind": "entrypoint", "fn": "devices:train", "params": {"rate": 0.5}}
    (tmp_path / "plan.bin").write_bytes(b"opaque")
    (task,) = setup_of(made(tmp_path, rounds().replace('plan = "devices:train"', 'plan_file = "plan.bin"'))).tasks
    assert task.plan.data == b"opaque"


def test_a_task_starts_from_what_was_committed(tmp_path: Path) -> None:
    """The file says how it begins: by a function, or by a file beside it."""
    setups = made(tmp_path, rounds())
    assert setups.initial("iris", "train") == b"100"
    (task,) = setup_of(setups).tasks
    assert (task.checkpoint.data, task.committed, task.takes_model) == (b"7", 3, True)
    (tmp_path / "model").write_bytes(b"5")
    text = rounds(aggregate="counted").replace(f'initial = "{MODULE}:initial"', 'initial_file = "model"')
    setups = made(tmp_path, text)
    assert setups.initial("iris", "train") == b"5"
    assert not setup_of(setups).tasks[0].takes_model


def test_functions_of_one_name_are_served_beside_each_other(tmp_path: Path) -> None:
    """The second one is named by its whole entrypoint, which the task then says."""
    path = tmp_path / "other.py"
    path.write_text(
        "from collections.abc import Iterator\ndef add(updates: Iterator[bytes]) -> bytes:\n    return b''\n"
    )
    text = rounds(tasks=("a", "b")).replace(f"{MODULE}:add", f"{path}:add", 1)
    tasks = setup_of(made(tmp_path, text)).tasks
    assert [one.config.aggregate for one in tasks] == ["add", f"{MODULE}:add"]


def test_functions_that_are_served_already_stay_as_they_are(tmp_path: Path) -> None:
    """A file of rounds beside an entrypoint adds only what is missing."""
    path = tmp_path / "rounds.toml"
    path.write_text(rounds())
    found: tuple[Prepared, ...] = prepare(f"{MODULE}:add")
    assert with_aggregators(str(path), found, Config()) == found


def test_F086_updates_for_our_own_functions_are_checked(tmp_path: Path) -> None:
    """By the model; those of functions that take updates must be updates, and those of others are left alone."""
    pytest.importorskip("numpy")
    from invoker import Checkpoint
    from invoker.codecs.checkpoint import write_checkpoint

    setups = made(tmp_path, rounds().replace(f"{MODULE}:add", "invoker.aggregators:mean"))
    model = write_checkpoint(Checkpoint({"w": [1.0, 2.0]}))
    check = setup_of(setups, checkpoint=model).tasks[0].checker(model)
    check(model)
    with pytest.raises(ValueError, match="the model has 'w'"):
        check(write_checkpoint(Checkpoint({"v": [1.0]})))
    own = made(tmp_path, rounds().replace(f"{MODULE}:add", "functions.federated:mean"))
    with pytest.raises(DecodeError):
        setup_of(own, checkpoint=model).tasks[0].checker(model)(b"no update")
    assert setup_of(made(tmp_path, rounds())).tasks[0].checker(model) is None


def test_F142_other_machines_need_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in the file, or in a variable."""
    with pytest.raises(ConfigError, match="population 'iris': it has no api_key"):
        made(tmp_path, rounds(), is_public=True)
    assert setup_of(made(tmp_path, rounds(head='api_key = "k"'), is_public=True)).api_key == "k"
    monkeypatch.setenv("IRIS_KEY", "secret")
    assert setup_of(made(tmp_path, rounds(head='api_key_env = "IRIS_KEY"'), is_public=True)).api_key == "secret"


def test_attestation_and_eligibility_are_looked_up(tmp_path: Path) -> None:
    """One is a function of this process, the other one of the devices."""
    head = f'attestation = "{MODULE}:attest"\neligibility = "devices:look"'
    found = setup_of(made(tmp_path, rounds(head=head)))
    assert found.attest("right")
    assert not found.attest("wrong")
    assert b'"fn":"devices:look"' in found.eligibility.plan.data
    (tmp_path / "look.bin").write_bytes(b"opaque")
    found = setup_of(made(tmp_path, rounds(head='eligibility_file = "look.bin"')))
    assert found.eligibility.plan.data == b"opaque"


def test_F137_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Of rounds, or of what they name."""
    with pytest.raises(ConfigError, match=r"none\.toml"):
        read_rounds(str(tmp_path / "none.toml"))
    with pytest.raises(ConfigError, match=r"task 'train': plan_file is 'no\.bin'"):
        made(tmp_path, rounds().replace('plan = "devices:train"', 'plan_file = "no.bin"'))


def test_a_first_checkpoint_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    """A start that finds a checkpoint in the store does not pay for it; and it is made once."""
    calls, path = tmp_path / "calls", tmp_path / "first.py"
    path.write_text(
        "import pathlib\n\n\ndef initial():\n"
        f"    with pathlib.Path({str(calls)!r}).open('a') as file:\n        file.write('x')\n    return b'5'\n"
    )
    setups = made(tmp_path, rounds().replace(f"{MODULE}:initial", f"{path}:initial"))
    assert not calls.exists()
    assert setups.initial("iris", "train") == setups.initial("iris", "train") == b"5"
    assert calls.read_text() == "x"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return None", "gave NoneType; it must return a Checkpoint, a dict or bytes"),
        ("return 3", "gave int; it must"),
        ("raise ValueError('broken')", "gives no checkpoint: ValueError: broken"),
        (
            "raise ModuleNotFoundError('no numpy', name='numpy')",
            r"ModuleNotFoundError: no numpy; pip install 'stream-invoker\[federated\]'",
        ),
    ],
)
def test_F137_a_function_without_a_first_checkpoint_is_told(tmp_path: Path, body: str, said: str) -> None:
    """What it gave, what was expected, and what to install."""
    path = tmp_path / f"first_{len(body)}.py"  # modules are kept by name
    path.write_text(f"def first():\n    {body}\n")
    text = rounds().replace(f'initial = "{MODULE}:initial"', f'initial = "{path}:first"')
    setups = made(tmp_path, text)
    with pytest.raises(LoadError, match=said):
        setups.initial("iris", "train")


def test_F137_a_function_of_one_update_cannot_aggregate_many(tmp_path: Path) -> None:
    """Without annotations it is called for each update, which would fail each round."""
    path = tmp_path / "plain.py"
    path.write_text("def add(updates, model):\n    return b''\n")
    with pytest.raises(ConfigError, match=r"task 'train': aggregate is .*annotate its first parameter as an iterator"):
        made(tmp_path, rounds().replace(f"{MODULE}:add", f"{path}:add"))


def test_F137_secure_rounds_without_their_packages_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, and not when the first devices are there."""
    text = rounds(clients=2) + "\n[population.task.secagg]\nvectors = { w = { modulus = 8, length = 2 } }\n"
    monkeypatch.setattr(
        "invoker.protocols.federated.service.setups.find_spec", lambda name: None if name == "numpy" else name
    )
    with pytest.raises(
        ConfigError, match=r"task 'train': secagg needs numpy, which this process does not have; " r"pip install"
    ):
        made(tmp_path, text)


@pytest.mark.parametrize("key", ["initial_file", "plan_file", "eligibility_file"])
def test_F137_what_no_device_can_take_stops_the_start(tmp_path: Path, key: str) -> None:
    """A plan or a first checkpoint of 64 MiB, whichever way it is given; the text says both sizes and the limit."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(64 * 2**20)
    line = {"initial_file": f'initial = "{MODULE}:initial"', "plan_file": 'plan = "devices:train"'}.get(key, "")
    text = rounds().replace(line, f'{key} = "large"') if line else rounds(head=f'{key} = "large"')
    said = "checkpoint has [0-9]+ bytes and the plan [0-9]+; the limit for both together is 67043328 bytes"
    with pytest.raises((ConfigError, LoadError), match=f"population 'iris'.*{said}"):
        made(tmp_path, text).initial("iris", "train")


def test_a_stored_checkpoint_that_no_device_can_take_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is of an earlier version, which committed it; the file with its first checkpoint cannot help any more."""
    setup_of(made(tmp_path, rounds()), checkpoint=bytes(64 * 2**20))
    (record,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert "no device can take part in the task 'train': the checkpoint has 67108864 bytes" in record.getMessage()
