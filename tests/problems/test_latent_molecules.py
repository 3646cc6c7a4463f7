"""Molecules by their latent points: what is decoded, what counts, and where a trial may begin."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import selfies
import torch

from plumbline.core.errors import PlumblineError
from plumbline.data.generated.molecules import DRUGS
from plumbline.data.sources.guacamol import OBJECTIVES, score_smiles
from plumbline.designs.base import initial_design
from plumbline.problems import latent_molecules
from plumbline.problems.base import Context, Problem, SharedCache
from plumbline.problems.build import build_problem
from plumbline.problems.evaluation import values
from plumbline.problems.latent_molecules import INVALID, LatentMolecules, values_of
from plumbline.registry.references import InitialDesign
from plumbline.spaces.box import Box, uniform
from plumbline.store.keys import trial_inputs, trial_key
from plumbline.store.spec import TrialSpec

ASKED = {"objective": "median-1", "model": "small-vae", "molecules": "small-smiles"}


@pytest.fixture
def problem(context: Callable[[int], Context]) -> Problem:
    return build_problem("guacamol", ASKED, context(0))


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def function_of(problem: Problem) -> LatentMolecules:
    assert isinstance(problem.function, LatentMolecules)
    return problem.function


def test_it_is_a_box_as_wide_as_the_model(problem: Problem) -> None:
    assert isinstance(problem.space, Box)
    assert problem.bounds.tolist() == [[-8.0] * 16, [8.0] * 16]
    assert problem.optimum is None
    assert problem.outcomes[0].noise == 0.0


def test_values_are_the_scores_of_what_is_decoded(problem: Problem) -> None:
    X = uniform(problem.bounds, 60, generator(1))
    strings = function_of(problem).decode(X)
    smiles = [selfies.decoder(string) for string in strings]
    scores = score_smiles(OBJECTIVES["median-1"], smiles)
    expected = [score if one else INVALID for one, score in zip(smiles, scores, strict=True)]
    assert problem.function(X, noise=False).tolist() == expected
    assert len(set(expected)) > 3


def test_what_is_no_molecule_is_worth_less_than_any() -> None:
    objective = OBJECTIVES["osimertinib-mpo"]
    aspirin = selfies.encoder(DRUGS["aspirin"])
    found = values_of(objective, ["", "[nop]", "[no symbol]", aspirin, "[Branch1]"])
    assert found.tolist() == [INVALID, INVALID, INVALID, score_smiles(objective, [DRUGS["aspirin"]])[0], INVALID]
    assert found[3] >= 0 > INVALID == -0.01
    assert values_of(objective, []).shape == (0,)


def test_negative_scores_and_unreadable_smiles_count_as_no_molecule(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"C": -0.5, "CC": 0.0, "CCC": np.nan, "CCCC": 0.25}
    monkeypatch.setattr(latent_molecules, "score_smiles", lambda _, smiles: np.array([scores[one] for one in smiles]))
    strings = ["[C]" * n for n in range(1, 5)]
    assert values_of(OBJECTIVES["median-1"], strings).tolist() == [INVALID, 0.0, INVALID, 0.25]


def test_a_molecule_is_scored_once(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counting(objective: Any, smiles: list[str]) -> Any:
        asked.extend(smiles)
        return score_smiles(objective, smiles)

    monkeypatch.setattr(latent_molecules, "score_smiles", counting)
    X = uniform(problem.bounds, 30, generator(2))
    first = problem.function(torch.cat([X, X]), noise=False)
    strings = function_of(problem).decode(X)
    assert len(asked) == len(set(strings))
    assert torch.equal(problem.function(X, noise=False), first[:30])
    assert torch.equal(first[:30], first[30:])
    assert len(asked) == len(set(strings)), "nothing is scored anew"


def test_the_examples_are_encoded_molecules(problem: Problem) -> None:
    assert problem.examples is not None
    X = initial_design(InitialDesign(design="examples", size=10), problem, generator(3))
    model = problem.examples.model  # type: ignore[attr-defined]
    everything = model.encode(list(DRUGS.values())).clamp(-8, 8)
    rows = [int((everything - x).abs().sum(dim=1).argmin()) for x in X]
    assert len(set(rows)) == 10
    torch.testing.assert_close(X, everything[rows], atol=1e-5, rtol=0.0)
    assert X.dtype == torch.float64
    assert torch.equal(X, initial_design(InitialDesign(design="examples", size=10), problem, generator(3)))
    assert torch.equal(X[:4], initial_design(InitialDesign(design="examples", size=4), problem, generator(3)))
    assert not torch.equal(X, initial_design(InitialDesign(design="examples", size=10), problem, generator(4)))


@pytest.mark.parametrize("change", [{}, {"molecules": None}])
def test_failed_decodings_are_noted(context: Callable[[int], Context], change: dict[str, Any]) -> None:
    """The same by a problem that has decoded the points before and by one that has not."""
    made = build_problem("guacamol", {**ASKED, **change}, context(0))
    X = uniform(made.bounds, 60, generator(1))
    F = values(made, X)
    failed = sum(selfies.decoder(string) == "" for string in function_of(made).decode(X))
    assert 0 < failed < 60
    assert made.notes is not None
    assert made.notes(X, F) == made.notes(X, values(made, X)) == {"failed_decodings": failed}


def test_examples_are_encoded_once_and_lie_in_the_box(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of the table at a time."""
    assert problem.examples is not None
    monkeypatch.setattr(latent_molecules, "BLOCK", 40)
    model = problem.examples.model  # type: ignore[attr-defined]
    seen: list[int] = []

    def far_away(tokens: list[list[int]]) -> torch.Tensor:
        seen.append(len(tokens))
        return torch.full((len(tokens), 16), 11.0, dtype=torch.float64)

    monkeypatch.setattr(model, "encode_tokens", far_away)
    X = problem.examples(12, generator(0))
    problem.examples(12, generator(1))
    assert sorted(seen) == [len(DRUGS) - 40, 40]
    assert (X == 8.0).all()


