"""Request/reply: a plain function is mapped over its input.

python -m invoker functions.square:square
python -m invoker call localhost:8081 --data 7
"""


def square(x: int) -> int:
    """The square of each number."""
    return x * x
