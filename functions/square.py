"""Request/reply: a plain function is called for each value of its input.

python -m invoker functions.square:square
python -m invoker call localhost:8081 --data 7
"""


def square(x: int) -> int:
    """The square of each number."""
    return x * x