def test_a_job_decodes_its_examples_once(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And to what a job of one trial decodes them to, to the last digit, whoever asked before."""
    shared, alone = SharedCache(), SharedCache()
    asked: list[int] = []
    for seed, size in ((1, 5), (0, 30)):
        company = build_problem("guacamol", ASKED, Context(data_folder, generator(seed), shared))
        assert company.examples is not None
        X = company.examples(size, generator(seed))
        F = values(company, X)
    lonely = build_problem("guacamol", ASKED, Context(data_folder, generator(0), alone))
    assert lonely.examples is not None
    assert torch.equal(lonely.examples(30, generator(0)), X)
    assert torch.equal(values(lonely, X), F)

    def counting(Z: torch.Tensor) -> list[str]:
        asked.append(len(Z))
        return [""] * len(Z)

    monkeypatch.setattr(function_of(company), "decode", counting)
    assert torch.equal(values(company, X), F)
    others = uniform(company.bounds, 3, generator(5))
    mixed = torch.cat([X[:2], others, X[2:]])
    assert values(company, mixed)[:, 0].tolist() == [*F[:2, 0].tolist(), *[INVALID] * 3, *F[2:, 0].tolist()]
    assert asked == [3]


def test_molecules_that_the_model_cannot_read_are_left_out(problem: Problem) -> None:
    model = problem.examples.model  # type: ignore[union-attr]
    some = latent_molecules.EncodedMolecules(model, ["CCO", "[Au]CC", "C" * 200, "CCN"])
    assert some(2, generator(0)).shape == (2, 16)
    with pytest.raises(PlumblineError, match="an initial design of 3 of the 2 molecules that the model can read"):
        some(3, generator(0))


def test_without_molecules_there_are_no_examples(context: Callable[[int], Context]) -> None:
    bare = build_problem("guacamol", {"objective": "median-1", "model": "small-vae"}, context(0))
    with pytest.raises(PlumblineError, match="'examples' needs a problem that has examples"):
        initial_design(InitialDesign(design="examples", size=3), bare, generator(0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "median-3"}, "unknown objective 'median-3': did you mean 'median-2'"),
        ({"model": "large-vae"}, r"no model at .*large-vae\.npz: `plumbline model large-vae` trains it"),
        ({"molecules": "nowhere"}, r"no features at .*nowhere\.parquet"),
        ({"molecules": "small-antibodies"}, "dataset 'small-antibodies' has no column smiles"),
    ],
)
def test_mistakes_are_one_line(context: Callable[[int], Context], change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as caught:
        build_problem("guacamol", {**ASKED, **change}, context(0))
    assert "\n" not in str(caught.value)


def test_the_rules_of_the_workflow_know_what_it_reads(data_folder: Path) -> None:
    spec = TrialSpec.model_validate(
        {
            "problem": {"name": "guacamol", "options": ASKED},
            "method": "random",
            "seed": 0,
            "budget": {"initial": {"design": "examples", "size": 3}, "rounds": 1},
        }
    )
    assert trial_inputs(spec) == ["features/small-smiles.parquet", "models/small-vae.npz"]
    assert len(trial_key(spec, data_folder)) == 16
