import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit import Chem
from rdkit.Chem import Crippen, rdMolDescriptors

from plumbline.data.generated.molecules import DRUGS, generated_molecules
from plumbline.data.sources import guacamol
from plumbline.data.sources.guacamol import (
    OBJECTIVES,
    OSIMERTINIB,
    SITAGLIPTIN,
    Atoms,
    Gaussian,
    Isomer,
    MaxGaussian,
    Measured,
    MinGaussian,
    Objective,
    Similarity,
    Thresholded,
    as_is,
    fingerprint,
    geometric_mean,
    parse_formula,
    score,
    score_smiles,
    score_table,
)

PUBLISHED = Path(__file__).resolve().parents[4] / "shared" / "reference" / "guacamol_scores_120.csv"
COLUMNS = {
    "osmb": "osimertinib-mpo",
    "fexo": "fexofenadine-mpo",
    "med1": "median-1",
    "med2": "median-2",
    "adip": "amlodipine-mpo",
    "siga": "sitagliptin-mpo",
    "zale": "zaleplon-mpo",
    "pdop": "perindopril-mpo",
    "rano": "ranolazine-mpo",
}

# A tenth of 120 published molecules, the best of each objective among them, with their published scores in the order of
# `COLUMNS`. They were computed by the benchmark's own code.
SCORES = {
    "COC1=CC=C(C23OC4=CC(OC)=CC(OC)=C4C2(O)C(O)C(C(=O)NOCCO)C3C5=CC=CC=C5)C=C1": (
        *(0.69745238, 0.62474322, 0.061068702, 0.11388079, 0.0080063187),
        *(7.6005615e-15, 2.7924324e-13, 0.10651513, 0.026283959),
    ),
    "CCCN(CCC1=CC=CC(C2=CC=CC=C2)=C1)C(=O)C3OC(C(=O)O)=CC(N)C3NC(C)=O": (
        *(0.59949671, 0.68469633, 0.046221724, 0.11373356, 0.4503301),
        *(4.1912997e-10, 1.0491362e-09, 0.39086798, 0.044476878),
    ),
    "CC1(Br)CC2OC3(Br)C=CC(C)(O)C2(CC1=O)C3(C)C": (
        *(0.0084493427, 0.019322429, 0.14662459, 0.063374739, 0.25712974),
        *(6.2157898e-06, 0.039899744, 0.0048307899, 0.043433059),
    ),
    "CON(C)S(=O)(=O)C1=CC=C2C(=C1)N(CC3=CC=C(C)C=C3)C(=O)C4CCCN24": (
        *(0.17171868, 0.33177345, 0.093352006, 0.1702436, 0.14796105),
        *(0.0022331859, 0.0013918527, 0.3308913, 0.055721679),
    ),
    "CCCC(=O)N1CCC1(C)C(=O)NS(=O)(=O)C2=CC3=C(C=C2C)CCCS3(=O)=O": (
        *(0.65218089, 0.54630412, 0.082504125, 0.10204893, 0.3737725),
        *(3.1141531e-07, 0.00021997646, 0.15311403, 0.011261077),
    ),
    "CC(C=CC1=CC=C(Cl)C=C1)=NOC(C)C(=O)NN": (
        *(0.2992783, 0.34130614, 0.051948052, 0.070278095, 0.0073755912),
        *(0.22222664, 0.038447511, 0.10943753, 0.024594815),
    ),
    "COC1=CC=CC=2C=C(C3=NC4=C(C(=O)N(C)C(=O)N4C)N3C)OC1=2": (
        *(0.561983, 0.40955855, 0.045381677, 0.1665118, 0.14656668),
        *(0.073205359, 0.25404774, 0.0042018957, 0.010257031),
    ),
    "CCC(C)N(CC1=CN=C(NCC(=O)O)N=C1)CC=2C=CSC=2": (
        *(0.26594264, 0.43562782, 0.049968779, 0.075164603, 0.14016221),
        *(0.017146605, 0.062448521, 0.33875374, 0.062562375),
    ),
    "C1CCCCCCCCCCCNC2=CC=CC3=C(C=CC=C23)C(=O)N1CCC4NCCCNCCNCCCNC4C": (
        *(0.020824508, 0.30943606, 0.050392978, 0.10169822, 0.11789529),
        *(0, 0, 0.27583864, 0.53655986),
    ),
    "CCCCCCCCCOCCCC12CC3CC(C1)CC(CCOP(=O)([O-1])OCC[N+1](C)(C)C)(C3)C2": (
        *(0.0025745519, 0.058650533, 0.078081591, 0.044553644, 0.11125748),
        *(0, 0, 0.0062415503, 0.40759385),
    ),
    "NCCC1=CC=C(O)C(O)=C1": (
        *(0.14536889, 0.1758825, 0.017241379, 0.075580899, 0.0068112971),
        *(6.0711161e-06, 1.2007874e-06, 0.064365494, 0.0023415539),
    ),
    "O=C(NCCN1CCCCC1)P(=O)(O)O": (
        *(0.56147419, 0.48182501, 0.060606061, 0.053272669, 0.0042392467),
        *(3.0248502e-06, 0.00014843828, 0.0074773283, 0.0023389158),
    ),
}

