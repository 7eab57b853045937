"""Runs bodies: on the loop (`loop`), or in threads (`thread`); `sync` is what all these threads do.

A body in a child process can be killed (`process`); what goes over its pipe, and who is there, is `drive/isolated`.
"""

__all__: list[str] = []
