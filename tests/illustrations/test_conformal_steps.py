"""The steps to a conformal set, against direct computations."""

import numpy as np
import pandas as pd
import pytest
from illustration_cases import build, in_union, of


class TestConformalSteps:
    @pytest.mark.parametrize("alpha", [0.15, 0.25, 0.6])
    def test_accepted_guesses_are_those_in_the_exact_set(self, alpha: float) -> None:
        frame = build("conformal-steps", alpha=alpha)
        exact = of(frame, "set", "set")
        assert in_union(of(frame, "set", "accepted")["x"].to_numpy(), exact).all()
        assert not in_union(of(frame, "set", "rejected")["x"].to_numpy(), exact).any()

    def test_weights_sum_to_one_and_the_last_partial_sum_is_that_of_the_guess(self) -> None:
        frame = build("conformal-steps", guess=1.0, guesses=9)  # one of the guesses is the guess
        weights = frame[frame["panel"] == "weights"]
        assert weights["value"].sum() == pytest.approx(1.0)
        sums = of(frame, "sums", "sum")["value"].to_numpy()
        kept = weights[weights["series"] != "better"]["value"].sum()
        assert sums[-1] == pytest.approx(kept)
        many = pd.concat([of(frame, "set", "accepted"), of(frame, "set", "rejected")])
        same = np.isclose(many["x"], of(frame, "set", "guess")["x"].item())
        assert many["value"][same].item() == pytest.approx(kept)

    def test_what_is_better_scores_better(self) -> None:
        frame = build("conformal-steps")
        guess = of(frame, "scores", "guess")["value"].item()
        assert (of(frame, "scores", "better")["value"] > guess).all()
        assert (of(frame, "scores", "kept")["value"] <= guess).all()
        assert sorted(frame[frame["panel"] == "scores"]["x"]) == list(range(16))

    def test_a_label_far_away_is_accepted_where_the_point_outweighs_alpha(self) -> None:
        frame = build("conformal-steps", alpha=0.05)
        (row,) = of(frame, "set", "set").itertuples()
        assert (row.low, row.high) == (-np.inf, np.inf)
        assert frame[(frame["panel"] == "set") & (frame["series"] == "rejected")].empty
