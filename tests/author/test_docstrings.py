"""Docstrings in three styles say the same; odd ones say what can be read of them."""

from __future__ import annotations

import inspect

import pytest

from invoker.author.docstrings import Docs, read_docstring

GOOGLE = """Resize an image
    to a width.

    The height follows.

    Args:
        image (bytes): The file: PNG
            or JPEG.
        width (Optional[int]): In pixels.
        *more: Further ones.
        mode: One of two.

            A second paragraph is left out.

    Returns:
        bytes: The new file.

    Raises:
        ValueError: It is no image.

    Examples:
        >>> resize(data, 5)
        b'...'
        >>> for one in (1, 2):
        ...     resize(data, one)
"""

NUMPY = """Resize an image
    to a width.

    The height follows.

    Parameters
    ----------
    image : bytes
        The file: PNG
        or JPEG.
    width : int, optional
        In pixels.
    *more
        Further ones.
    mode : {'a', 'b'}
        One of two.

        A second paragraph is left out.

    Returns
    -------
    bytes
        The new file.

    Examples
    --------
    >>> resize(data, 5)
    b'...'
    >>> for one in (1, 2):
    ...     resize(data, one)
"""

REST = """
    Resize an image
    to a width.

    The height follows.

    :param bytes image: The file: PNG
        or JPEG.
    :param width: In pixels.
    :type width: int
    :param more: Further ones.
    :param mode: One of two.
    :returns: The new file.
    :rtype: bytes
    :raises ValueError: It is no image.

    >>> resize(data, 5)
    b'...'
    >>> for one in (1, 2):
    ...     resize(data, one)
"""

SAME = Docs(
    "Resize an image to a width.",
    {"image": "The file: PNG or JPEG.", "width": "In pixels.", "more": "Further ones.", "mode": "One of two."},
    "The new file.",
    ("resize(data, 5)", "for one in (1, 2):\n    resize(data, one)"),
)


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, REST], ids=["google", "numpy", "rest"])
def test_T028_three_styles_say_the_same(text: str) -> None:
    """Summary, arguments, result and examples are the same in each (scenario 11)."""
    assert read_docstring(inspect.cleandoc(text)) == SAME


@pytest.mark.parametrize(
    ("text", "docs"),
    [
        ("", Docs()),
        ("One line.", Docs("One line.")),
        ("Two\nlines.\n\nMore.", Docs("Two lines.")),
        ("Args:\n    a: Only this.", Docs("", {"a": "Only this."})),
        (":param a: Only this.", Docs("", {"a": "Only this."})),
        ("Sum.\n\nReturns:\n    The sum of both.", Docs("Sum.", {}, "The sum of both.")),
        ("Sum.\n\nYields:\n    int: Each: one.", Docs("Sum.", {}, "Each: one.")),
        ("Sum.\n\nReturns\n-------\nThe sum.", Docs("Sum.", {}, "The sum.")),
        ("Sum.\n\nArgs:\n\nReturns:\n", Docs("Sum.")),
        ("Sum.\n\nArgs:\n    no entry at all\n    a: Yes.", Docs("Sum.", {"a": "Yes."})),
        ("Args are fine: they are no section.\n\nNote that: so.", Docs("Args are fine: they are no section.")),
        ("X.\n\nParameters\n----------\na, b : int\n    Both.", Docs("X.", {"a": "Both.", "b": "Both."})),
        ("X.\n\n:return: All\n   of it.\n\nBehind.", Docs("X.", {}, "All of it.")),
        (">>> f(1)\n1", Docs("", {}, "", ("f(1)",))),
        ("X.\n>>> f(1)\n>>> f(2)", Docs("X.", {}, "", ("f(1)", "f(2)"))),
    ],
)
def test_T028_odd_docstrings(text: str, docs: Docs) -> None:
    """What can be read is read, and nothing else is made up."""
    assert read_docstring(text) == docs
