"""Posts of 20 Newsgroups as rows: the words of a vocabulary, in the order of the text, in two parts.

Headers are left out, quotes and signatures are not. A word is three letters or more, in lower case, without an
apostrophe, and none of scikit-learn's English stop words. The vocabulary is the words that most posts of the training
part have: Hoffman, Blei & Bach (2010) remove what is not in a fixed vocabulary of common words, too, of some thousands.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from plumbline.core.errors import PlumblineError
from plumbline.data.feature_table import TEST, TRAIN
from plumbline.data.sources.archives import members

TEST_SHARE = 1 / 6
"""Of the posts: 2,200 of 13,200, as in CAL, section 5.3.1."""

VOCABULARY = 4_000
"""Words at most."""

POST = re.compile(r"20news-bydate-(?:train|test)/([^/]+/\d+)")
"""What posts are called in the archive, whose own two parts are by date; ours are drawn from both."""

WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
SHORTEST = 3


def read_posts(path: Path) -> dict[str, str]:
    """Return the posts of the archive without their headers, by group and number, in the order of these.

    Two archives of the same posts are read alike, in whichever order they have them.

    Raises:
        PlumblineError: an archive that is damaged or not there, or has no posts; with the remedy.
    """
    found = ((POST.fullmatch(name), content) for name, content in members(path))
    posts = {name[1]: content.decode("latin-1") for name, content in found if name}
    if not posts:
        raise PlumblineError(f"{path} has no posts of 20 Newsgroups in it: delete it and fetch it again")
    return {name: body(posts[name]) for name in sorted(posts)}


def body(post: str) -> str:
    """Return what comes after the first empty line."""
    return post.replace("\r\n", "\n").partition("\n\n")[2]


def words_of(text: str) -> list[str]:
    """Return the words of a text, stop words left out."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # a second, which other tables need not wait for

    found = WORD.findall(text.lower())
    return [word for word in found if len(word) >= SHORTEST and word.isalpha() and word not in ENGLISH_STOP_WORDS]


def commonest(documents: Iterable[list[str]], size: int) -> frozenset[str]:
    """Return the `size` words that most documents have; of those that as many have, the first ones of the alphabet."""
    counts = Counter(word for words in documents for word in set(words))
    return frozenset(sorted(counts, key=lambda word: (-counts[word], word))[:size])


def corpus(documents: Mapping[str, list[str]], rows: int, seed: int, vocabulary: int = VOCABULARY) -> pd.DataFrame:
    """Return `rows` of the documents (all, if there are fewer), drawn at random, in random order.

    Online methods read training documents in the order of the table, so that this must not be that of the groups.

    Args:
        documents: words by name.
        rows: of the table, `TEST_SHARE` of which are the test part; these come last.
        seed: of the draw.
        vocabulary: words at most; others are left out.

    Returns:
        `document`, its name; `part`; and `words`, separated by spaces, none for a document without any.
    """
    names = np.array(list(documents))
    drawn = np.random.default_rng(seed).permutation(names)[:rows].tolist()
    tested = round(TEST_SHARE * len(drawn))
    parts = [TRAIN] * (len(drawn) - tested) + [TEST] * tested
    kept = commonest((documents[name] for name, part in zip(drawn, parts, strict=True) if part == TRAIN), vocabulary)
    words = [" ".join(word for word in documents[name] if word in kept) for name in drawn]
    return pd.DataFrame({"document": drawn, "part": parts, "words": words})
