import numpy as np
import pandas as pd
import pytest
from numpy.random import default_rng
from rdkit import Chem
from rdkit.Chem import Descriptors

from plumbline.data.generated.molecules import (
    DRUGS,
    HEAVY_ATOMS,
    LARGEST_RING,
    acceptable,
    cross,
    generated_molecules,
    made_up_docking_scores,
    mutate,
)
from plumbline.data.sources.molecules import describe_molecules

SIZE = 300


@pytest.fixture(scope="module")
def molecules() -> list[str]:
    return generated_molecules(SIZE, 0)


@pytest.fixture(scope="module")
def table(molecules: list[str]) -> pd.DataFrame:
    return describe_molecules(molecules)


class TestDrugs:
    @pytest.mark.parametrize("name", DRUGS)
    def test_each_is_an_acceptable_molecule(self, name: str) -> None:
        assert acceptable(DRUGS[name]) is not None

    def test_no_drug_is_there_twice(self) -> None:
        assert len({Chem.CanonSmiles(smiles) for smiles in DRUGS.values()}) == len(DRUGS)

    @pytest.mark.parametrize(
        ("name", "weight"),
        [
            ("aspirin", 180.16),
            ("paracetamol", 151.16),
            ("ibuprofen", 206.28),
            ("caffeine", 194.19),
            ("diazepam", 284.74),
            ("omeprazole", 345.42),
            ("warfarin", 308.33),
            ("sildenafil", 474.58),
            ("imatinib", 493.60),
            ("celecoxib", 381.37),
            ("losartan", 422.91),
            ("zolpidem", 307.39),
        ],
    )
    def test_weights_are_those_of_the_pharmacopoeia(self, name: str, weight: float) -> None:
        assert Descriptors.MolWt(Chem.MolFromSmiles(DRUGS[name])) == pytest.approx(weight, abs=0.05)

    def test_their_features_differ(self) -> None:
        assert len(describe_molecules(list(DRUGS.values()))) == len(DRUGS)


class TestOperators:
    def test_a_mutation_changes_the_length_by_at_most_one(self) -> None:
        generator = default_rng(0)
        lengths = {len(mutate(list("abcde"), ["z"], generator)) for _ in range(100)}
        assert lengths == {4, 5, 6}

    def test_a_single_token_is_never_removed(self) -> None:
        generator = default_rng(0)
        assert {len(mutate(["a"], ["z"], generator)) for _ in range(100)} == {1, 2}

    def test_parents_are_left_as_they_were(self) -> None:
        parent = list("abcde")
        for seed in range(20):
            mutate(parent, ["z"], default_rng(seed))
        assert parent == list("abcde")

    def test_a_cross_is_a_head_and_a_tail(self) -> None:
        for seed in range(50):
            child = "".join(cross(list("abcd"), list("wxyz"), default_rng(seed)))
            head = child.rstrip("wxyz")
            assert "abcd".startswith(head)
            assert 1 <= len(head) < 4
            assert "wxyz".endswith(child.removeprefix(head))
            assert len(child) > len(head)


class TestAcceptable:
    @pytest.mark.parametrize(
        ("smiles", "reason"),
        [
            ("C1CC", "no molecule"),
            ("CCO", "too small"),
            ("C" * 51, "too large"),
            ("CCCCCCCCC.CCCCCCCCC", "two molecules"),
            ("C1CCCCCCCC1CCCC", "a ring of nine"),
            ("CCCCCCCC[CH2]", "a radical"),
        ],
    )
    def test_others_are_left_out(self, smiles: str, reason: str) -> None:
        assert acceptable(smiles) is None, reason

    @pytest.mark.parametrize("smiles", ["C" * 8, "C" * 50, "C1CCCCCCC1"])
    def test_the_ends_of_the_ranges_are_in(self, smiles: str) -> None:
        assert acceptable(smiles) == smiles

    def test_what_is_returned_is_canonical(self) -> None:
        assert acceptable("OC(=O)c1ccccc1OC(C)=O") == acceptable(DRUGS["aspirin"])


class TestGeneratedMolecules:
    @pytest.mark.slow
    def test_it_repeats_itself(self, molecules: list[str]) -> None:
        assert generated_molecules(SIZE, 0) == molecules

    def test_fewer_are_the_first_of_more(self, molecules: list[str]) -> None:
        assert generated_molecules(50, 0) == molecules[:50]

    def test_another_seed_makes_others(self, molecules: list[str]) -> None:
        assert len(set(generated_molecules(50, 1)) & set(molecules)) < 10

    def test_it_does_not_touch_global_streams(self) -> None:
        np.random.seed(0)  # noqa: NPY002
        before = np.random.get_state()[1].tolist()  # noqa: NPY002
        generated_molecules(5, 3)
        assert np.random.get_state()[1].tolist() == before  # noqa: NPY002

    def test_size_and_no_repeats(self, molecules: list[str]) -> None:
        assert len(molecules) == SIZE == len(set(molecules))
        assert generated_molecules(0, 0) == []

    def test_all_pass_the_filters(self, molecules: list[str]) -> None:
        for smiles in molecules:
            molecule = Chem.MolFromSmiles(smiles)
            assert Chem.MolToSmiles(molecule) == smiles
            assert "." not in smiles
            assert molecule.GetNumHeavyAtoms() in HEAVY_ATOMS
            assert max(map(len, molecule.GetRingInfo().AtomRings()), default=0) <= LARGEST_RING
            assert Descriptors.NumRadicalElectrons(molecule) == 0


class TestAsAProblem:
    """The stand-in is of use only if its targets rank molecules: a wide spread, and few that are left out."""

    @pytest.mark.slow
    def test_nearly_all_are_rows(self, table: pd.DataFrame) -> None:
        assert len(table) > 0.95 * SIZE

    def test_qed_spreads(self, table: pd.DataFrame) -> None:
        low, high = table["qed"].quantile([0.05, 0.95])
        assert low < 0.4
        assert high > 0.8
        assert table["qed"].std() > 0.1

    def test_penalised_logp_spreads(self, table: pd.DataFrame) -> None:
        low, high = table["penalized_logp"].quantile([0.05, 0.95])
        assert high - low > 4
        assert table["penalized_logp"].between(-25, 10).all()

    def test_targets_have_no_ties_to_speak_of(self, table: pd.DataFrame) -> None:
        for target in ("qed", "penalized_logp"):
            assert table[target].nunique() > 0.95 * len(table)


class TestMadeUpDockingScores:
    def test_range_and_spread_are_those_of_docking_scores(self, table: pd.DataFrame) -> None:
        scores = made_up_docking_scores(table)
        assert scores.between(-12, -2).all()
        assert scores.std() > 0.8
        assert scores.nunique() > 0.95 * len(table)

    def test_by_hand_at_the_middle_of_everything(self) -> None:
        columns = ["heavy_atom_mol_wt", "max_partial_charge", "fp_density_morgan_2", "logp"]
        row = pd.DataFrame([[280.0, 0.22, 2.0, 0.0], [1e6, 9.0, 99.0, 0.0]], columns=columns)
        assert made_up_docking_scores(row).tolist() == pytest.approx([-3 - 2 - 2 - 2, -3 - 4])

    def test_it_is_a_function_of_the_molecule_alone(self, table: pd.DataFrame) -> None:
        scores = made_up_docking_scores(table)
        pd.testing.assert_series_equal(made_up_docking_scores(table.iloc[::-1]), scores.iloc[::-1])
