"""Keys, agreements and sealed messages of `invoker.protocols.federated.wire.keys`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import invoker
from invoker.protocols.federated.wire.keys import KeyPair, is_point, new_key, open_sealed, public_of, seal
from tests.protocols.federated.secagg import model

ONE, TWO = bytes([1]) * 32, bytes([2]) * 32
PUBLIC_ONE = bytes.fromhex("026ff03b949241ce1dadd43519e6960e0a85b41a69a05c328103aa2bce1594ca16")
PUBLIC_TWO = bytes.fromhex("02550f471003f3df97c3df506ac797f6721fb1a1fb7b8f6f83d224498a65c88e24")
AGREED = bytes.fromhex("eb459a6b30d70eb4c0ddcd34ea96ed59e8f8d1843c22dd895ab603aa13d9a81d")
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def test_F096_public_keys_and_what_they_agree_on_are_those_of_the_catalogue() -> None:
    """The vectors of section 1.4; the secret is the x-coordinate itself, in both directions."""
    one, two = KeyPair(ONE), KeyPair(TWO)
    assert (one.public, two.public) == (PUBLIC_ONE, PUBLIC_TWO)
    assert one.agree(PUBLIC_TWO) == two.agree(PUBLIC_ONE) == AGREED
    assert public_of(ONE) == PUBLIC_ONE


@settings(deadline=None, max_examples=10)
@given(st.integers(1, ORDER - 1), st.integers(1, ORDER - 1))
def test_F096_keys_are_those_of_the_slow_model(one: int, two: int) -> None:
    """Any two secrets, on the curve as the textbook has it."""
    first, second = one.to_bytes(32, "big"), two.to_bytes(32, "big")
    pair = KeyPair(first)
    assert pair.public == model.public(first)
    assert pair.agree(model.public(second)) == model.agree(second, pair.public)


def test_F099_new_pairs_are_fresh_and_compressed() -> None:
    """33 bytes, and never the same ones; the secret one has 32 bytes whatever its number is."""
    pairs = [KeyPair() for _ in range(20)]
    assert len({pair.public for pair in pairs}) == 20
    for pair in pairs:
        assert len(pair.public) == 33
        assert pair.public[0] in {2, 3}
        assert KeyPair(pair.secret).public == pair.public
    assert len({new_key() for _ in range(20)}) == 20


@pytest.mark.parametrize(
    ("public", "why"),
    [
        (b"", "dead"),
        (b"\x00", "the point at infinity"),
        (b"\x00" * 33, "infinity, padded"),
        (b"\x02" + b"\xff" * 32, "not below the prime"),
        (b"\x02" + bytes(31) + b"\x01", "not on the curve"),
        (b"\x04" + PUBLIC_ONE[1:], "the wrong form"),
        (PUBLIC_ONE + b"\x00", "a byte too many"),
        (b"\x04" + b"".join(part.to_bytes(32, "big") for part in model.G), "not compressed"),
    ],
)
def test_F113_F114_only_compressed_points_of_the_curve_are_keys(public: bytes, why: str) -> None:
    """Everything else is refused, and so is an agreement with it."""
    assert is_point(PUBLIC_ONE)
    assert not is_point(public), why
    with pytest.raises(ValueError, match=r"."):
        KeyPair(ONE).agree(public)


@pytest.mark.parametrize("number", [0, ORDER, 2**256 - 1])
def test_F127_numbers_that_are_no_secret_keys_have_no_public_one(number: int) -> None:
    """A secret that was put together from wrong shares may be anything."""
    assert public_of(number.to_bytes(32, "big")) is None
    assert public_of((ORDER - 1).to_bytes(32, "big")) is not None


def test_F096_a_sealed_message_is_a_nonce_the_text_and_a_tag() -> None:
    """76 bytes become 104, no two of them alike."""
    sealed = seal(ONE, bytes(76))
    assert len(sealed) == 104
    assert sealed[:12] != seal(ONE, bytes(76))[:12]
    assert open_sealed(ONE, sealed) == bytes(76)


def test_F105_a_changed_message_does_not_open() -> None:
    """Another key, one bit of any byte, and what is too short to be one."""
    sealed = seal(ONE, b"share")
    assert open_sealed(TWO, sealed) is None
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        assert open_sealed(ONE, bytes(changed)) is None
    for size in range(28):
        assert open_sealed(ONE, sealed[:size]) is None


def test_secrets_do_not_show_in_a_representation() -> None:
    """Tracebacks and logs show values."""
    assert ONE.hex() not in repr(KeyPair(ONE))
    assert str(ONE) not in repr(KeyPair(ONE))


def test_F097_randomness_comes_of_the_operating_system_alone() -> None:
    """No module of secure aggregation imports `random`, or numpy's generators."""
    package = Path(invoker.__file__).parent
    modules = [
        *package.glob("secagg/*.py"),
        *package.glob("protocols/federated/secagg/*.py"),
        *package.glob("client/federated/secagg*.py"),
        *package.glob("client/federated/secagg/*.py"),
    ]
    assert len(modules) > 6
    for path in modules:
        tree = ast.parse(path.read_text())
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert "random" not in names, path
        assert not any(isinstance(node, ast.Attribute) and node.attr == "random" for node in ast.walk(tree)), path


def test_plain_rounds_need_neither_cryptography_nor_numpy() -> None:
    """Both are loaded with the first key, not with the modules."""
    modules = "keys, shares, derive, packing, masks, quantity"
    loaded = "any(name in sys.modules for name in ('cryptography', 'numpy'))"
    code = f"import sys; from invoker.protocols.federated.secagg import {modules}; sys.exit({loaded})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
