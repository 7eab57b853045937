"""The device's side of secure aggregation: what it tells, and what it refuses (`protocols.federated.client.secagg`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from invoker._pb.federated import secagg_messages_pb2 as secagg_pb
from invoker.errors import Status
from invoker.protocols.federated.client.messages import SecAggTask, Turn
from invoker.protocols.federated.client.secagg import SecAggClient
from invoker.protocols.federated.wire.derive import session_id
from invoker.protocols.federated.wire.keys import KeyPair, is_point, open_sealed, seal
from invoker.protocols.federated.wire.packing import unpack
from tests.protocols.federated.client.secagg_script import DOWN, OWN, TASK, Scripted, finish
from tests.protocols.federated.secagg import model

STEPS = ["share_keys_request", "masked_input_request", "unmasking_request"]


def assert_objects(turn: Turn, text: str) -> None:
    """The device says abort, tells why, and stops."""
    (message,) = turn.messages
    assert text in message.abort.diagnostic_info
    assert not message.abort.early_success
    assert turn.error == (Status.CANCELLED, message.abort.diagnostic_info)
    assert not turn.is_done


def test_F099_the_first_message_has_two_fresh_keys() -> None:
    """Compressed points, others in each session."""
    one, two = Scripted().hello, Scripted().hello
    assert len({one.noise_pk, one.enc_pk, two.noise_pk, two.enc_pk}) == 4
    assert all(len(key) == 33 and is_point(key) for key in (one.noise_pk, one.enc_pk))


def test_F096_the_masked_vector_is_that_of_the_slow_model() -> None:
    """Its own mask, plus those of devices before it, less those of devices behind it."""
    script = Scripted().until("masked_input_request")
    (message,) = script.hear(script.shares(lambda entries: entries.__setitem__(3, b""))).messages
    masked = unpack(message.masked_input_response.vectors["w"].encoded_vector, 1000003, 3).tolist()
    session = session_id(script.pairs)

    def mask(secret: bytes) -> list[int]:
        return model.mask(model.mask_key(secret, session, 1000003, 3, "w"), 1000003, 3)

    pairwise = {index: mask(model.agree(pair.secret, script.hello.noise_pk)) for index, pair in script.noise.items()}
    secrets = script.client._secrets
    assert secrets is not None
    own = mask(secrets.own)
    for at, value in enumerate([0, 1, 1000002]):
        expected = value + own[at] + pairwise[0][at] - pairwise[2][at] - pairwise[4][at]
        assert masked[at] == expected % 1000003


def test_F103_shares_are_for_all_others_that_take_part() -> None:
    """One entry for each device, empty for itself and for dead ones; each opens with its device's key alone."""
    script = Scripted()
    script.pairs[4] = b"", b""
    (message,) = script.hear(script.keys()).messages
    entries = list(message.share_keys_response.encrypted_key_shares)
    assert [len(entry) for entry in entries] == [104, 0, 104, 104, 0]
    noise: dict[int, bytes] = {}
    for index in (0, 2, 3):
        plain = open_sealed(script.enc[index].agree(script.hello.enc_pk), entries[index])
        assert plain is not None
        noise[index] = secagg_pb.PairOfKeyShares.FromString(plain).noise_sk_share
        others = [pair for other, pair in script.enc.items() if other != index]
        assert not any(open_sealed(pair.agree(script.hello.enc_pk), entries[index]) for pair in others)
    assert KeyPair(model.secret(noise, 32)).public == script.hello.noise_pk


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda pairs: pairs.pop(OWN), "came 0 times"),
        (lambda pairs: pairs.__setitem__(3, pairs[OWN]), "came 2 times"),
        (lambda pairs: pairs.__setitem__(OWN, (pairs[OWN][0], pairs[0][1])), "came 0 times"),
        (lambda pairs: pairs.__setitem__(OWN, (pairs[0][0], pairs[OWN][1])), "came 0 times"),
        (lambda pairs: pairs.__setitem__(OWN, pairs[OWN][::-1]), "came 0 times"),
    ],
)
def test_F100_a_device_must_find_itself_once(change: Callable[[Any], Any], text: str) -> None:
    """By both keys."""
    script = Scripted()
    change(script.pairs)
    assert_objects(script.hear(script.keys()), text)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda pairs: [pairs.pop() for _ in range(3)], "2 pairs of keys came; there must be 3 to 5"),
        (lambda pairs: pairs.append((KeyPair().public, KeyPair().public)), "6 pairs of keys came"),
        (lambda pairs: pairs.__setitem__(3, (pairs[3][0][:32], pairs[3][1])), "not a compressed point"),
        (lambda pairs: pairs.__setitem__(3, (pairs[3][0], pairs[3][1] + b"\0")), "not a compressed point"),
        (lambda pairs: pairs.__setitem__(3, (b"\x02" + bytes(31) + b"\x01", pairs[3][1])), "not a compressed point"),
        (lambda pairs: pairs.__setitem__(3, (b"", b"\x02" + bytes(31) + b"\x01")), "not a compressed point"),
        (lambda pairs: pairs.__setitem__(3, pairs[0]), "two devices have the same public key"),
        (lambda pairs: pairs.__setitem__(3, (pairs[0][0], pairs[3][1])), "two devices have the same public key"),
        (lambda pairs: pairs.__setitem__(3, (pairs[OWN][0], pairs[3][1])), "two devices have the same public key"),
        (lambda pairs: pairs.__setitem__(3, (pairs[3][0], pairs[0][1])), "two devices have the same public key"),
    ],
)
def test_F101_pairs_that_no_honest_server_sends(change: Callable[[Any], Any], text: str) -> None:
    """Their count, their sizes, their points."""
    script = Scripted()
    change(script.pairs)
    assert_objects(script.hear(script.keys()), text)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_F101_the_session_id_has_32_bytes(size: int) -> None:
    """Scenario 71."""
    script = Scripted()
    assert_objects(script.hear(script.keys(session=bytes(size))), f"has {size} bytes, not 32")


