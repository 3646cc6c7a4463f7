from itertools import pairwise

import numpy as np

from plumbline.data.generated.newsgroups import LENGTH, WORDS, generated_newsgroups, made_up_words

DOCUMENTS = generated_newsgroups(400, 0)


def test_it_repeats_itself_and_another_seed_does_not() -> None:
    assert generated_newsgroups(400, 0) == DOCUMENTS
    assert generated_newsgroups(400, 1) != DOCUMENTS


def test_made_up_words_differ() -> None:
    assert len(set(made_up_words(4_096))) == 4_096
    assert {word for words in DOCUMENTS.values() for word in words} <= set(made_up_words(WORDS))


def test_documents_are_of_few_topics() -> None:
    """Words of one document are alike more often than words of two."""
    assert np.isclose(np.mean([len(words) for words in DOCUMENTS.values()]), LENGTH, atol=1)
    texts = [words for words in DOCUMENTS.values() if len(words) > 1]
    within = np.mean([words[0] == words[-1] for words in texts])
    between = np.mean([one[0] == other[-1] for one, other in pairwise(texts)])
    assert within > between + 0.02
