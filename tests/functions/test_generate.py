"""The text generator: what it makes is chance, but the same for the same seed, and about what was said."""

from __future__ import annotations

import gc
import random
import time

import pytest
from google.protobuf import any_pb2, struct_pb2

from functions import generate
from functions.text.ngram import EDGE, Ngrams, words
from invoker import Context, Headers, Message, Status, StatusError
from invoker.protocols.evergreen.configs import ActionConfig
from invoker.testing import Harness
from tests.conftest import SLOW


@pytest.fixture(scope="module")
def ngrams():
    return generate.model()


def configured(config):
    """A context with a config, as an Evergreen session gives it."""
    struct, packed = struct_pb2.Struct(), any_pb2.Any()
    struct.update(config)
    packed.Pack(struct)
    return Context(configs=(ActionConfig(packed),))


def said(text, role="user", **headers):
    """One leaf of a conversation."""
    return Message(text, headers=Headers({"role": role, **headers}), media_type="text/plain")


END = Message(b"", headers=Headers({}), media_type="application/x-protobuf; type=EndOfTurn")


async def tokens(*leaves, ctx=None, **config):
    """What the function streams for a conversation."""

    async def prompt():
        for leaf in leaves:
            yield leaf

    made = [message async for message in generate.generate(prompt(), ctx or configured({"seed": 1, **config}))]
    assert all(one.media_type == "text/plain" and one.headers["role"] == "model" for one in made)
    return [one.payload for one in made]


async def answered(*leaves, **config):
    """The whole answer."""
    return "".join(await tokens(*leaves, **config))


async def test_a_seed_fixes_the_answer():
    """The same seed gives the same tokens, another one others, and none at all other ones each time."""
    first = await tokens(said("Who stole the tarts?"), seed=7)
    assert first == await tokens(said("Who stole the tarts?"), seed=7)
    assert first != await tokens(said("Who stole the tarts?"), seed=8)
    free = {"".join(await tokens(said("Who stole the tarts?"), ctx=Context())) for _ in range(5)}
    assert len(free) > 1


async def test_tokens_come_one_by_one_and_make_a_text():
    """A token is a word or a mark; together they are sentences with single spaces."""
    made = await tokens(said("Tell me about the Dormouse"))
    assert len(made) > 5
    assert all(len(words(token)) <= 1 for token in made)
    text = "".join(made)
    assert text[0].isupper()
    assert text[-1] in ".!?"
    assert "  " not in text
    assert EDGE not in made


@pytest.mark.parametrize("word", ["dormouse", "tarts", "croquet", "caterpillar"])
async def test_an_answer_is_about_the_question(word):
    """The word that was asked about is in the answer, whatever the seed."""
    for seed in range(5):
        assert word in (await answered(said(f"What do you know about the {word}?"), seed=seed)).lower()


async def test_earlier_turns_are_remembered():
    """A word of an earlier turn comes back in the answer to a question that does not have it."""
    turns = [said("Croquet!"), said("Do you.", role="model"), said("Tell me about the dormouse")]
    for seed in range(5):
        text = (await answered(*turns, seed=seed)).lower()
        assert "dormouse" in text
        assert "croquet" in text


async def test_a_question_without_known_words_goes_on_with_the_earlier_ones():
    """'More!' is about what was talked of before."""
    turns = [said("The tarts!"), said("The Knave.", role="model"), said("More of that!")]
    for seed in range(5):
        assert "tarts" in (await answered(*turns, seed=seed)).lower()


RECALLS = {
    "What did I say first?": 'You first said: "My name is Ada."',
    "what was the first thing that I said, or did I say nothing?": 'You first said: "My name is Ada."',
    "What did I just say?": 'Before that you said: "Look at this"',
    "And what did you say?": 'I said: "Very small."',
    "What is my name?": "Your name is Ada.",
    "Which files did I send?": "You sent me cat.png (3 bytes).",
}


@pytest.mark.parametrize("question", RECALLS)
async def test_it_quotes_the_conversation(question):
    """Questions about the conversation itself are answered from it, token by token."""
    turns = [
        said("Be brief.", role="system"),
        said("My name is Ada."),
        said("How do you do.", role="model"),
        said("Look at this"),
        Message(b"\x89PN", headers=Headers({"role": "user", "original-file-name": "cat.png"}), media_type="image/png"),
        said("Very small.", role="model"),
        said(question),
    ]
    made = await tokens(*turns)
    assert "".join(made) == RECALLS[question]
    assert len(made) > 2


@pytest.mark.parametrize("question", RECALLS)
async def test_it_invents_no_memories(question):
    """Without earlier turns nothing is quoted."""
    text = await answered(said(question))
    assert '"' not in text
    assert "Ada" not in text


async def test_a_turn_is_all_leaves_of_one_side():
    """Leaves of one role belong together up to an end of turn; what has no role is a turn of its own."""

    async def prompt(*leaves):
        for leaf in leaves:
            yield leaf

    ours = Message("x", headers=Headers({}), media_type="text/plain")
    made = await generate.conversation(
        prompt(said("a"), said("b"), END, said("c"), said("d", role="model"), ours, ours, END, ours)
    )
    assert [(turn.role, turn.text) for turn in made] == [
        ("user", "a b"),
        ("user", "c"),
        ("model", "d"),
        ("user", "x"),
        ("user", "x"),
        ("user", "x"),
    ]