# As chemistry has them, so that a slip in a target's SMILES is seen.
FORMULAS = {
    "OSIMERTINIB": "C28H33N7O2",
    "FEXOFENADINE": "C32H39NO4",
    "CAMPHOR": "C10H16O",
    "MENTHOL": "C10H20O",
    "TADALAFIL": "C22H19N3O4",
    "SILDENAFIL": "C22H30N6O4S",
    "AMLODIPINE": "C20H25ClN2O5",
    "SITAGLIPTIN": "C16H15F6N5O",
    "ZALEPLON": "C17H15N5O",
    "PERINDOPRIL": "C19H32N2O5",
    "RANOLAZINE": "C24H33N3O4",
}

KINDS = ("ECFP4", "ECFP6", "FCFP4", "AP")
SIMILARITIES = sorted(
    {measure for objective in OBJECTIVES.values() for measure, _ in objective.parts if isinstance(measure, Similarity)},
    key=repr,
)


def mol(smiles: str) -> Chem.Mol:
    molecule = Chem.MolFromSmiles(smiles)
    assert molecule is not None
    return molecule


def counts(smiles: str, kind: str) -> dict[int, int]:
    return fingerprint(mol(smiles), kind).GetNonzeroElements()


class TestPublishedScores:
    @pytest.mark.parametrize(("place", "name"), enumerate(COLUMNS.values()))
    def test_of_a_dozen_molecules(self, place: int, name: str) -> None:
        expected = [scores[place] for scores in SCORES.values()]
        found = score_smiles(OBJECTIVES[name], list(SCORES))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)

    @pytest.mark.parametrize(("column", "name"), COLUMNS.items())
    def test_of_all_molecules(self, column: str, name: str) -> None:
        """Required: 95% within 1e-3. None is left to explain, for all that RDKit has become years older since."""
        if not PUBLISHED.is_file():
            pytest.skip("needs the published scores, beside the repository in shared/reference")
        table = pd.read_csv(PUBLISHED)
        assert len(table) == 120
        found = score_smiles(OBJECTIVES[name], table["smile"].tolist())
        np.testing.assert_allclose(found, table[column], rtol=0, atol=1e-12)

    def test_they_tell_the_constants_of_the_code_from_those_of_the_paper(self) -> None:
        objective = OBJECTIVES["fexofenadine-mpo"]
        similar, (tpsa, larger), (logp, smaller) = objective.parts
        assert (larger, smaller) == (MaxGaussian(90.0, 10.0), MinGaussian(4.0, 1.0))
        paper = replace(objective, parts=(similar, (tpsa, MaxGaussian(90.0, 2.0)), (logp, MinGaussian(4.0, 2.0))))
        published = np.array([scores[1] for scores in SCORES.values()])
        assert (np.abs(score_smiles(paper, list(SCORES)) - published) > 0.1).sum() >= 6


CLOSE = {
    "osimertinib": OSIMERTINIB,
    "ethyl on the amine": "COc1cc(N(C)CCN(CC)C)c(NC(=O)C=C)cc1Nc1nccc(n1)-c1cn(C)c2ccccc12",
    "crotonamide": "COc1cc(N(C)CCN(C)C)c(NC(=O)C=CC)cc1Nc1nccc(n1)-c1cn(C)c2ccccc12",
    "ethyl on the indole": "COc1cc(N(C)CCN(C)C)c(NC(=O)C=C)cc1Nc1nccc(n1)-c1cn(CC)c2ccccc12",
}