def test_F104_a_wrong_session_id_is_noticed_if_all_pairs_are_there() -> None:
    """Scenarios 70 and 71; from a part of the cohort it cannot be computed."""
    script = Scripted()
    assert_objects(script.hear(script.keys(session=bytes(32))), "not that of the keys")
    fewer = Scripted()
    fewer.pairs.pop()
    assert fewer.hear(fewer.keys(session=bytes(32))).error is None


@pytest.mark.parametrize("dead", [(b"", b""), ("noise", b""), (b"", "enc")])
def test_F102_a_device_without_both_keys_is_dead(dead: tuple[Any, Any]) -> None:
    """Three are enough, two are not."""
    pair = tuple(KeyPair().public if key else b"" for key in dead)
    script = Scripted()
    script.pairs[3] = script.pairs[4] = pair  # type: ignore[assignment]
    (message,) = script.hear(script.keys()).messages
    assert [bool(entry) for entry in message.share_keys_response.encrypted_key_shares] == [
        True,
        False,
        True,
        False,
        False,
    ]
    fewer = Scripted()
    fewer.pairs[2] = fewer.pairs[3] = fewer.pairs[4] = pair  # type: ignore[assignment]
    assert_objects(fewer.hear(fewer.keys()), "2 devices are left, and 3 are needed")


def test_D9_a_threshold_that_is_no_majority_is_refused() -> None:
    """Else three devices could be asked for one secret of a device, and three others for the other one."""
    script = Scripted(SecAggTask({"w": 1000003}, 6, 3, 3))
    assert script.hear(script.keys()).error is None
    six = Scripted(SecAggTask({"w": 1000003}, 6, 3, 3))
    six.pairs.append((KeyPair().public, KeyPair().public))
    assert_objects(six.hear(six.keys()), "3 of 6 devices are not a majority")
    with pytest.raises(ValueError, match="the threshold is 1; it must be at least 2"):
        SecAggClient(SecAggTask({"w": 5}, 5, 1, 1), {"w": [1]})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda entries: entries.pop(), "4 shares came for 5 devices"),
        (lambda entries: entries.append(b""), "6 shares came for 5 devices"),
        (lambda entries: entries.__setitem__(OWN, entries[0]), "device 2 came, which is not a participant"),
        (lambda entries: entries.__setitem__(0, entries[2]), "could not be decrypted"),
        (lambda entries: entries.__setitem__(0, entries[0][:-1]), "could not be decrypted"),
        (lambda entries: entries.__setitem__(0, b"x"), "could not be decrypted"),
    ],
)
def test_F105_shares_that_no_honest_device_sends(change: Callable[[Any], Any], text: str) -> None:
    """Scenario 58: the count, a share for itself, what does not open."""
    script = Scripted().until("masked_input_request")
    assert_objects(script.hear(script.shares(change)), text)


