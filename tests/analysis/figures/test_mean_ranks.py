"""Mean ranks of methods over tasks."""

from pathlib import Path

import made_evidence as made
import numpy as np
import pytest
from figure_cases import build

from plumbline.analysis.evidence.evidence import Evidence
from plumbline.analysis.outputs.kinds import figures
from plumbline.core.errors import PlumblineError


class TestMeanRanks:
    @pytest.fixture
    def found(self, folder: Path) -> Evidence:
        """Calibrated is ahead on both tasks; random recommends nothing."""
        ends = {"plain": 2.0, "calibrated": 1.0, "random": 3.0}
        trials = [
            made.trial(task, method, seed, regret=lambda _, i, end=end: end)
            for task in ("bowl", "valley")
            for method, end in ends.items()
            for seed in range(3)
        ]
        for row in (row for trial in trials for row in trial if row["method"] != "random"):
            row["notes"] = {"recommended": 0.0}
        return made.read(folder, *trials)

    def test_the_best_is_on_top_and_those_without_a_rank_have_no_dot(self, found: Evidence) -> None:
        words = {"regret": "simple regret", "recommended_regret": "recommended"}
        overall, by_task = build("mean-ranks", found, metrics=words, titles={"valley": "V"}).axes
        assert [tick.get_text() for tick in overall.get_yticklabels()] == ["calibrated", "plain", "random"]
        top, bottom = overall.transData.transform([(0, 0), (0, 1)])[:, 1]
        assert top > bottom
        regret, recommended = ([*one[0].get_xdata()] for one in overall.containers)
        assert regret == [1.0, 2.0, 3.0]
        assert recommended[:2] == [1.0, 2.0]
        assert np.isnan(recommended[2])
        assert [text.get_text() for text in by_task.texts] == ["1.0", "1.0", "2.0", "2.0", "3.0", "3.0"]
        assert [tick.get_text() for tick in by_task.get_xticklabels()] == ["bowl", "V"]

    def test_methods_with_one_seed_are_named_and_not_ranked(self, folder: Path) -> None:
        seeds = {"plain": 3, "calibrated": 3, "random": 1}
        trials = [made.trial("bowl", method, seed) for method, count in seeds.items() for seed in range(count)]
        found, kind = made.read(folder, *trials), figures["mean-ranks"]
        asked = kind.options(metrics={"regret": "regret"})
        labels = [tick.get_text() for tick in kind.build(found, asked).axes[0].get_yticklabels()]
        assert sorted(labels) == ["calibrated", "plain"]
        assert asked.shown(found).endswith("over seeds; not ranked, with one seed: random")

    def test_nothing_to_rank_is_one_line(self, folder: Path) -> None:
        apart = made.read(folder, made.trial("bowl", "plain"), made.trial("valley", "calibrated"))
        with pytest.raises(PlumblineError, match="nothing to rank"):
            build("mean-ranks", apart)