class TestTooSimilar:
    """What no published score shows: those molecules are all too unlike osimertinib to be penalised for likeness."""

    @pytest.mark.parametrize("name", CLOSE)
    def test_likeness_beyond_085_costs(self, name: str) -> None:
        smiles = CLOSE[name]

        def likeness(kind: str) -> float:
            a, b = Counter(counts(smiles, kind)), Counter(counts(OSIMERTINIB, kind))
            return (a & b).total() / (a | b).total()

        polar = rdMolDescriptors.CalcTPSA(mol(smiles))
        fat = Crippen.MolLogP(mol(smiles))  # type: ignore[attr-defined]
        # Four parts: similar, but not too similar, polar, not fat.
        assert likeness("FCFP4") > 0.8
        assert polar < 100
        assert fat > 1
        logarithm = (
            0 - (max(likeness("ECFP6") - 0.85, 0) / 0.1) ** 2 / 2 - ((polar - 100) / 10) ** 2 / 2 - (fat - 1) ** 2 / 2
        )
        assert score_smiles(OBJECTIVES["osimertinib-mpo"], [smiles])[0] == pytest.approx(
            math.exp(logarithm / 4), rel=1e-9
        )

    def test_three_of_them_are_beyond_it_and_one_is_not(self) -> None:
        similarity = Similarity(OSIMERTINIB, "ECFP6")
        found = [Measured(mol(smiles)).value(similarity) > 0.85 for smiles in CLOSE.values()]
        assert found == [True, True, True, False]


class TestFormula:
    @pytest.mark.parametrize(
        ("formula", "expected"),
        [
            ("C11H24", {"C": 11, "H": 24}),
            ("C9H10N2O2PF2Cl", {"C": 9, "H": 10, "N": 2, "O": 2, "P": 1, "F": 2, "Cl": 1}),
            ("CHBr3", {"C": 1, "H": 1, "Br": 3}),
            ("ClBr", {"Cl": 1, "Br": 1}),
            ("C100", {"C": 100}),
        ],
    )
    def test_counts_of_many_digits_and_elements_of_two_letters(self, formula: str, expected: dict[str, int]) -> None:
        assert parse_formula(formula) == expected

    @given(
        st.dictionaries(
            st.sampled_from(["C", "H", "N", "O", "F", "P", "S", "Cl", "Br", "I", "Si"]), st.integers(1, 400)
        )
    )
    def test_what_is_written_is_read(self, atoms: dict[str, int]) -> None:
        text = "".join(element + (str(count) if count > 1 else "") for element, count in atoms.items())
        if atoms:
            assert parse_formula(text) == atoms

    @pytest.mark.parametrize("text", ["", "c6", "6C", "C0", "C06", "C-1", "C6 H6", "CH3CH3", "C6H6+", "(CH)2"])
    def test_what_is_no_formula_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match="is no molecular formula"):
            parse_formula(text)


class TestAtoms:
    @pytest.mark.parametrize(
        "smiles",
        [
            *(
                "C",
                "[H][H]",
                "[2H]C([2H])Cl",
                "[NH4+].[Cl-]",
                "C[N+](C)(C)CC(=O)[O-]",
                "[CH2]C",
                "BrCCBr",
                "",
                "c1cc[nH]c1",
            ),
            *DRUGS.values(),
        ],
    )
    def test_they_are_those_of_the_molecule_with_its_hydrogen_drawn(self, smiles: str) -> None:
        drawn = Counter(atom.GetSymbol() for atom in Chem.AddHs(mol(smiles)).GetAtoms())
        assert +Measured(mol(smiles)).atoms == drawn

    def test_hydrogen_that_is_drawn_already_counts_once(self) -> None:
        assert Measured(Chem.AddHs(mol("CCO"))).atoms == {"C": 2, "H": 6, "O": 1}

    def test_of_an_element(self) -> None:
        measured = Measured(mol("FC(F)(F)CCl"))
        assert [measured.value(Atoms(element)) for element in ("F", "Cl", "C", "H", "Br")] == [3, 1, 2, 2, 0]


