"""A function with several inputs: their values are zipped, and the function is called once for each pair.

python -m invoker functions.add:add
python -m invoker call localhost:8081 --data 1 --arg 1=41
"""


def add(a: int, b: int) -> int:
    """The sum of two inputs, pair by pair."""
    return a + b
