"""What the names of a request mean: `bound` asks the binder of the function, in its terms.

Over HTTP a name has one value, or all that a stream has; the name of ``*args``, and others in a form, are for an
element each (H-210), which the binder knows by its number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NoReturn

from invoker.author.binding import KEYWORD, Assignment
from invoker.errors import DecodeError
from invoker.errors.wording import normalised, twice, unknown
from invoker.protocols.web.fields import Signature

_WAYS = "; give it as the body, a query parameter, a field of a form or a member of a JSON object"


def bound(
    signature: Signature, names: Iterable[str], *, later: Collection[str] = (), hint: str = ""
) -> tuple[dict[str, int], Assignment]:
    """The inputs that values of these names are for: the place of each name among them, and what the binder says.

    Args:
        signature: The signature of the function.
        names: The name of each value; as `elements` gives it if the function takes any number of inputs.
        later: Names of inputs of which values are still to come.
        hint: The end of the text about a missing value.

    Raises:
        DecodeError: A value is missing, unknown, or given twice.
    """
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    known = signature.known
    if signature.is_open:
        fixed = len(signature.inputs) - 1
        known = (*known[:fixed], *(name for name in counts if name[:1] == "#"), *known[fixed + 1 :])
    asked: list[str] = []
    for name in (*known, *(one for one in counts if one not in known)):
        count = counts.get(name, 0)
        if name in signature.streams or name in later or (signature.is_open and name[:1] == "#"):
            count = 1 if count or name in signature.inputs else 0  # a stream may also be empty
        asked += [name] * count
    found = signature.binder.named(asked)
    if found.faults:
        fault = found.faults[0]
        lacks = fault.code == "missing_arg" and fault.name in signature.inputs
        raise DecodeError(f"{fault}{_WAYS if lacks else ''}", hint=hint if lacks else "")
    return {name: place for place, name in enumerate(asked)}, found


def check_names(signature: Signature, names: Sequence[str], hint: str = "") -> None:
    """Refuse a name that no parameter takes, or that occurs twice; other names may still be missing.

    Args:
        signature: The signature of the function.
        names: The names that are given.
        hint: The text after the sentence.
    """
    faults = signature.binder.named(names).faults
    fault = next((one for one in faults if one.code != "missing_arg"), None)
    if fault is None:  # the binder knows ``*args`` after a default, and an empty name, too
        strangers = (one for one in names if not signature.takes(normalised(one)))
        fault = next((unknown(signature.name, one, signature.known) for one in strangers), None)
    if fault is not None:
        raise DecodeError(f"{fault}{hint}")


def refuse(signature: Signature, name: str, hint: str = "") -> NoReturn:
    """Refuse a value, in a body that streams, for a name that is no input's, or whose input has its value already.

    Raises:
        DecodeError: In any case.
    """
    check_names(signature, [name], hint)
    raise DecodeError(f"{twice(signature.name, name)}{hint}")


def elements(signature: Signature, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The binder's name for each value of a function with any number of inputs, and the name that the function sees.

    Args:
        signature: The signature of the function.
        names: The name of each value; a name that is not a parameter's is an element of ``*args``, or is taken by
            ``**kwargs``.
    """
    own, taken = signature.inputs[-1], {*names}
    keys: list[str] = []
    labels: dict[str, str] = {}
    of_label: dict[str, str] = {}
    count = 0
    for name in names:
        if name != own and name in signature.known:
            keys.append(name)
            continue
        if name != own and signature.more is not None:
            keys.append(KEYWORD + name)
            labels[keys[-1]] = name
            continue
        label = name
        if signature.opens_values:
            while label in of_label or (label != name and label in taken):
                count += 1
                label = f"{own}{count}"
        key = of_label.setdefault(label, f"#{len(of_label)}")
        labels[key] = label
        keys.append(key)
    return keys, labels
