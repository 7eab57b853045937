"""Removes the masks from a sum: recovers secrets from shares, and computes the masks that the sum contains.

The sum contains the own mask of each included device; the other devices have shares of the key of this mask. A device
that sent shares but no vector is missing in the sum; the other devices have added the masks that they share with it,
and have shares of its noise key. The server never knows both keys of a device, so the vector of a single device cannot
be unmasked.

A malicious device may send wrong shares. So the recovered secrets are checked (F-127, F-128, F-135): noise keys must
belong to the advertised public keys, limbs must be in their range, and all other shares must lie on the same
polynomials.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from invoker.protocols.federated.wire.derive import mask_key
from invoker.protocols.federated.wire.keys import KEY_BYTES, KeyPair, public_of
from invoker.protocols.federated.wire.masks import add_masks
from invoker.protocols.federated.wire.shares import combine, join, weights

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

_MOST_SUBSETS: Final = 500
"""How many subsets of replies are tried before the round fails."""


class Cohort(msgspec.Struct, frozen=True):
    """The devices that are included in the sum, and those that are missing.

    Attributes:
        session: The id of the session.
        noise: The advertised noise key of each device, by index; empty: the device never took part.
        included: The indices of the devices in the sum, ascending.
        missing: The indices of the devices that sent shares but are not in the sum, ascending.
    """

    session: bytes
    noise: Sequence[bytes]
    included: Sequence[int]
    missing: Sequence[int]


class Secrets(msgspec.Struct, frozen=True):
    """Recovered keys: for each included device the key of its own mask, for each missing device its noise key."""

    own: Sequence[bytes]
    noise: Sequence[bytes]


def recover(cohort: Cohort, replies: Mapping[int, Array], threshold: int) -> Secrets | None:
    """Recover the secrets from shares; None if shares are wrong, and more replies are needed.

    Args:
        cohort: The included and the missing devices.
        replies: By index of the sender, its shares for the included and then for the missing devices: (devices, limbs)
            of uint32.
        threshold: How many replies are needed; ``replies`` has at least as many.
    """
    for subset in itertools.islice(_subsets(sorted(replies), threshold), _MOST_SUBSETS):
        if (secrets := _recovered(cohort, replies, subset)) is not None:
            return secrets if _all_agree(cohort, replies, subset) else None
    return None


def unmask(
    cohort: Cohort,
    secrets: Secrets,
    sums: Mapping[str, Array],
    vectors: Mapping[str, tuple[int, int]],
    *,
    stopped: Callable[[], bool],
) -> dict[str, Array]:
    """Remove all masks from the sums.

    Returns:
        The unmasked sums by name, each (length,) of uint64 below the modulus.
    """
    import numpy as np

    plus, minus = _left_masks(cohort, secrets, stopped)
    unmasked = {}
    for name, (modulus, length) in vectors.items():
        added, taken = (
            add_masks(
                [mask_key(key, session=cohort.session, modulus=modulus, length=length, name=name) for key in keys],
                modulus,
                length,
                stopped=stopped,
            )
            for keys in (plus, minus)
        )
        # all three terms are below 2^62, so their sum does not overflow before the remainder is taken
        unmasked[name] = (sums[name] + added + (np.uint64(modulus) - taken)) % np.uint64(modulus)
    return unmasked


def _left_masks(cohort: Cohort, secrets: Secrets, stopped: Callable[[], bool]) -> tuple[list[bytes], list[bytes]]:
    """The keys of the masks that must be added to the sum, and those of the masks that must be subtracted."""
    plus, minus = list[bytes](), list(secrets.own)
    for dead, secret in zip(cohort.missing, secrets.noise, strict=True):
        if stopped():
            break
        pair = KeyPair(secret)
        for index in cohort.included:
            # A device adds the masks that it shares with devices before it, and subtracts those with devices after it.
            (plus if dead > index else minus).append(pair.agree(cohort.noise[index]))
    return plus, minus


def _subsets(replied: Sequence[int], threshold: int) -> Iterator[Sequence[int]]:
    """The subsets of replies to try, in order.

    First the replies with the lowest indices (F-127), then each other run of consecutive replies, so that every device
    is left out of some subset; then all combinations.
    """
    if len(replied) == threshold:
        return iter((replied,))
    twice = [*replied, *replied]
    turned = (sorted(twice[start : start + threshold]) for start in range(len(replied)))
    return itertools.chain(turned, itertools.combinations(replied, threshold))


def _recovered(cohort: Cohort, replies: Mapping[int, Array], subset: Sequence[int]) -> Secrets | None:
    """Recover the secrets from one subset of replies; None if they are not consistent."""
    import numpy as np

    limbs = combine(weights(subset), np.stack([replies[index] for index in subset]))
    secrets = [join(row, KEY_BYTES) for row in limbs]
    known = [secret for secret in secrets if secret is not None]
    if len(known) < len(secrets):
        return None
    own, noise = known[: len(cohort.included)], known[len(cohort.included) :]
    if any(public_of(key) != cohort.noise[dead] for dead, key in zip(cohort.missing, noise, strict=True)):
        return None
    return Secrets(own, noise)


def _all_agree(cohort: Cohort, replies: Mapping[int, Array], subset: Sequence[int]) -> bool:
    """Whether the other replies are consistent with those of the subset.

    A reply with wrong shares of noise keys is ignored, since its sender is known to be malicious.
    """
    import numpy as np

    left = [index for index in replies if index not in subset]
    if not left:
        return True
    shares = np.stack([replies[index] for index in subset])
    count = len(cohort.included)
    for index in left:
        does_fit = (combine(weights(subset, at=index + 1), shares) == replies[index]).all(axis=1)
        if does_fit[count:].all() and not does_fit[:count].all():
            return False
    return True
