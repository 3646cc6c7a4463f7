"""Which claims a run can judge, and from what: records, or runs that were kept."""

import json
from pathlib import Path
from typing import Any

import made_evidence as made
import pandas as pd
import pytest

from plumbline.analysis.outputs import draw
from plumbline.analysis.verdicts.judge import (
    ExperimentRuns,
    judge,
    judge_folder,
    judge_reference,
    runs_from_records,
    runs_from_reference,
)
from plumbline.analysis.verdicts.verdict import COLUMNS
from plumbline.core.errors import PlumblineError
from plumbline.store.records import write_frame
from plumbline.store.reference_files import ExperimentFiles

TEST = made.TEST | {"task": "forrester"}
BETTER: dict[str, Any] = {
    "source": "section 5",
    "statement": "It is better.",
    "experiments": ["E"],
    "primary": TEST,
}
ELSEWHERE = TEST | {"task": "levy-20"}


def write(folder: Path, *trials: Any, name: str = "E") -> Path:
    """Write an experiment's records into a folder of results."""
    return made.write(folder / f"records/{name}.parquet", *trials)


def keep(reference: Path, runs: ExperimentRuns, name: str = "E") -> None:
    """Keep runs as `plumbline reference` does."""
    (reference / name).mkdir(parents=True)
    write_frame(ExperimentFiles(reference / name).runs, runs.runs)
    ExperimentFiles(reference / name).provenance.write_text(json.dumps({"preset": runs.preset, "data": runs.data}))


@pytest.fixture
def done(folder: Path) -> Path:
    """A folder of results with six seeds of both methods."""
    write(folder / "quick", *(made.trial("forrester", method, seed) for method in made.METHODS for seed in range(6)))
    return folder / "quick"