class TestIsomer:
    def closeness(self, formula: str, smiles: str) -> float:
        return Measured(mol(smiles)).value(Isomer(formula))

    @pytest.mark.parametrize("smiles", ["CCCO", "CC(C)O", "COCC"])
    def test_isomers_have_one(self, smiles: str) -> None:
        assert self.closeness("C3H8O", smiles) == 1.0

    @pytest.mark.parametrize("smiles", DRUGS.values())
    def test_every_molecule_has_one_for_its_own_formula(self, smiles: str) -> None:
        own = rdMolDescriptors.CalcMolFormula(mol(smiles))
        assert self.closeness(own, smiles) == 1.0
        assert self.closeness(own, f"{smiles}.C") < 1.0

    def test_by_hand(self) -> None:
        # Chlorobenzene for benzene: C right, H one off, Cl counts through the total only, which is right.
        assert self.closeness("C6H6", "Clc1ccccc1") == pytest.approx(math.exp(-1 / 2) ** (1 / 3))
        # Benzene for chlorobenzene: H one off, Cl one off.
        assert self.closeness("C6H5Cl", "c1ccccc1") == pytest.approx(math.exp(-1) ** (1 / 4))
        # Ethane for methane: C one off, H two, all of them three, in units of two.
        assert self.closeness("CH4", "CC") == pytest.approx(math.exp(-(1 + 4 + 9 / 4) / 2) ** (1 / 3))


class TestFingerprints:
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_similarity_is_shared_fragments_over_all_of_either(self, kind: str) -> None:
        molecules = list(DRUGS.values())
        for one, other in pairwise(molecules):
            a, b = Counter(counts(one, kind)), Counter(counts(other, kind))
            expected = (a & b).total() / (a | b).total()
            assert Measured(mol(one)).value(Similarity(other, kind)) == pytest.approx(expected, abs=1e-15)

    @pytest.mark.parametrize("kind", KINDS)
    def test_they_count_and_do_not_fold(self, kind: str) -> None:
        octane = counts("CCCCCCCC", kind)
        assert max(octane.values()) > 1
        assert max(octane) >= 1 << 16
        assert Measured(mol("CCCCCCCCCCCC")).value(Similarity("CCCCCCCC", kind)) < 0.9

    @pytest.mark.parametrize("smiles", ["C" * 14, "c1ccccc1CCCCCCCCCCCCO", DRUGS["imatinib"]])
    def test_atom_pairs_are_at_most_ten_bonds_apart(self, smiles: str) -> None:
        distance = Chem.GetDistanceMatrix(mol(smiles))
        near = np.triu((distance >= 1) & (distance <= 10)).sum()
        assert sum(counts(smiles, "AP").values()) == near
        assert near < len(distance) * (len(distance) - 1) / 2

    @pytest.mark.parametrize(("kind", "radius"), [("ECFP4", 2), ("FCFP4", 2), ("ECFP6", 3)])
    def test_circles_grow_to_half_the_diameter_of_their_name(self, kind: str, radius: int) -> None:
        # All atoms of a ring are alike: one fragment a radius, 0 included, and each as often as there are atoms.
        assert list(counts("C1" + "C" * 18 + "C1", kind).values()) == [20] * (radius + 1)

    def test_features_make_halogens_alike(self) -> None:
        assert counts("Clc1ccccc1", "FCFP4") == counts("Brc1ccccc1", "FCFP4")
        assert counts("Clc1ccccc1", "ECFP4") != counts("Brc1ccccc1", "ECFP4")


class TestModifiers:
    X = st.floats(-1e4, 1e4)
    MU = st.floats(-200, 200)
    SIGMA = st.floats(0.05, 50)

    @given(x=X, y=X, threshold=st.floats(0.05, 1))
    def test_thresholded(self, x: float, y: float, threshold: float) -> None:
        low, high = Thresholded(threshold)(np.array(sorted((x, y))))
        assert 0 <= low <= high <= 1
        inside = np.array([0.0, threshold / 4, threshold, 2 * threshold])
        np.testing.assert_allclose(Thresholded(threshold)(inside), [0, 1 / 4, 1, 1])

    @given(x=X, y=X, mu=MU, sigma=SIGMA)
    def test_gaussians(self, x: float, y: float, mu: float, sigma: float) -> None:
        ends = np.array(sorted((x, y)))
        both, falls, rises = (kind(mu, sigma)(ends) for kind in (Gaussian, MinGaussian, MaxGaussian))
        for values in (both, falls, rises):
            assert ((values >= 0) & (values <= 1)).all()
        assert falls[0] >= falls[1]
        assert rises[0] <= rises[1]
        assert (falls[ends <= mu] == 1).all()
        assert (rises[ends >= mu] == 1).all()
        np.testing.assert_array_equal(falls * rises, both)

    def test_a_gaussian_by_hand(self) -> None:
        x = np.array([1.0, 3.0, 5.0, 7.0, 9.0])
        np.testing.assert_allclose(Gaussian(5.0, 2.0)(x), np.exp([-2, -0.5, 0, -0.5, -2]))
        np.testing.assert_allclose(MinGaussian(5.0, 2.0)(x), np.exp([0, 0, 0, -0.5, -2]))
        np.testing.assert_allclose(MaxGaussian(5.0, 2.0)(x), np.exp([-2, -0.5, 0, 0, 0]))

    @pytest.mark.parametrize(
        "modifier", [as_is, Thresholded(0.8), Gaussian(0.0, 1.0), MinGaussian(0.0, 1.0), MaxGaussian(0.0, 1.0)]
    )
    def test_what_is_not_known_stays_so(self, modifier: Callable[[np.ndarray], np.ndarray]) -> None:
        found = modifier(np.array([0.5, np.nan]))
        assert np.isnan(found).tolist() == [False, True]


