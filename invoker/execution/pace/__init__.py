"""What is counted and measured for calls, whoever waits for them: turns of the loop, tasks, time limits of threads."""

__all__: list[str] = []
