"""`Ngrams`: a word-level trigram model that writes sentences around a given word, forwards and backwards.

Training counts which word follows, and which precedes, each pair of words; it backs off to single words. A sentence
begins in its middle: at a place of the text where the wanted word stands. From there the model goes back to the
beginning of the sentence, then forward to its end: so each sentence has its word.
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
"""The token between two sentences; words are found on both sides of it."""

COMMON = 120
"""So many of the most frequent words say nothing about what a sentence is about."""

SINGLE = 0.2  # what the followers of one word weigh beside those of a pair
FAVOUR = 6.0  # how much likelier a favoured word becomes
TIRED = 0.05  # how much less likely a token becomes where the sentence has had it before
LONGEST = 40  # tokens on either side of the word of a sentence


class Ngrams:
    """Trained on a text when it is made, which takes about a tenth of a second for 150 kB.

    Args:
        text: Prose; lines that are indented by eight signs or more are headings and left out.
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
        """Trained on the text that comes with the samples."""
        return cls(TEXT.read_text(encoding="utf-8"))

    def topics(self, text: str) -> list[str]:
        """The words of a text that the model knows and that are about something, each once, in their order."""
        found = [self._known(word) for word in words(text)]
        return list(dict.fromkeys(word for word in found if word))

    def sentence(self, about: str, rng: Random, *, temperature: float, favour: Collection[str] = ()) -> list[str]:
        """One sentence as tokens, its end mark among them.

        Args:
            about: A word of `topics`, which will be in the sentence; empty: any word.
            rng: Where chance comes from; the same state gives the same sentence.
            temperature: 0 takes what is likeliest each time; the higher, the more surprising.
            favour: Words of `topics` that shall rather be taken than others.
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
        """What comes beyond the second of two tokens, up to an edge; both tables are asked in reading order."""
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
    """The words of a text, without marks."""
    return [token for token in TOKEN.findall(text) if token[0].isalpha()]


def render(sentence: Iterable[str]) -> Iterator[str]:
    """The tokens of a sentence as they are written one after the other: a capital first, and spaces between words."""
    for index, token in enumerate(sentence):
        text = "-" if token == "--" else token
        yield text[0].upper() + text[1:] if index == 0 else text if text[0] in ".,;:!?" else f" {text}"


class _Choice:
    """Draws tokens for one sentence; what it has drawn in the same place before becomes unlikely."""

    def __init__(self, rng: Random, temperature: float, favour: Collection[str]) -> None:
        self._rng = rng
        self._temperature = temperature
        self._favour = favour
        self._drawn: set[tuple[str, ...]] = set()

    def draw(self, context: tuple[str, ...], of_pair: Sequence[str], of_one: Sequence[str], step: int) -> str:
        """One of the tokens that were met beside a pair of words, or beside one of them; ends become likelier."""
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
    """Words and marks, with an `EDGE` between sentences."""
    for paragraph in text.split("\n\n"):
        found = TOKEN.findall(paragraph)
        for index, token in enumerate(found):
            yield token
            following = found[index + 1] if index + 1 < len(found) else ""
            # "Oh dear!" said the Rabbit: no sentence begins with a small letter.
            if not following or (token[0] in ".!?" and not following[0].islower()):
                yield EDGE


def _usual(tokens: Sequence[str]) -> list[str]:
    """Each word as it is mostly written: sentences and emphasis have capitals that the words have not."""
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for token in tokens:
        if len(token) == 1 or not token.isupper():
            forms[token.lower()][token] += 1
    return [forms[key].most_common(1)[0][0] if (key := token.lower()) in forms else key for token in tokens]


def _vocabulary(tokens: Sequence[str]) -> list[str]:
    """Words, in small letters, that are about something: no marks, no abbreviations, none of the most frequent ones."""
    counts = Counter(token for token in tokens if token.isalpha())
    common = {word for word, _ in counts.most_common(COMMON) if word.islower()}
    return sorted({word.lower() for word in counts if word not in common and len(word) > 2})