class TestFromRecords:
    def test_each_claim_of_the_plan(self, done: Path) -> None:
        frame = judge_folder(made.plan({"E": made.experiment(seeds=6)}, {"K1": BETTER}).run.experiments, done)
        assert frame["claim"].tolist() == ["K1"]
        assert frame["preset"].tolist() == ["quick"]
        assert frame["data"].tolist() == ["synthetic"]
        assert frame["outcome"].tolist() == ["open"]  # both curves are the same
        assert frame["seeds"].tolist() == [6]

    def test_claims_of_experiments_that_the_preset_leaves_out_are_left_out(self, done: Path) -> None:
        experiments = {"E": made.experiment(seeds=6), "F": made.experiment(quick=None)}
        plan = made.plan(experiments, {"K1": BETTER, "K2": BETTER | {"experiments": ["F"]}})
        assert judge_folder(plan.run.experiments, done)["claim"].tolist() == ["K1"]

    def test_parts_that_the_preset_leaves_out_are_left_out(self, done: Path) -> None:
        """A preset may run a smaller task in the place of the document's."""
        tasks = {"task": None, "tasks": ["forrester", "levy-20"]}
        alternatives = BETTER | {"primary": [ELSEWHERE, TEST]}
        plan = made.plan(
            {"E": made.experiment(seeds=6)},
            {
                "K1": BETTER | {"primary": TEST | tasks},
                "K2": BETTER | {"primary": ELSEWHERE},
                "K3": alternatives,
                "K4": BETTER | {"secondary": [ELSEWHERE]},
            },
        )
        frame = judge_folder(plan.run.experiments, done)
        assert frame["claim"].tolist() == ["K1", "K3", "K4"]
        assert not frame["tasks"].str.contains("levy-20").any()

    def test_no_claims_is_an_empty_table(self, done: Path) -> None:
        frame = judge_folder(made.plan({"E": made.experiment(seeds=6)}).run.experiments, done)
        assert frame.empty
        assert frame.columns.tolist() == COLUMNS

    def test_claims_of_which_no_test_is_judged_are_named(self, done: Path) -> None:
        plan = made.plan({"E": made.experiment(seeds=6)}, {"K10": BETTER | {"primary": ELSEWHERE}})
        with pytest.warns(UserWarning, match="no test is judged: preset 'quick' has the trials of no test of K10: "):
            assert judge_folder(plan.run.experiments, done).empty

    def test_data_that_stand_in_are_named(self, folder: Path) -> None:
        experiment = made.experiment(grid=[{"tasks": ["qed"], "methods": list(made.METHODS)}], seeds=5)
        plan = made.plan({"E": experiment}, {"K": BETTER | {"primary": TEST | {"task": "qed"}}})
        write(folder / "quick", *(made.trial("qed", method, seed) for method in made.METHODS for seed in range(5)))
        frame = judge_folder(plan.run.experiments, folder / "quick")
        assert frame["data"].tolist() == ["generated-molecules (generated, stands in for zinc250k)"]

    def test_a_claim_that_is_not_run_is_no_accident(self, done: Path) -> None:
        listed = {"source": "section 9", "statement": "It is art."}
        plan = made.plan({"E": made.experiment(seeds=6)}, {"K1": BETTER, "K2": listed})
        assert judge_folder(plan.run.experiments, done)["claim"].tolist() == ["K1"]

    def test_records_are_read_once_and_by_the_columns_that_are_needed(
        self, done: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read, original = [], draw.evidence

        def count(path: Path, columns: Any, *arguments: Any, **options: Any) -> Any:
            read.append((path, set(columns)))
            return original(path, columns, *arguments, **options)

        monkeypatch.setattr(draw, "evidence", count)
        other = BETTER | {"primary": TEST | {"metric": "query_coverage"}}
        plan = made.plan({"E": made.experiment(seeds=6)}, {"K1": BETTER, "K2": other})
        assert judge_folder(plan.run.experiments, done)["claim"].tolist() == ["K1", "K2"]
        assert read == [(done / "records/E.parquet", {"f", "roles", "optimum", "covered"})]

    def test_without_records_it_is_one_line(self, folder: Path) -> None:
        with pytest.raises(PlumblineError, match="no records at"):
            judge_folder(made.plan({"E": made.experiment(seeds=6)}, {"K1": BETTER}).run.experiments, folder / "desk")

    def test_failed_trials_do_not_count(self, folder: Path) -> None:
        trials = [made.trial("forrester", method, seed) for method in made.METHODS for seed in range(6)]
        write(
            folder / "quick", *trials, made.failure("forrester", "plain", 6), made.trial("forrester", "calibrated", 6)
        )
        plan = made.plan({"E": made.experiment(seeds=7)}, {"K1": BETTER})
        assert judge_folder(plan.run.experiments, folder / "quick")["seeds"].tolist() == [6]


class TestWhatWasRun:
    def test_of_an_experiment_without_claims_there_is_nothing_to_keep(self, done: Path) -> None:
        assert (
            runs_from_records(made.plan({"E": made.experiment(seeds=6)}).resolve("E"), done / "records/E.parquet")
            is None
        )

    def test_what_is_kept_is_what_claims_ask_for(self, done: Path) -> None:
        claims = {
            "K1": BETTER | {"secondary": [TEST | {"metric": "nll"}]},
            "K2": BETTER | {"stuck": {"metric": "best_f", "above": 1.0}},
            "K3": BETTER | {"experiments": ["F"], "primary": TEST | {"metric": "crps"}},
        }
        plan = made.plan({"E": made.experiment(seeds=6), "F": made.experiment(seeds=6)}, claims)
        found = runs_from_records(plan.resolve("E"), done / "records/E.parquet")
        assert found is not None
        assert set(found.runs["metric"]) == {"regret", "nll", "best_f"}
        assert len(found.runs) == 3 * 2 * 6
        assert (found.preset, found.data) == ("quick", "synthetic")


SPLIT = {
    "E": made.experiment(seeds=6),
    "F": made.experiment(grid=[{"tasks": ["qed"], "methods": list(made.METHODS)}], seeds=7),
}
SURE = TEST | {"of": "mean", "threshold": 100.0}
OF_BOTH = BETTER | {"experiments": ["E", "F"], "primary": SURE | {"task": None, "tasks": ["forrester", "qed"]}}


class TestClaimsOfSeveralExperiments:
    """Each is run and kept on its own; they are judged together."""

    @pytest.fixture
    def both(self, done: Path) -> Path:
        trials = (made.trial("qed", method, seed) for method in made.METHODS for seed in range(7))
        write(done, *trials, name="F")
        return done

    def test_their_runs_are_judged_as_those_of_one(self, both: Path) -> None:
        frame = judge_folder(made.plan(SPLIT, {"K": OF_BOTH}).run.experiments, both)
        assert frame["experiments"].tolist() == ["E F", "E F"]
        assert frame["missing"].tolist() == ["", ""]
        assert frame["seeds"].tolist() == [6, 7]
        assert frame["data"].tolist() == ["synthetic, generated-molecules (generated, stands in for zinc250k)"] * 2
        assert frame["preset"].tolist() == ["quick", "quick"]
        assert frame["verdict"].tolist() == ["reproduced", "reproduced"]

    def test_each_keeps_the_runs_of_its_own_tasks(self, both: Path) -> None:
        for name, task in (("E", "forrester"), ("F", "qed")):
            found = runs_from_records(made.plan(SPLIT, {"K": OF_BOTH}).resolve(name), both / f"records/{name}.parquet")
            assert found is not None
            assert set(found.runs["task"]) == {task}

    def test_with_one_of_them_it_is_not_judged_in_whole(self, both: Path) -> None:
        """Whatever holds of what was run, the rest may not."""
        plan = made.plan(SPLIT, {"K": OF_BOTH})
        keep(both / "kept", runs_from_records(plan.resolve("F"), both / "records/F.parquet"), "F")
        frame = judge_reference(plan.studies.values(), made.LIBRARY, both / "kept")
        assert (frame["outcome"].tolist(), frame["verdict"].tolist()) == (["holds"], ["partly"])
        assert frame["missing"].tolist() == ["E"]


class TestFromWhatIsKept:
    PLAN = staticmethod(lambda **changes: made.plan({"E": made.experiment(seeds=6)}, {"K1": BETTER | changes}))

    @pytest.mark.slow
    def test_verdicts_are_the_same(self, done: Path, folder: Path) -> None:
        plan = self.PLAN(seeds=2, secondary=[TEST | {"metric": "nll", "of": "mean"}])
        keep(folder / "kept", runs_from_records(plan.resolve("E"), done / "records/E.parquet"))
        again = judge_reference(plan.studies.values(), made.LIBRARY, folder / "kept")
        pd.testing.assert_frame_equal(again, judge_folder(plan.run.experiments, done))

    def test_they_can_be_judged_by_another_rule(self, done: Path, folder: Path) -> None:
        keep(folder / "kept", runs_from_records(self.PLAN().resolve("E"), done / "records/E.parquet"))
        changed = self.PLAN(primary=TEST | {"threshold": 100.0, "of": "mean"})
        assert judge_reference(changed.studies.values(), made.LIBRARY, folder / "kept")["verdict"].tolist() == [
            "reproduced"
        ]

    def test_a_metric_that_was_not_kept_is_one_line(self, done: Path, folder: Path) -> None:
        keep(folder / "kept", runs_from_records(self.PLAN().resolve("E"), done / "records/E.parquet"))
        with pytest.raises(PlumblineError, match="no nll of 'calibrated' on 'forrester' among the runs"):
            judge_reference(self.PLAN(primary=TEST | {"metric": "nll"}).studies.values(), made.LIBRARY, folder / "kept")

    def test_what_is_not_kept_is_not_judged(self, folder: Path) -> None:
        assert runs_from_reference(folder, "E") is None
        assert judge_reference(self.PLAN().studies.values(), made.LIBRARY, folder).empty

    @pytest.mark.parametrize("about", ["", "{", "[]", '{"preset": "desk"}', None])
    def test_runs_of_unknown_origin_are_one_line(self, done: Path, folder: Path, about: str | None) -> None:
        keep(folder / "kept", runs_from_records(self.PLAN().resolve("E"), done / "records/E.parquet"))
        path = folder / "kept/E/provenance.json"
        path.unlink() if about is None else path.write_text(about)
        with pytest.raises(PlumblineError, match=r"kept/E/provenance\.json") as error:
            runs_from_reference(folder / "kept", "E")
        assert "\n" not in str(error.value)

    def test_a_table_of_something_else_is_one_line(self, done: Path, folder: Path) -> None:
        keep(folder / "kept", runs_from_records(self.PLAN().resolve("E"), done / "records/E.parquet"))
        path = ExperimentFiles(folder / "kept" / "E").runs
        write_frame(path, pd.DataFrame({"task": ["forrester"], "method": ["plain"]}))
        with pytest.raises(PlumblineError, match=r"kept/E/E-runs\.parquet has no column"):
            runs_from_reference(folder / "kept", "E")
        path.write_text("task,method\nforrester,plain\n")
        with pytest.raises(PlumblineError, match=r"kept/E/E-runs\.parquet is corrupt"):
            runs_from_reference(folder / "kept", "E")

    def test_the_studies_are_judged_in_their_order(self, done: Path) -> None:
        plan = made.plan({"E": made.experiment(seeds=6)}, {"K2": BETTER, "K10": BETTER, "K1": BETTER})
        runs = runs_from_records(plan.resolve("E"), done / "records/E.parquet")
        assert judge(plan.studies.values(), made.LIBRARY, lambda name: runs)["claim"].tolist() == ["K2", "K10", "K1"]


class TestFresh:
    """Once all experiments with fresh seeds have reference results, a claim rests on them alone."""

    EXPERIMENTS = {"E": made.experiment(seeds=6), "N": made.experiment(seeds=8, first_seed=1000)}  # noqa: RUF012
    CLAIM = BETTER | {"fresh": ["N"]}

    @pytest.fixture
    def fresh(self, done: Path) -> Path:
        trials = (made.trial("forrester", method, seed) for method in made.METHODS for seed in range(1000, 1008))
        write(done, *trials, name="N")
        return done

    def test_before_it_rests_on_the_others(self, done: Path) -> None:
        plan = made.plan(self.EXPERIMENTS, {"K": self.CLAIM})
        chosen = {name: plan.resolve(name) for name in ("E",)}
        frame = judge_folder(chosen, done)
        assert frame[["experiments", "seeds"]].to_numpy().tolist() == [["E", 6]]

    def test_then_the_others_are_a_pilot(self, fresh: Path) -> None:
        frame = judge_folder(made.plan(self.EXPERIMENTS, {"K": self.CLAIM}).run.experiments, fresh)
        assert frame[["experiments", "seeds"]].to_numpy().tolist() == [["N", 8]]

    def test_both_may_run_the_same_methods_on_the_same_tasks(self) -> None:
        plan = made.plan(self.EXPERIMENTS, {"K": self.CLAIM})
        assert [seeds for _, seeds in plan.resolve("N").trials] == [range(1000, 1008)] * 2
        claim = plan.studies["made-up"].claims["K"]
        assert (claim.evidence, claim.all_experiments) == ((("E",), ("N",)), ("E", "N"))


def test_what_fails_at_a_fraction_of_the_documents_rounds_does_not_count(done: Path) -> None:
    """The made-up runs have six rounds; the document's have as many as its task, or as an experiment says."""
    wrong = BETTER | {"primary": TEST | {"direction": "greater", "threshold": 1.0}}
    runs = runs_from_records(
        made.plan({"E": made.experiment(seeds=6)}, {"K": wrong}).resolve("E"), done / "records/E.parquet"
    )
    for rounds, outcome in ((made.ROUNDS, "fails"), (10 * made.ROUNDS, "cannot show")):
        grid = [{"tasks": ["forrester"], "methods": list(made.METHODS), "rounds": rounds}]
        studies = made.plan({"E": made.experiment(seeds=6, grid=grid)}, {"K": wrong}).studies.values()
        assert judge(studies, made.LIBRARY, lambda name: runs)["outcome"].tolist() == [outcome]
