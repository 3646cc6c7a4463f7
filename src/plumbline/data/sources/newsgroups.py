"""Tables of posts of 20 Newsgroups: the words of a vocabulary in the order of the text, in two parts.

Headers are left out; quotes and signatures are not. A word has three letters or more, in lower case, without an
apostrophe, and is not an English stop word of scikit-learn. The vocabulary is the words that occur in most posts of the
training part. Hoffman, Blei & Bach (2010) also restrict texts to a fixed vocabulary of some thousand common words.
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
"""Share of test posts: 2,200 of 13,200, as in CAL, section 5.3.1."""

VOCABULARY = 4_000
"""Greatest size of the vocabulary."""

POST = re.compile(r"20news-bydate-(?:train|test)/[^/]+/\d+")
"""Names of posts in the archive. It is split by date into two parts; our parts are drawn from both."""

WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
SHORTEST = 3


def read_posts(path: Path) -> dict[str, str]:
    """Return the posts of the archive without their headers, by group and number, in sorted order.

    The result does not depend on the order in the archive.

    Raises:
        PlumblineError: the archive is missing, damaged, or has no posts; the message has the remedy.
    """
    held = members(path, lambda name: POST.fullmatch(name) is not None)
    posts = {name.partition("/")[2]: content.decode("latin-1") for name, content in held}
    if not posts:
        raise PlumblineError(f"{path} has no posts of 20 Newsgroups in it: delete it and fetch it again")
    return {name: body(posts[name]) for name in sorted(posts)}


def body(post: str) -> str:
    """Return the text after the first empty line."""
    return post.replace("\r\n", "\n").partition("\n\n")[2]


def words_of(text: str) -> list[str]:
    """Return the words of a text without stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # takes a second

    words = WORD.findall(text.lower())
    return [word for word in words if len(word) >= SHORTEST and word.isalpha() and word not in ENGLISH_STOP_WORDS]


def commonest(documents: Iterable[list[str]], size: int) -> frozenset[str]:
    """Return the `size` words that occur in most documents; ties are broken alphabetically."""
    counts = Counter(word for words in documents for word in set(words))
    return frozenset(sorted(counts, key=lambda word: (-counts[word], word))[:size])


def corpus(documents: Mapping[str, list[str]], rows: int, seed: int, vocabulary: int = VOCABULARY) -> pd.DataFrame:
    """Return `rows` of the documents (all, if there are fewer), drawn at random, in random order.

    Online methods read training documents in the order of the table, so it must not be sorted by group.

    Args:
        documents: words by name.
        rows: number of rows; the last `TEST_SHARE` of them are the test part.
        seed: seed of the draw.
        vocabulary: greatest size of the vocabulary; other words are left out.

    Returns:
        `document`, its name; `part`; and `words`, separated by spaces, none for a document without any.
    """
    names = np.array(list(documents))
    drawn = np.random.default_rng(seed).permutation(names)[:rows].tolist()
    tested = round(TEST_SHARE * len(drawn))
    parts = [TRAIN] * (len(drawn) - tested) + [TEST] * tested
    common = commonest((documents[name] for name, part in zip(drawn, parts, strict=True) if part == TRAIN), vocabulary)
    words = [" ".join(word for word in documents[name] if word in common) for name in drawn]
    return pd.DataFrame({"document": drawn, "part": parts, "words": words})
