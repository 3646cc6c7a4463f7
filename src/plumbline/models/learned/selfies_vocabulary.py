"""Vocabularies of SELFIES symbols, and the tokens of a string."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import selfies

from plumbline.core.errors import PlumblineError

START, STOP = "<start>", "<stop>"
"""The first two symbols of every vocabulary: the start of decoding, and the end and padding of a string."""


@dataclass(frozen=True)
class Vocabulary:
    """The symbols of a model; a token is the index of a symbol.

    Attributes:
        symbols: `START`, `STOP` and the SELFIES symbols.
    """

    symbols: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.symbols[:2] != (START, STOP) or len(set(self.symbols)) < len(self.symbols):
            raise ValueError(f"a vocabulary begins with {START} and {STOP} and has each symbol once")

    def __len__(self) -> int:
        return len(self.symbols)

    @property
    def start(self) -> int:
        """The token that decoding begins with; no string contains it."""
        return 0

    @property
    def stop(self) -> int:
        """The token that ends a string."""
        return 1

    @cached_property
    def _tokens(self) -> dict[str, int]:
        return {symbol: token for token, symbol in enumerate(self.symbols)}

    def tokens(self, string: str) -> list[int]:
        """Return the tokens of a SELFIES string, `stop` included.

        Raises:
            PlumblineError: the string is empty, or has a symbol that the model does not know.
        """
        symbols = split(string)
        if not symbols:
            raise PlumblineError("an empty SELFIES string is no molecule: there is nothing to encode")
        strange = [symbol for symbol in symbols if symbol not in self._tokens]
        if strange:
            raise PlumblineError(f"the model does not know {strange[0]} of {string[:80]}: it was trained without it")
        return [*(self._tokens[symbol] for symbol in symbols), self.stop]

    def string(self, tokens: Iterable[int]) -> str:
        """Return the SELFIES string of tokens, which ends before the first `stop`; it may be empty."""
        found = []
        for token in tokens:
            if token == self.stop:
                break
            found.append(self.symbols[token])
        return "".join(found)


def split(string: str) -> list[str]:
    """Return the symbols of a SELFIES string; the dot between two molecules is one."""
    return list(selfies.split_selfies(string))


def vocabulary_of(strings: Iterable[str]) -> Vocabulary:
    """Return the vocabulary of all symbols in SELFIES strings, in alphabetical order."""
    return Vocabulary((START, STOP, *sorted({symbol for string in strings for symbol in split(string)})))


def selfies_of(smiles: str) -> str | None:
    """Return the SELFIES string of a molecule; None if there is none."""
    try:
        return selfies.encoder(smiles)
    except selfies.EncoderError:
        return None


def smiles_of(string: str) -> str:
    """Return the SMILES of a SELFIES string; empty if it has no atoms or cannot be read."""
    try:
        return selfies.decoder(string)
    except selfies.DecoderError:
        return ""


def _bracketed(words: str) -> Vocabulary:
    """Return the vocabulary of symbols given without their brackets."""
    return Vocabulary((START, STOP, *(f"[{word}]" for word in words.split())))


PUBLISHED = _bracketed(
    """
    #Branch1 #Branch2 #C-1 #C #N+1 #N #O+1 =B =Branch1 =Branch2 =C-1 =C =N+1 =N-1 =NH1+1 =NH2+1 =N =O+1 =OH1+1 =O =PH1
    =P =Ring1 =Ring2 =S+1 =SH1 =S =Se+1 =Se =Si B-1 BH0 BH1-1 BH2-1 BH3-1 B Br+2 Br-1 Br Branch1 Branch2 C+1 C-1 CH1+1
    CH1-1 CH1 CH2+1 CH2 C Cl+1 Cl+2 Cl+3 Cl-1 Cl F+1 F-1 F H I+1 I+2 I+3 I N+1 N-1 NH0 NH1+1 NH1-1 NH1 NH2+1 NH3+1 N
    O+1 O-1 OH0 O P+1 PH1 PH2+1 P Ring1 Ring2 S+1 S-1 SH1 S Se+1 Se-1 SeH1 SeH2 Se Si-1 SiH1-1 SiH1 SiH2 Si
    """
)
"""The 97 symbols of the published model, in its order, which sorts the symbols with their brackets."""
