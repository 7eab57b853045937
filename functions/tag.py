r"""One generator with several outputs: ``Output`` names the output of a value.

python -m invoker functions.tag:tag
printf '1\\nx\\n' | python -m invoker call localhost:8081 --outputs numbers,errors
"""

from collections.abc import Iterator

from invoker import Output, function


@function(outputs=("numbers", "errors"))
def tag(texts: Iterator[str]) -> Iterator[Output]:
    """Send numbers to one output, and all other texts to the other."""
    for text in texts:
        try:
            yield Output("numbers", int(text))
        except ValueError:
            yield Output("errors", f"{text!r} is no number")
