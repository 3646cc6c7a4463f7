"""Bands of conformal sets."""

import numpy as np
import torch
from illustration_cases import build, of

from plumbline.illustrations.line import chirp


class TestConformalBands:
    def test_candidate_labels_follow_the_posterior(self) -> None:
        frame = build("conformal-bands", candidates=400, candidate_points=3, points=3)
        drawn = of(frame, "candidates", "label").groupby("x")["value"]
        credible = of(frame, "credible", "credible").set_index("x")
        np.testing.assert_allclose(drawn.mean(), credible["value"], atol=0.2)
        share = [((labels > credible["low"][x]) & (labels < credible["high"][x])).mean() for x, labels in drawn]
        np.testing.assert_allclose(share, 0.81, atol=0.07)

    def test_the_truth_is_the_chirp_and_data_lie_about_it(self) -> None:
        frame = build("conformal-bands", noise_std=0.01)
        data = of(frame, "all", "data")
        assert len(data) == 27
        np.testing.assert_allclose(data["value"], chirp(torch.tensor(data["x"].to_numpy())), atol=0.05)
        assert (data["x"] < 0).mean() > 0.5, "dense on the left"

    def test_more_confidence_makes_larger_sets(self) -> None:
        small, large = (build("conformal-bands", alpha=alpha, points=41) for alpha in (0.4, 0.1))
        widths = [(of(f, "conformal", "set")["high"] - of(f, "conformal", "set")["low"]).sum() for f in (small, large)]
        assert widths[0] < widths[1]