def test_F105_a_share_from_a_device_that_was_dead() -> None:
    """It had no key to seal it with."""
    script = Scripted()
    script.pairs[4] = b"", b""
    script.until("masked_input_request")
    assert_objects(script.hear(script.shares()), "device 5 came, which is not a participant")


@pytest.mark.parametrize(
    "plain", [b"\xff\xff", b"", secagg_pb.PairOfKeyShares(noise_sk_share=bytes(36)).SerializeToString()]
)
def test_F105_shares_that_open_and_are_none(plain: bytes) -> None:
    """Bytes that are no message, nothing, one share without the other."""
    script = Scripted().until("masked_input_request")
    sealed = seal(script.enc[0].agree(script.hello.enc_pk), plain)
    turn = script.hear(script.shares(lambda entries: entries.__setitem__(0, sealed)))
    assert_objects(turn, "could not be read" if plain == b"\xff\xff" else "does not have 36 bytes")


def test_F105_shares_of_another_size() -> None:
    """Those of 20 bytes are a legacy client's."""
    script = Scripted().until("masked_input_request")
    assert_objects(script.hear(script.shares(size=20)), "does not have 36 bytes")


def test_F106_a_device_without_shares_is_dead() -> None:
    """Of five, two may be; with three the device leaves."""

    def without(*indices: int) -> Callable[[list[bytes]], None]:
        return lambda entries: [entries.__setitem__(index, b"") for index in indices] and None

    script = Scripted().until("masked_input_request")
    assert script.hear(script.shares(without(0, 4))).error is None
    fewer = Scripted().until("masked_input_request")
    assert_objects(fewer.hear(fewer.shares(without(0, 3, 4))), "2 devices are left")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((OWN + 1,), "is this one"),
        ((0,), "is this one, unknown"),
        ((6,), "unknown"),
        ((3, 3), "named twice"),
        ((5,), "known to be dead"),
        ((1, 3), "2 devices are left"),
    ],
)
def test_F107_missing_devices_that_cannot_be_missing(numbers: tuple[int, ...], text: str) -> None:
    """Scenario 62, and one device too many; device 5 has sent no shares."""
    script = Scripted().until("unmasking_request", lambda entries: entries.__setitem__(4, b""))
    assert_objects(script.hear(script.missing(*numbers)), text)


def test_F108_the_last_message_has_one_share_of_each_device() -> None:
    """Of one that is missing that of the noise key, of all others that of the own mask, of a dead one none."""
    script = Scripted().until("masked_input_request")
    sealed = script.shares(lambda entries: entries.__setitem__(4, b""))
    script.hear(sealed)
    turn = script.hear(script.missing(3))
    assert turn.is_done
    (message,) = turn.messages
    entries = message.unmasking_response.noise_or_prf_key_shares
    kinds = [entry.WhichOneof("oneof_shares") for entry in entries]
    assert kinds == ["prf_sk_share", "prf_sk_share", "noise_sk_share", "prf_sk_share", None]
    for index, kind in ((0, "prf_sk_share"), (2, "noise_sk_share"), (3, "prf_sk_share")):
        key = script.enc[index].agree(script.hello.enc_pk)
        plain = open_sealed(key, sealed.masked_input_request.encrypted_key_shares[index])
        assert getattr(entries[index], kind) == getattr(secagg_pb.PairOfKeyShares.FromString(plain or b""), kind)


def test_F109_a_second_request_to_unmask_is_never_answered() -> None:
    """Scenario 63: the second one names other devices, and would bring the other share of them."""
    script = Scripted().until("done")
    turn = script.hear(script.missing(3))
    assert turn.messages == ()
    assert turn.error is not None
    assert turn.error[0] is Status.FAILED_PRECONDITION


@pytest.mark.parametrize("step", [*STEPS, "done"])
def test_F110_early_success_is_success_at_any_point(step: str) -> None:
    """The device waits for the answer to its report; an abort without it ends with CANCELLED, also afterwards."""
    abort = DOWN()
    abort.abort.early_success = True
    script = Scripted().until(step)
    assert script.hear(abort) == Turn(is_done=True)
    assert script.hear(abort) == Turn(is_done=True)
    abort.abort.early_success = False
    assert script.hear(abort) == Turn(error=(Status.CANCELLED, "SecAgg aborted"))
    assert Scripted().until(step).hear(abort) == Turn(error=(Status.CANCELLED, "SecAgg aborted"))


