"""An async generator: it can await between its values, and thousands of calls share one event loop.

python -m invoker functions.chat:chat
python -m invoker call localhost:8081 --accept text/plain --data hello
"""

import asyncio
from collections.abc import AsyncIterator


async def chat(prompts: AsyncIterator[str]) -> AsyncIterator[str]:
    """Answers each prompt word by word."""
    async for prompt in prompts:
        for word in f"you said {prompt}".split():
            await asyncio.sleep(0)  # a real function would await a model here
            yield word
