"""An agent without a network: two tools, and a function that plays the language model by a script.

With INVOKER_PROTOCOLS=riff,http,toolbridge and INVOKER_LLM=scripted=functions.agents:scripted in the environment:

python -m invoker functions.agents:word_count
python -m invoker call -d "how many words"

docs/how-to/run-agents.md serves both tools, and makes an agent of them.
"""

from __future__ import annotations

import json
import re

from invoker import function


@function
def add(a: int, b: int) -> int:
    """Add two whole numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


@function
def word_count(text: str) -> int:
    """Count the words of a text.

    Args:
        text: Any text.
    """
    return len(text.split())


def scripted(messages: list[dict[str, str]]) -> str:
    """Simulate a language model that counts the words of a question, adds one, and answers with the result.

    It gets the messages of the chat, and returns the text of the model.
    """
    system, asked = messages[0]["content"], messages[-1]["content"]
    if "next_tool_name" not in system:
        results = re.findall(r"observation_\d+ ## \]\]\n(\d+)", asked)
        return _said(reasoning="The last observation has it.", answer=results[-1] if results else "0")
    steps = asked.count("[[ ## thought_")
    if steps == 0:
        question = asked.partition("[[ ## question ## ]]\n")[2].partition("\n\n[[ ##")[0]
        return _step("I count the words first.", "word_count", json.dumps({"text": question}))
    if steps == 1:
        count = re.findall(r"observation_0 ## \]\]\n(\d+)", asked)
        return _step("Now I add one.", "add", json.dumps({"a": int(count[0]) if count else 0, "b": 1}))
    return _step("I know enough.", "finish", "{}")


def _step(thought: str, tool: str, args: str) -> str:
    return _said(next_thought=thought, next_tool_name=tool, next_tool_args=args)


def _said(**fields: str) -> str:
    return "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items()) + "\n\n[[ ## completed ## ]]"
