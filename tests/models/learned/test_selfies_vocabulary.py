"""SELFIES to tokens and back."""

import pytest
import selfies
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem

from plumbline.core.errors import PlumblineError
from plumbline.data.generated.molecules import DRUGS
from plumbline.models.learned.selfies_vocabulary import (
    PUBLISHED,
    START,
    STOP,
    Vocabulary,
    selfies_of,
    smiles_of,
    split,
    vocabulary_of,
)

SYMBOLS = st.sampled_from(PUBLISHED.symbols[2:])


def test_the_published_vocabulary() -> None:
    symbols = PUBLISHED.symbols
    assert len(PUBLISHED) == 97
    assert list(symbols[2:]) == sorted(symbols[2:])
    assert all(selfies.decoder(symbol) is not None for symbol in symbols[2:])
    assert [symbols.index(one) for one in (START, STOP, "[C]", "[=O]", "[Ring1]")] == [0, 1, 50, 21, 81]


@given(st.lists(SYMBOLS, min_size=1, max_size=127))
def test_any_string_of_known_symbols_comes_back(symbols: list[str]) -> None:
    string = "".join(symbols)
    tokens = PUBLISHED.tokens(string)
    assert len(tokens) == len(symbols) + 1
    assert tokens[-1] == PUBLISHED.stop
    assert PUBLISHED.start not in tokens
    assert PUBLISHED.string(tokens) == string
    assert PUBLISHED.string([*tokens, *tokens]) == string, "what follows the first stop does not count"


@given(st.lists(st.lists(SYMBOLS, min_size=1, max_size=20), min_size=1, max_size=5))
def test_a_vocabulary_knows_the_strings_that_it_was_made_of(strings: list[list[str]]) -> None:
    joined = ["".join(one) for one in strings]
    vocabulary = vocabulary_of(joined)
    assert set(vocabulary.symbols) == {START, STOP, *(symbol for one in strings for symbol in one)}
    assert [vocabulary.string(vocabulary.tokens(one)) for one in joined] == joined
    assert vocabulary == vocabulary_of(reversed(joined)), "the order of the strings does not matter"


@pytest.mark.parametrize("smiles", list(DRUGS.values())[:20])
def test_drugs_come_back_as_the_same_molecule(smiles: str) -> None:
    string = selfies_of(smiles)
    assert string is not None
    again = smiles_of(PUBLISHED.string(PUBLISHED.tokens(string)))
    assert Chem.CanonSmiles(again) == Chem.CanonSmiles(smiles)


def test_what_is_no_molecule() -> None:
    assert selfies_of("C1CC") is None
    assert smiles_of("") == ""
    assert smiles_of("[nonsense]") == ""
    assert PUBLISHED.string([PUBLISHED.stop]) == ""
    assert PUBLISHED.string([]) == ""
    assert split("[C][O].[N]") == ["[C]", "[O]", ".", "[N]"]


def test_mistakes_are_one_line() -> None:
    with pytest.raises(PlumblineError, match="an empty SELFIES string is no molecule"):
        PUBLISHED.tokens("")
    with pytest.raises(PlumblineError, match=r"the model does not know \[Au\] of \[C\]\[Au\]: it was trained"):
        PUBLISHED.tokens("[C][Au]")


@pytest.mark.parametrize("symbols", [("[C]",), (STOP, START, "[C]"), (START, STOP, "[C]", "[C]")])
def test_a_vocabulary_begins_with_start_and_stop(symbols: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="begins with <start> and <stop>"):
        Vocabulary(symbols)
