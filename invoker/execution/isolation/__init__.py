"""Bodies in child processes, which can be killed: the frames of the pipe, the two ends of it, and the warm pool.

A child holds one invocation at a time. It runs an engine, a driver and a reactor, as the serving process does, with the
pipe as the wire (`session`, and `invoker.server.isolated`, which is the program of a child). The serving process has a
runner for it (`invoker.execution.bodies.process`). Values cross the pipe as `Message`s, encoded as they came.
"""

__all__: list[str] = []
