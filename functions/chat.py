"""An async generator: it may await between its values, and thousands of them share one loop.

python -m invoker functions.chat:chat
python -m invoker call localhost:8081 --accept text/plain --data hello
"""

import asyncio
from collections.abc import AsyncIterator


async def chat(prompts: AsyncIterator[str]) -> AsyncIterator[str]:
    """Answers each prompt word by word."""
    async for prompt in prompts:
        for word in f"you said {prompt}".split():
            await asyncio.sleep(0)  # where a model would be awaited
            yield word
