"""The four conversations of the published description, translated to the published field names. Catalogue 1 and 4."""

from __future__ import annotations

from google.protobuf.any_pb2 import Any as AnyMessage

from invoker_conformance.evergreen.frames import EOT, TEXT, A, F, K, Part
from invoker_conformance.evergreen.rules import FRAG, REFD
from invoker_conformance.evergreen.scenarios_references import data_uri
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario

VIDEO = "video/mp4"
QUESTION = "Write a summary of this video: "
NOVEL = "Write a heroic novel about a half-eaten jam doughnut."
GENERATE_CONFIG = AnyMessage(type_url="type.googleapis.com/evergreen.GenerateConfig", value=b"\x08\x01")


def question(first: str, second: str, *, repeats_metadata: bool = False) -> list[Part]:
    """A question about a video, given as two references."""
    return [
        A("GENERATE", {"prompt": "prompt_1"}, {"response": "response_1"}),
        K("prompt_1", "question_1", "video_1"),
        F("question_1", m=TEXT, t=QUESTION),
        F("video_1", 0, "+", m=VIDEO, ref=first),
        F("video_1", 1, m=VIDEO if repeats_metadata else None, ref=second),
    ]


def novel(*, is_streamed: bool) -> list[Part]:
    """A prompt that ends with its turn, at once or in two fragments, after an action with a config."""
    roots = (
        [K("prompt_1", "prompt_1_text", mark="+"), K("prompt_1", "prompt_1_eot", seq=1)]
        if is_streamed
        else [K("prompt_1", "prompt_1_text", "prompt_1_eot")]
    )
    text = F("prompt_1_text", m=TEXT, t=NOVEL)
    action = A("GENERATE", {"text": "prompt_1"}, {"text": "response_1"}, configs=[GENERATE_CONFIG])
    return [action, roots[0], text, *roots[1:], F("prompt_1_eot", m=EOT)]


@scenario("ET-04", "E-006", "E-007", "E-042", "E-062", "E-068", "E-098", function="GENERATE")
async def question_about_a_video_in_two_turns(stage: Stage) -> None:
    """A question and a video of two parts are answered; the second turn reuses both and the first answer."""
    async with stage.session() as session:
        await session.send(*question(data_uri(b"first part "), data_uri(b"second part")))
        answer = f"{QUESTION.upper()}<22 bytes>"
        await session.gives("response_1", answer)
        await session.send(
            A("GENERATE", {"prompt": "prompt_2"}, {"response": "response_2"}),
            K("prompt_2", "prompt_1", "response_1", "question_2"),
            F("question_2", m=TEXT, t="Who's winning?"),
        )
        await session.succeeds(response_2=[f"{answer}{answer.upper()}WHO'S WINNING?"])


@scenario("ET-05", "E-035", function="GENERATE")
async def the_example_as_it_is_printed(stage: Stage) -> None:
    """Metadata repeated on the second part of the video, as the description prints it, aborts."""
    await stage.fails(FRAG, *question(data_uri(b"1"), data_uri(b"2"), repeats_metadata=True))


@scenario("ET-66", "E-054", "E-057", function="GENERATE")
async def the_references_as_they_are_printed(stage: Stage) -> None:
    """A reference to file://path/to/file is refused, since it names another host."""
    await stage.fails(REFD, *question("file://path/to/file/part1", "file://path/to/file/part2"))


@scenario("ET-08", "E-049", "E-085", "E-088", function=("GENERATE", "marks"))
async def customised_generate(stage: Stage) -> None:
    """An action with an unknown config runs, and one leaf is read of a prompt that ends its turn."""
    watch = await stage.watch("GENERATE.leaves", "GENERATE.calls")
    await stage.succeeds(*novel(is_streamed=False), response_1=[NOVEL.upper()])
    await watch.stays("GENERATE.leaves", by=1)
    await watch.stays("GENERATE.calls", by=1)


@scenario("ET-07", "E-049", "E-060", "E-061", "E-090", function=("GENERATE", "marks"))
async def streamed_chains(stage: Stage) -> None:
    """The prompt is answered while it is still sent; the end of the turn, sent later, is no leaf."""
    watch = await stage.watch("GENERATE.leaves")
    frames = novel(is_streamed=True)
    async with stage.session() as session:
        await session.send(*frames[:3])
        first = (await session.fragment()).chunk_fragment.data.decode()
        if first != NOVEL.upper():
            raise session.failure(repr(first), repr(NOVEL.upper()))
        await session.silent(0.2)
        await session.send(*frames[3:])
        await session.succeeds(response_1=[NOVEL.upper()])
    await watch.stays("GENERATE.leaves", by=1)