async def test_a_file_is_read():
    """A file that comes with the question is named, and its words are asked about too."""
    note = said("The lobster quadrille", **{"original-file-name": "note.txt"})
    text = await answered(said("What of this?"), note)
    assert text.startswith("I have read note.txt (21 bytes). ")
    assert "lobster" in text.lower() or "quadrille" in text.lower()


async def test_stops_after_max_tokens():
    """Never more tokens than asked for; the limit holds while streaming."""
    assert len(await tokens(said("the Queen"), max_tokens=3)) == 3
    assert len(await tokens(said("the Queen"), max_tokens=1)) == 1


async def test_stops_before_a_stop_text():
    """The answer ends before the text, also when it spans tokens; a text that never comes changes nothing."""
    whole = await answered(said("the Queen"))
    middle = whole[10:14]
    assert await answered(said("the Queen"), stop=middle) == whole[: whole.index(middle)]
    assert await answered(said("the Queen"), stop=["never there", middle]) == whole[: whole.index(middle)]
    assert await answered(said("the Queen"), stop=["never there", whole[-1] + "!!", ""]) == whole


def test_what_may_begin_a_stop_text_waits():
    """Text is held back as long as needed and no longer."""
    assert list(generate.until_stop(["ab", "c", "d", "ab", "x"], ["bcx"])) == ["a", "bcd", "a", "bx"]
    assert list(generate.until_stop(["ab", "c", "x", "y"], ["bcx"])) == ["a"]
    assert list(generate.until_stop(["ab"], ["bcx"])) == ["a", "b"]


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"seed": 1.5}, "seed"),
        ({"stop": [1]}, "stop"),
        ({"temprature": 1}, "temprature"),
    ],
)
async def test_a_bad_config_is_refused_by_name(config, named):
    """The caller is told which field cannot be, before a token is sent."""
    with pytest.raises(StatusError, match=named) as refused:
        await tokens(said("hello"), **config)
    assert refused.value.status is Status.INVALID_ARGUMENT


async def test_configs_may_come_as_a_header():
    """Protocols without configs say the same in x-config; bad JSON is the caller's error."""
    ctx = Context(metadata=Headers({"x-config": '{"seed": 1, "max_tokens": 4}'}))
    assert await tokens(said("the Queen"), ctx=ctx) == await tokens(said("the Queen"), max_tokens=4)
    for bad in ("{", "[1]", '"x"'):
        with pytest.raises(StatusError, match="bad config"):
            await tokens(said("the Queen"), ctx=Context(metadata=Headers({"x-config": bad})))


async def test_a_negotiation_is_no_setting():
    """A Struct may also say which media types the caller accepts; that is the server's business."""
    assert await tokens(said("the Queen"), accept={"response": "text/plain"}) == await tokens(said("the Queen"))


async def test_temperature_zero_needs_no_chance():
    """Only the place where a sentence begins is left to the seed."""
    made = {await answered(said("the caterpillar"), temperature=0, seed=seed) for seed in range(12)}
    assert 1 < len(made) <= 12


async def test_tokens_per_second_are_kept():
    """Ten tokens at 200 a second take 50 ms at least."""
    began = time.monotonic()
    assert len(await tokens(said("the Queen"), max_tokens=10, tokens_per_second=200)) == 10
    assert time.monotonic() - began >= 0.05


def test_a_riff_call_is_a_conversation():
    """Each line of a call is a turn, and the answer comes as several messages."""
    result = Harness("functions.generate:generate").invoke(
        [Message(text, media_type="text/plain") for text in ("I am late", "What did I say first?")],
        accept="text/plain",
    )
    assert result.error is None
    assert "".join(result.values()) == 'You first said: "I am late"'
    assert len(result.values()) == 6


async def test_an_answer_may_be_one_message():
    """Where the config says so; what the caller is makes no difference."""
    ctx = Context(metadata=Headers({"host": "localhost", "x-config": '{"seed": 1}'}))
    assert len(await tokens(said("the Queen"), ctx=ctx)) > 1
    ctx = Context(metadata=Headers({"x-config": '{"seed": 1, "stream": false}'}))
    (whole,) = await tokens(said("the Queen"), ctx=ctx)
    assert whole == await answered(said("the Queen"))


def test_a_sentence_has_its_word_and_an_end(ngrams):
    """Forwards and backwards from the word, whatever chance says; marks do not come twice."""
    rng = random.Random(5)
    for about in ngrams.topics("queen tarts cats lobster rabbit quadrille") * 20:
        made = ngrams.sentence(about, rng, temperature=1.5)
        assert about in [token.lower() for token in made]
        assert made[-1][0] in ".!?"
        assert made[-2] not in (",", ";", ":", "--")
        assert EDGE not in made


def test_common_words_are_no_topics(ngrams):
    """Words that any sentence may have say nothing; plurals and genitives are found under the word."""
    assert ngrams.topics("What is the queen's tart, and the TARTS are not?") == ["queen", "tarts"]
    assert ngrams.topics("") == []


def test_training_takes_little(ngrams):
    """A process that serves it is ready in less than 200 ms more; measured in processor time."""
    gc.collect()
    gc.disable()  # what the collector looks at is what other tests have left in this process
    try:
        began = time.thread_time()
        Ngrams.load()
        took = time.thread_time() - began
    finally:
        gc.enable()
    assert took < 0.2 * SLOW
