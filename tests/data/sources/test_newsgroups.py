import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.data.feature_table import TEST, TRAIN
from plumbline.data.sources.newsgroups import body, commonest, corpus, read_posts, words_of

POSTS = {
    "20news-bydate-train/sci.space/60": b"From: a\nSubject: b\n\nThe Moon's launch,\n\nlaunch window.\n",
    "20news-bydate-test/rec.autos/7": b"From: a\r\n\r\nCaf\xe9 engines don't start; engines\r\n",
}
MORE = {"20news-bydate-train/sci.space/notes.txt": b"\n\nno post", "README": b"\n\nno post"}


def test_posts_are_read_without_headers_in_the_order_of_their_names(archive: Callable[..., Path]) -> None:
    expected = {
        "rec.autos/7": "Café engines don't start; engines\n",
        "sci.space/60": "The Moon's launch,\n\nlaunch window.\n",
    }
    assert read_posts(archive({**POSTS, **MORE})) == expected
    turned = dict(reversed(POSTS.items()))
    assert list(read_posts(archive(turned, "rebuilt.tar.gz")).items()) == list(expected.items())


def test_a_post_of_headers_alone_is_empty() -> None:
    assert body("From: a\nSubject: b\n") == ""


def test_words_are_long_enough_whole_and_no_stop_words() -> None:
    assert words_of("The MOON isn't at x86 moon's; don't go: orbit2orbit of the space-station") == [
        "moon",
        "orbit",
        "orbit",
        "space",
        "station",
    ]


def test_the_commonest_words_are_those_that_most_documents_have() -> None:
    documents = [["often"] * 50 + ["beta"], ["alpha", "beta", "gamma"], ["alpha"]]
    assert commonest(documents, 2) == {"alpha", "beta"}
    assert commonest(documents, 3) == {"alpha", "beta", "gamma"}  # as many have "often", which comes later
    assert commonest(documents, 9) == {"alpha", "beta", "gamma", "often"}


@given(size=st.integers(1, 40), rows=st.integers(1, 50), seed=st.integers(0, 9))
def test_a_sixth_of_the_rows_is_the_test_part(size: int, rows: int, seed: int) -> None:
    documents = {f"d{i}": ["both", f"w{'ab'[i % 2]}"] for i in range(size)}
    table = corpus(documents, rows, seed)
    assert len(table) == min(size, rows)
    assert (table["part"] == TEST).sum() == round(len(table) / 6)
    assert table["part"].is_monotonic_decreasing  # "train" before "test"
    assert table["document"].is_unique
    assert set(table["document"]) <= set(documents)
    assert corpus(documents, rows, seed).equals(table)


def test_the_vocabulary_is_of_the_training_part() -> None:
    documents = {f"d{i}": ["both", f"only{chr(97 + i)}", "both"] for i in range(12)}
    table = corpus(documents, 12, 0)
    held = table[table["part"] == TEST]
    assert held["words"].tolist() == ["both both"] * 2
    train = table[table["part"] == TRAIN]
    assert all(len(words.split()) == 3 for words in train["words"])
    assert set(" ".join(corpus(documents, 12, 0, vocabulary=1)["words"]).split()) == {"both"}


def test_the_order_is_random() -> None:
    documents = {f"d{i:02}": ["word"] for i in range(60)}
    one, other = (corpus(documents, 60, seed)["document"].tolist() for seed in (0, 1))
    assert one != sorted(one)
    assert one != other


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.95])
def test_a_truncated_archive_is_one_line_with_the_remedy(archive: Callable[..., Path], share: float) -> None:
    path = archive({name: os.urandom(5_000) for name in POSTS})
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(PlumblineError, match=r"posts\.tar\.gz cannot be unpacked .*: delete it and fetch it") as caught:
        read_posts(path)
    assert "\n" not in str(caught.value)


def test_damaged_and_other_files_are_one_line_with_the_remedy(archive: Callable[..., Path], tmp_path: Path) -> None:
    path = archive({name: os.urandom(50_000) for name in POSTS})
    content = bytearray(path.read_bytes())
    content[20_000:20_100] = bytes(100)
    path.write_bytes(bytes(content))
    (tmp_path / "page.tar.gz").write_text("<html>not found</html>", encoding="utf-8")
    for damaged in (path, tmp_path / "page.tar.gz"):
        with pytest.raises(PlumblineError, match=r"cannot be unpacked .*: delete it and fetch it again") as caught:
            read_posts(damaged)
        assert "\n" not in str(caught.value)
    with pytest.raises(PlumblineError, match="has no posts of 20 Newsgroups in it: delete it"):
        read_posts(archive(MORE, "other.tar.gz"))


def test_a_missing_archive_is_one_line_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"no file .*20news\.tar\.gz: `plumbline fetch` gets it") as caught:
        read_posts(tmp_path / "20news.tar.gz")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_the_real_file() -> None:
    path = Path(os.environ.get("PLUMBLINE_MIRROR", "/nowhere")) / "20news-bydate.rebuilt.tar.gz"
    if not path.is_file():
        pytest.skip("needs PLUMBLINE_MIRROR with 20news-bydate.rebuilt.tar.gz")
    posts = read_posts(path)
    assert len(posts) == 18_846
    assert len({name.partition("/")[0] for name in posts}) == 20