class TestGeometricMean:
    PARTS = st.lists(st.floats(0.01, 1), min_size=1, max_size=6)

    @given(PARTS)
    def test_it_is_the_exponential_of_the_mean_logarithm(self, parts: list[float]) -> None:
        found = geometric_mean(np.array(parts)[:, None])
        assert found.shape == (1,)
        assert found[0] == pytest.approx(math.exp(sum(map(math.log, parts)) / len(parts)))
        assert min(parts) - 1e-12 <= found[0] <= max(parts) + 1e-12

    @given(PARTS, st.integers(0, 5))
    def test_a_part_of_zero_makes_it_zero(self, parts: list[float], place: int) -> None:
        parts[place % len(parts)] = 0.0
        assert geometric_mean(np.array(parts)) == 0.0


class TestTargets:
    @pytest.mark.parametrize(("name", "formula"), FORMULAS.items())
    def test_they_are_the_drugs_that_they_are_named_for(self, name: str, formula: str) -> None:
        assert rdMolDescriptors.CalcMolFormula(mol(getattr(guacamol, name))) == formula

    def test_these_are_all(self) -> None:
        assert {measure.target for measure in SIMILARITIES} == {getattr(guacamol, name) for name in FORMULAS}

    @pytest.mark.parametrize("similarity", SIMILARITIES, ids=lambda one: f"{one.kind}-{one.target[:12]}")
    def test_a_target_is_like_itself_however_it_is_written(self, similarity: Similarity) -> None:
        for seed in range(3):
            (written,) = Chem.MolToRandomSmilesVect(mol(similarity.target), 1, randomSeed=seed)
            assert Measured(mol(written)).value(similarity) == 1.0
        assert Measured(mol(DRUGS["warfarin"])).value(similarity) < 0.7

    def test_sitagliptins_own_properties_are_wanted(self) -> None:
        (_, (_, by_logp), (_, by_tpsa), _) = OBJECTIVES["sitagliptin-mpo"].parts
        assert by_logp.mu == pytest.approx(Crippen.MolLogP(mol(SITAGLIPTIN)), abs=1e-9)  # type: ignore[attr-defined]
        assert by_tpsa.mu == pytest.approx(rdMolDescriptors.CalcTPSA(mol(SITAGLIPTIN)), abs=1e-9)


