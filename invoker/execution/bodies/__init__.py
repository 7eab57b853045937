"""Runs bodies: on the loop (`loop`), or in threads (`thread`); `sync` is the code that all these threads share.

A body in a child process can be killed (`process`); its pipe and the code at the other end are in
`invoker.execution.isolation`.
"""

__all__: list[str] = []
