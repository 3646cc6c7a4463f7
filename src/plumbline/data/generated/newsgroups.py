"""Generated documents of made-up words, drawn from a small topic model."""

from itertools import product

import numpy as np

TOPICS, WORDS, LENGTH = 5, 120, 30
"""Numbers of topics and of different words, and average number of words of a document."""

TOPIC_PRIOR, WORD_PRIOR = 0.1, 0.05
"""Parameters of the Dirichlet distributions of a document's topics and of a topic's words."""


def made_up_words(size: int) -> list[str]:
    """Return different words of three syllables; at most 4,096."""
    syllables = ["".join(letters) for letters in product("bklr", "aeio")]
    return ["".join(parts) for _, parts in zip(range(size), product(syllables, repeat=3), strict=False)]


def generated_newsgroups(size: int, seed: int) -> dict[str, list[str]]:
    """Return the words of `size` documents by name, drawn from the model of latent Dirichlet allocation."""
    generator = np.random.default_rng(seed)
    words = np.array(made_up_words(WORDS))
    topics = generator.dirichlet([WORD_PRIOR] * WORDS, size=TOPICS)
    documents = {}
    for i in range(size):
        mixture = generator.dirichlet([TOPIC_PRIOR] * TOPICS) @ topics
        documents[f"generated/{i}"] = generator.choice(words, size=generator.poisson(LENGTH), p=mixture).tolist()
    return documents
