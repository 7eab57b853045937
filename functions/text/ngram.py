"""`Ngrams`: a word-level trigram model that writes sentences around a given word, forwards and backwards.

Training counts which words follow, and which precede, each pair of words; unknown pairs back off to single words. A
sentence is made from its middle, at a place of the text that has the requested word. From there the model goes back to
the beginning of the sentence, and then forward to its end, so that each sentence contains the word.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

__all__ = ["Ngrams", "render", "words"]

TEXT = Path(__file__).parent.parent / "data" / "alice.txt"
TOKEN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|[.!?]+|[,;:]|--")
HEADING = re.compile(r"^ {8,}.*$", re.MULTILINE)

EDGE = ""
"""The token between two sentences."""

COMMON = 120
"""How many of the most frequent words are not topics."""

SINGLE = 0.2  # the weight of the followers of one word, relative to those of a pair
FAVOUR = 6.0  # the factor for the probability of a favoured word
TIRED = 0.05  # the factor for the probability of a token that the sentence already has
LONGEST = 40  # how many tokens a sentence may have on either side of its word


class Ngrams:
    """An n-gram model, which is trained when it is made; that takes about a tenth of a second for 150 kB.

    Args:
        text: Prose; lines that are indented by eight characters or more are headings, and are left out.
    """

    def __init__(self, text: str) -> None:
        tokens = _usual([EDGE, *_tokens(HEADING.sub("", text)), EDGE])
        self._places: dict[str, list[int]] = defaultdict(list)
        self._after: dict[tuple[str, ...], list[str]] = defaultdict(list)
        self._before: dict[tuple[str, ...], list[str]] = defaultdict(list)
        keys = [token.lower() for token in tokens]
        for index in range(1, len(tokens) - 1):
            last, key, following = keys[index - 1 : index + 2]
            self._places[key].append(index)
            self._after[last, key].append(tokens[index + 1])
            self._after[key,].append(tokens[index + 1])
            self._before[key, following].append(tokens[index - 1])
            self._before[key,].append(tokens[index - 1])
        self._tokens = tokens
        self._vocabulary = _vocabulary(tokens)
        self._known_words = frozenset(self._vocabulary)

    @classmethod
    def load(cls) -> Ngrams:
        """Make a model from the text that comes with the samples."""
        return cls(TEXT.read_text(encoding="utf-8"))

    def topics(self, text: str) -> list[str]:
        """The words of a text that the model knows and that can be topics, each once, in order."""
        found = [self._known(word) for word in words(text)]
        return list(dict.fromkeys(word for word in found if word))

    def sentence(self, about: str, rng: Random, *, temperature: float, favour: Collection[str] = ()) -> list[str]:
        """Make one sentence, as tokens, including its end mark.

        Args:
            about: A word of `topics`, which will be in the sentence; empty: any word.
            rng: The random generator; the same state gives the same sentence.
            temperature: 0: always the most probable token; higher values give more surprising sentences.
            favour: Words of `topics` that are preferred.
        """
        place = rng.choice(self._places[about or rng.choice(self._vocabulary)])
        word, following = self._tokens[place : place + 2]
        choice = _Choice(rng, temperature, favour)
        made = [*reversed([*self._walk(self._before, following, word, choice)]), word]
        if following != EDGE:
            made += [following, *self._walk(self._after, word, following, choice)]
        while made[-1] in (",", ";", ":", "--"):
            made.pop()
        return made if made[-1][0] in ".!?" else [*made, "."]

    def _walk(self, table: dict[tuple[str, ...], list[str]], last: str, token: str, choice: _Choice) -> Iterator[str]:
        """Draw the tokens beyond the second of two tokens, up to an edge."""
        last, key = last.lower(), token.lower()
        for step in range(LONGEST):
            context = (last, key) if table is self._after else (key, last)
            token = choice.draw(context, table.get(context, ()), table.get((key,), ()), step)
            if token == EDGE:
                return
            yield token
            last, key = key, token.lower()

    def _known(self, word: str) -> str:
        folded = word.lower().removesuffix("'s")
        forms = (folded, folded.removesuffix("s"), f"{folded}s")
        return next((form for form in forms if form in self._known_words), "")


def words(text: str) -> list[str]:
    """The words of a text, without punctuation."""
    return [token for token in TOKEN.findall(text) if token[0].isalpha()]


def render(sentence: Iterable[str]) -> Iterator[str]:
    """The tokens of a sentence as text: with a capital first letter, and spaces between words."""
    for index, token in enumerate(sentence):
        text = "-" if token == "--" else token
        yield text[0].upper() + text[1:] if index == 0 else text if text[0] in ".,;:!?" else f" {text}"


class _Choice:
    """Draws tokens for one sentence; a token that was drawn before in the same context becomes improbable."""

    def __init__(self, rng: Random, temperature: float, favour: Collection[str]) -> None:
        self._rng = rng
        self._temperature = temperature
        self._favour = favour
        self._drawn: set[tuple[str, ...]] = set()

    def draw(self, context: tuple[str, ...], of_pair: Sequence[str], of_one: Sequence[str], step: int) -> str:
        """Draw a token that occurred next to a pair of words, or to one; each step makes an end more probable."""
        weights: dict[str, float] = defaultdict(float)
        for found, share in ((of_pair, 1.0), (of_one, SINGLE)):
            for token, count in Counter(found).items():
                weights[token] += share * count / len(found) * self._factor(context, token, step)
        if not weights:
            return EDGE
        if self._temperature < 0.01:
            token = max(weights, key=weights.__getitem__)
        else:
            most = max(weights.values())
            tamed = [(weight / most) ** (1 / self._temperature) for weight in weights.values()]
            token = self._rng.choices([*weights], tamed)[0]
        self._drawn.add((*context, token))
        return token

    def _factor(self, context: tuple[str, ...], token: str, step: int) -> float:
        if not token or token[0] in ".!?":
            return 1 + step / 5
        return (FAVOUR if token.lower() in self._favour else 1) * (TIRED if (*context, token) in self._drawn else 1)


def _tokens(text: str) -> Iterator[str]:
    """Words and punctuation, with an `EDGE` between sentences."""
    for paragraph in text.split("\n\n"):
        found = TOKEN.findall(paragraph)
        for index, token in enumerate(found):
            yield token
            following = found[index + 1] if index + 1 < len(found) else ""
            # "Oh dear!" said the Rabbit: a small letter does not begin a sentence.
            if not following or (token[0] in ".!?" and not following[0].islower()):
                yield EDGE


def _usual(tokens: Sequence[str]) -> list[str]:
    """Write each word in its most frequent form, since sentences and emphasis have additional capitals."""
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for token in tokens:
        if len(token) == 1 or not token.isupper():
            forms[token.lower()][token] += 1
    return [forms[key].most_common(1)[0][0] if (key := token.lower()) in forms else key for token in tokens]


def _vocabulary(tokens: Sequence[str]) -> list[str]:
    """The words that can be topics, in lower case: no punctuation, no abbreviations, no very frequent words."""
    counts = Counter(token for token in tokens if token.isalpha())
    common = {word for word, _ in counts.most_common(COMMON) if word.islower()}
    return sorted({word.lower() for word in counts if word not in common and len(word) > 2})