class TestScore:
    @pytest.fixture(scope="class")
    def molecules(self) -> list[str]:
        return generated_molecules(120, 5)

    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_it_is_from_zero_to_one_and_of_each_molecule_alone(self, name: str, molecules: list[str]) -> None:
        found = score_smiles(OBJECTIVES[name], molecules)
        assert found.dtype == np.float64
        assert found.shape == (120,)
        assert ((found >= 0) & (found <= 1)).all()
        assert len(np.unique(found)) > 40
        for place in (0, 57, 119):
            assert score_smiles(OBJECTIVES[name], [molecules[place]])[0] == found[place]
        np.testing.assert_array_equal(score_smiles(OBJECTIVES[name], molecules[::-1]), found[::-1])

    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_how_a_molecule_is_written_makes_no_difference(self, name: str, molecules: list[str]) -> None:
        rewritten = [Chem.MolToRandomSmilesVect(mol(one), 1, randomSeed=3)[0] for one in molecules[:30]]
        np.testing.assert_allclose(
            score_smiles(OBJECTIVES[name], rewritten), score_smiles(OBJECTIVES[name], molecules[:30]), rtol=1e-9
        )

    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_what_is_no_molecule_is_nan_in_its_place(self, name: str) -> None:
        objective = OBJECTIVES[name]
        known = score(objective, [mol("CCO"), mol("c1ccccc1F")])
        np.testing.assert_array_equal(
            score(objective, [None, mol("CCO"), None, mol("c1ccccc1F")]), [np.nan, known[0], np.nan, known[1]]
        )
        np.testing.assert_array_equal(
            score_smiles(objective, ["C1CC", "CCO", "none", "c1ccccc1F"]), [np.nan, known[0], np.nan, known[1]]
        )

    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_of_no_molecules_there_are_no_scores(self, name: str) -> None:
        assert score(OBJECTIVES[name], []).shape == (0,)
        assert score_smiles(OBJECTIVES[name], []).shape == (0,)

    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_a_molecule_without_atoms_is_like_nothing(self, name: str) -> None:
        (found,) = score_smiles(OBJECTIVES[name], [""])
        assert found == 0 or (name == "sitagliptin-mpo" and found < 1e-20)

    def test_rdkit_is_silent_and_speaks_again_afterwards(self, capfd: pytest.CaptureFixture[str]) -> None:
        score_smiles(OBJECTIVES["median-1"], ["C1CC", "F(C)(C)C"])
        assert capfd.readouterr() == ("", "")
        assert Chem.MolFromSmiles("C1CC") is None
        assert "C1CC" in capfd.readouterr().err

    def test_molecules_are_left_as_they_are(self) -> None:
        molecules = [mol(smiles) for smiles in DRUGS.values()]
        before = [molecule.ToBinary() for molecule in molecules]
        for objective in OBJECTIVES.values():
            score(objective, molecules)
        assert [molecule.ToBinary() for molecule in molecules] == before

    def test_a_molecule_that_was_not_sanitised_is_rdkits_error(self) -> None:
        with pytest.raises(RuntimeError):
            score(OBJECTIVES["median-1"], [Chem.MolFromSmiles("CC(C)C1CCC(C)CC1O", sanitize=False)])

    def test_parts_are_combined_as_the_objective_says(self) -> None:
        parts = ((Atoms("F"), Thresholded(4.0)), (Atoms("Cl"), as_is))
        molecules = [mol("FCF"), mol("FCCl"), mol("FC(F)(F)C(F)(F)Cl")]
        geometric = Objective("g", "G", parts)
        np.testing.assert_allclose(score(geometric, molecules), [0, 0.5, 1])
        arithmetic = replace(geometric, combine=lambda values: values.mean(axis=0))
        np.testing.assert_allclose(score(arithmetic, molecules), [0.25, 0.625, 1])

    def test_each_kind_of_fingerprint_is_computed_once(
        self, molecules: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        score_table(molecules[:1])  # those of the targets are kept
        computed: list[str] = []

        def count(molecule: Chem.Mol, kind: guacamol.Fingerprint) -> object:
            computed.append(kind)
            return fingerprint(molecule, kind)

        monkeypatch.setattr(guacamol, "fingerprint", count)
        score_smiles(OBJECTIVES["median-2"], molecules[:10])
        assert Counter(computed) == {"ECFP6": 10}
        computed.clear()
        score_table(molecules[:10])
        assert Counter(computed) == dict.fromkeys(KINDS, 10)


class TestRegistry:
    def test_names(self) -> None:
        assert set(OBJECTIVES) == set(COLUMNS.values())
        assert all(objective.name == name for name, objective in OBJECTIVES.items())
        assert len({objective.title for objective in OBJECTIVES.values()}) == 9


class TestTable:
    SMILES = ("CCO", "C1CC", *DRUGS.values())

    def test_a_column_an_objective(self) -> None:
        table = score_table(self.SMILES)
        assert table.columns.tolist() == list(OBJECTIVES)
        for name, objective in OBJECTIVES.items():
            np.testing.assert_array_equal(table[name], score_smiles(objective, self.SMILES))
        assert table.iloc[1].isna().all()

    @pytest.mark.slow
    def test_blocks_and_jobs_make_no_difference(self) -> None:
        alone = score_table(self.SMILES)
        pd.testing.assert_frame_equal(score_table(self.SMILES, block=7), alone, check_exact=True)
        pd.testing.assert_frame_equal(score_table(self.SMILES, jobs=2, block=20), alone, check_exact=True)

    def test_nothing_in_nothing_out(self) -> None:
        table = score_table([])
        assert table.empty
        assert table.columns.tolist() == list(OBJECTIVES)