@pytest.mark.parametrize("at", [*STEPS, "done"])
@pytest.mark.parametrize("wrong", [*STEPS, None])
def test_F111_messages_out_of_order_end_it(at: str, wrong: str | None) -> None:
    """Nothing is said to the server; whatever comes afterwards is not answered either."""
    if at == wrong:
        return
    script = Scripted().until(at)
    turn = script.hear(script.message(wrong) if wrong else DOWN())
    assert turn.messages == ()
    assert turn.error is not None
    assert turn.error[0] is Status.FAILED_PRECONDITION
    if at != "done":
        assert script.hear(script.message(at)).messages == ()


@pytest.mark.parametrize("step", STEPS)
def test_F145_a_device_that_leaves_says_so(step: str) -> None:
    """Once: in any state in which the server waits for it."""
    script = Scripted().until(step)
    assert_objects(script.client.abort("Abort upon external request"), "Abort upon external request")
    assert script.client.abort("again").messages == ()
    early = DOWN()
    early.abort.early_success = True
    assert not script.hear(early).is_done
    assert script.hear(script.message(step)).messages == ()


@pytest.mark.parametrize("step", STEPS[:2])
def test_F145_a_job_that_runs_when_the_device_leaves_gives_nothing(step: str) -> None:
    """Whether it has begun or not: neither shares nor the masked vector are sent."""
    script = Scripted().until(step)
    turn = script.client.receive(script.message(step))
    assert turn.job is not None
    script.client.abort("Abort upon external request")
    assert finish(turn) == Turn()


def test_F145_a_job_that_was_under_way_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device leaves while its masks are added."""
    script = Scripted().until("masked_input_request")
    real = SecAggClient._masked

    def masked(self: SecAggClient, *args: Any) -> Any:
        self.abort("Abort upon external request")
        return real(self, *args)

    monkeypatch.setattr(SecAggClient, "_masked", masked)
    assert script.hear(script.shares()) == Turn()


def test_F097_no_secret_is_kept_after_the_session() -> None:
    """However it ends."""
    for end in (
        lambda script: script.until("done"),
        lambda script: script.client.abort("leave"),
        lambda script: script.until("masked_input_request").hear(script.missing()),
        lambda script: script.hear(script.keys(session=b"")),
    ):
        script = Scripted()
        end(script)
        assert script.client._secrets is None
        assert (script.client._shares, script.client._agreed, script.client._vectors) == ({}, {}, {})


@pytest.mark.parametrize(
    ("vectors", "text"),
    [
        ({}, r"has the vectors \[\]; the task needs \['w'\]"),
        ({"w": [1], "x": [1]}, "the task needs"),
        ({"w": []}, "vector 'w' is empty"),
        ({"w": [1000003]}, "from 1000003 to 1000003; they must be from 0 to 1000002"),
        ({"w": [-1, 0]}, "from -1 to 0"),
        ({"w": [0.5]}, "float64; it must be integers, which invoker.secagg.quantize makes"),
        ({"w": [True]}, "bool; it must be integers"),
    ],
)
def test_F095_vectors_that_do_not_fit_are_refused(vectors: Any, text: str) -> None:
    """Before anything is sent."""
    with pytest.raises(ValueError, match=text):
        SecAggClient(TASK, vectors)


def test_F095_arrays_of_any_shape_are_taken_in_their_order() -> None:
    """The length is the product of the dimensions."""
    script = Scripted(values={"w": np.arange(6, dtype=np.int32).reshape(2, 3)}).until("masked_input_request")
    (message,) = script.hear(script.shares()).messages
    assert len(message.masked_input_response.vectors["w"].encoded_vector) == 15


@pytest.mark.parametrize("modulus", [0, 1, 2**62 + 1])
def test_F090_moduli_out_of_range_are_refused(modulus: int) -> None:
    """By the device, too."""
    with pytest.raises(ValueError, match="the modulus is"):
        SecAggClient(SecAggTask({"w": modulus}, 5, 3, 3), {"w": [0]})
