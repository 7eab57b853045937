"""What only some protocols want to know of a function or an output."""

from __future__ import annotations

from invoker import function
from invoker.author.reader import read
from invoker.author.spec import StreamSpec
from invoker.author.traits import ModelTraits, NodeTraits, Traits


def test_a_type_of_which_nothing_is_said_has_its_default():
    """So a protocol asks for its own, whether the author knew of it or not."""
    assert Traits()[ModelTraits] == ModelTraits()
    assert StreamSpec("x").traits[NodeTraits] == NodeTraits(sequence=False, retain=True)
    assert not Traits()


def test_asking_keeps_nothing():
    """A spec is shared by all invocations, so nobody alters it."""
    traits = Traits()
    assert traits[ModelTraits] is not None
    assert len(traits) == 0


def test_the_decorator_fills_them():
    """Its keywords are as before."""

    @function(rows=True, version="7")
    def one(x: int) -> int:
        return x

    assert read(one).traits[ModelTraits] == ModelTraits(rows=True, version="7")


def test_specs_with_traits_are_told_apart_and_may_be_keys():
    """A mapping cannot be hashed, so what it holds counts for equality alone."""
    plain, kept = StreamSpec("x"), StreamSpec("x", traits=Traits({NodeTraits: NodeTraits(retain=False)}))
    assert plain != kept
    assert hash(plain) == hash(kept)
