"""Verdicts in words: what was estimated, a table with one row per claim, and how many claims have each verdict."""

from collections import Counter
from collections.abc import Iterable, Mapping

import pandas as pd

from plumbline.analysis.comparisons.numbers import ends_in_words, short
from plumbline.analysis.publish.markdown import cell, with_bold
from plumbline.analysis.publish.supported_values import supports_if
from plumbline.analysis.verdicts.rule import counts
from plumbline.analysis.verdicts.verdict import by_number
from plumbline.core.words import counted
from plumbline.statistics.inference import TAIL
from plumbline.study.claims import SAID, Claim
from plumbline.study.experiments import Study
from plumbline.study.resolved import STANDS_IN
from plumbline.study.verdicts import VERDICTS, unbroken, with_shape

NOT_JUDGED = "not run or judged"

ALL = "**all**"
"""The row of totals."""

ANY_DATA = "any data support the claim"
"""In the place of an estimate that no data could turn against the claim: its size says nothing."""

IN_DOUBT = "in doubt"
"""Beside a doubtful verdict."""


def claims_of(studies: Iterable[Study]) -> list[tuple[str, Claim]]:
    """The claims of studies, in order: C2 before C10."""
    claims = (one for study in studies for one in study.claims.items())
    return sorted(claims, key=lambda one: by_number(one[0]))


def effect(tests: pd.DataFrame, named: bool = True, supported: bool = False) -> str:
    """Return the estimate of a claim's primary test in words, with stand-in data and experiments that were not run.

    Args:
        tests: the rows of its parts.
        named: whether experiments that were not run are named, or only counted.
        supported: whether the values that support the claim are said.
    """
    first = tests.iloc[0]
    besides = [excluded_sizes(tests)]
    besides += [f"on {first['data']}"] * (STANDS_IN in first["data"])
    missing = first["missing"].split()
    besides += [f"{', '.join(missing) if named else counted(len(missing), 'experiment')} not run"] * bool(missing)
    return "; ".join(filter(None, [parts_in_words(tests, supported), *besides]))


def parts_in_words(tests: pd.DataFrame, supported: bool) -> str:
    """Return which parts hold and which do not, by what they measure: of one part the estimate alone."""
    if tests["verdict"].iloc[0] == "cannot fail":
        return ANY_DATA
    if len(tests) == 1:
        return _joined(estimate_or_reason(tests.iloc[0]), supports_if(tests) if supported else "")
    groups = [(str(name), some) for name, some in tests.groupby("test", sort=False)]
    if len(groups) == 1:
        least, most = tests["ours"].min(), tests["ours"].max()
        words = f"{counts(tests['outcome'])} of {len(tests)} parts, with estimates from {short(least)} to {short(most)}"
        return _joined(words, supports_if(tests) if supported else "")
    return "; ".join(
        _joined(
            f"{name}: {counts(some['outcome'])}" + f" ({estimate_or_reason(some.iloc[0])})" * (len(some) == 1),
            supports_if(some) if supported else "",
        )
        for name, some in groups
    )


def _joined(*words: str) -> str:
    return ", ".join(filter(None, words))


def estimate_or_reason(one: pd.Series) -> str:
    """Return an estimate in words; of a part that cannot show anything, as all seeds are alike, the reason instead."""
    alike = one["low"] == one["high"]
    return str(one["because"]) if alike and one["outcome"] == "cannot show" else one_effect(one)


def excluded_sizes(tests: pd.DataFrame) -> str:
    """Return the published sizes that are excluded, in the documents' words; empty where none is."""
    sizes = dict.fromkeys(tests.loc[tests["size_p"] <= TAIL, "published"])
    return f"excluded: {', '.join(sizes)}" if sizes else ""


def one_effect(one: pd.Series) -> str:
    """Return an estimate, and its interval where it is not as good as a point, in words."""
    if one["high"] - one["low"] <= 1e-3 * abs(one["ours"]):
        return short(one["ours"])
    return f"{short(one['ours'])} ({ends_in_words(one['low'], one['high'])})"


def seeds_of(tests: pd.DataFrame) -> str:
    """The number of seeds of some tests: `50`, or `10 to 50` where they differ."""
    least, most = int(tests["seeds"].min()), int(tests["seeds"].max())
    return str(least) if least == most else f"{least} to {most}"


