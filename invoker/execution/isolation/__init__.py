"""Bodies in child processes, which can be killed: the frames of the pipe, the two ends of it, and the warm pool.

A child holds one invocation at a time. Its half is an engine, a driver and a reactor as everywhere, whose wire is the
pipe (`session`, and `invoker.server.isolated`, which is the program of a child); the other half is a runner in the
serving process (`invoker.execution.bodies.process`). What goes over the pipe are `Message`s, encoded as they came.
"""

__all__: list[str] = []