def verdict_rows(
    studies: Iterable[Study], claims: pd.DataFrame, doubts: pd.DataFrame, named: bool = True
) -> pd.DataFrame:
    """The verdicts, one row per claim, with those that are not judged yet or not run.

    Seeds are those of the parts of the primary test, from the fewest to the most; `paper_seeds` are the paper's.
    Estimates have the values that support the claim, and the names of experiments that were not run, or else their
    number; see `effect`.
    """
    primary = claims[claims["role"] == "primary"]
    tests_of = {str(name): tests for name, tests in primary.groupby("claim", sort=False)}
    doubted = {name for names in doubts["claims"] for name in names.split()}
    studies = list(studies)
    paper_of = {name: study.study for study in studies for name in study.claims}
    rows = []
    for name, claim in claims_of(studies):
        cells = ["not judged" if claim.experiments else "not run", False, "", "", ""]
        experiments = claim.experiments
        if name in tests_of:
            tests = tests_of[name]
            verdict, names = tests["verdict"].iloc[0], tests["test"].unique()
            test = names[0] if len(names) == 1 else f"{len(names)} quantities"
            cells = [verdict, name in doubted, test, effect(tests, named, supported=True), seeds_of(tests)]
            experiments = tests["experiments"].iloc[0].split()
        rows.append([name, paper_of[name], claim.statement, *cells, claim.seeds, ", ".join(experiments)])
    columns = ["claim", "paper", "statement", "verdict", "in_doubt", "measured", "estimate", "seeds", "paper_seeds"]
    return pd.DataFrame(rows, columns=[*columns, "experiments"])


def verdict_table(studies: Iterable[Study], claims: pd.DataFrame, doubts: pd.DataFrame) -> str:
    """The verdicts of `verdict_rows` as a Markdown table."""
    lines = ["| claim | statement | verdict | measured | estimate, 95% interval | seeds (the paper's) | experiment |"]
    lines.append("|---|---|---|---|---|---|---|")
    for one in verdict_rows(studies, claims, doubts).to_dict("records"):
        judged = bool(one["seeds"])
        verdict = f"**{with_shape(one['verdict'])}**" + f", {IN_DOUBT}" * one["in_doubt"] if judged else one["verdict"]
        seeds = f"{one['seeds'] or '–'} ({one['paper_seeds'] or '–'})"
        words = [cell(one[name]) for name in ("claim", "statement", "measured", "estimate")]
        cells = [*words[:2], verdict, *words[2:], seeds, cell(one["experiments"] or "–")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def words_table(studies: Iterable[Study], claims: pd.DataFrame, doubts: pd.DataFrame) -> str:
    """The verdicts in words as a Markdown table: of each claim what holds, and what does not or is open."""
    studies = list(studies)
    words = {name: _said(claim) for name, claim in claims_of(studies)}
    primary = claims[claims["role"] == "primary"].groupby("claim")["outcome"]
    parts = {str(name): counts(outcomes) for name, outcomes in primary}
    lines = [f"| claim | verdict | parts | {' | '.join(SAID)} |", "|---|---|---|---|---|"]
    for one in verdict_rows(studies, claims, doubts).to_dict("records"):
        name = one["claim"]
        verdict = unbroken(one["verdict"]) + f", {IN_DOUBT}" * one["in_doubt"] if name in parts else one["verdict"]
        said = [with_bold(words[name].get(about, "")) for about in SAID] if name in parts else ["", ""]
        lines.append(f"| {' | '.join([name, verdict, parts.get(name, ''), *said])} |")
    return "\n".join(lines)


def _said(claim: Claim) -> Mapping[str, str]:
    """Return the verdict on a claim in words; of one that does not apply, why it does not."""
    if claim.in_words:
        return claim.in_words.said
    return {SAID[-1]: claim.beyond.because} if claim.beyond else {}


def verdict_counts(studies: Iterable[Study], claims: pd.DataFrame) -> pd.DataFrame:
    """Count the claims with each verdict.

    Returns:
        One row per verdict that some claim has, and one with the number of claims; `verdict`, one column per study with
        claims, and `all`.
    """
    verdict_of = claims.drop_duplicates("claim").set_index("claim")["verdict"]
    found = {
        study.study: Counter(verdict_of.get(name, NOT_JUDGED) for name, _ in claims_of([study]))
        for study in studies
        if study.claims
    }
    found["all"] = sum(found.values(), Counter())
    rows = [one for one in (*VERDICTS, NOT_JUDGED) if found["all"][one]]
    counts = {name: [*(count[one] for one in rows), count.total()] for name, count in found.items()}
    return pd.DataFrame({"verdict": [*rows, "claims"], **counts})


def verdict_summary(studies: Iterable[Study], claims: pd.DataFrame) -> str:
    """The number of claims with each verdict, as a Markdown table with one column per study and one of totals."""
    counts = verdict_counts(studies, claims).set_index("verdict").rename(columns={"all": ALL})
    titles = [name if name == ALL else cell(name) for name in counts]
    lines = [f"| verdict | {' | '.join(titles)} |", "|---" + "|--:" * len(titles) + "|"]
    for verdict, row in zip(counts.index, counts.to_numpy().tolist(), strict=True):
        label = verdict if verdict == "claims" else unbroken(verdict)
        lines.append(f"| {label} | {' | '.join(str(count or '–') for count in row)} |")
    return "\n".join(lines)


def doubt_table(doubts: pd.DataFrame) -> str:
    """Return the doubts about verdicts as a Markdown table."""
    lines = ["| claims | what is wrong | what will be done |", "|---|---|---|"]
    for names, doubt, repair in doubts[["claims", "doubt", "repair"]].itertuples(index=False, name=None):
        lines.append(f"| {' | '.join(map(cell, (names.replace(' ', ', '), doubt, repair)))} |")
    return "\n".join(lines)
