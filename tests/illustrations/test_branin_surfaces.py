"""Surfaces of acquisition functions on Branin."""

import numpy as np
import pytest
import torch
from illustration_cases import build, of

from plumbline.illustrations import branin_surfaces
from plumbline.methods.conformal.search import LangevinOptions


class TestBraninSurfaces:
    @pytest.mark.filterwarnings("ignore::UserWarning")
    def test_data_lie_in_the_corner_and_surfaces_are_in_their_units(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from botorch.test_functions import Branin

        monkeypatch.setattr(branin_surfaces, "CHAINS", LangevinOptions(steps=6, burn_in=2))
        frame = build(
            "branin-surfaces",
            points=5,
            search={"restarts": 1, "raw_samples": 8, "maxiter": 5},
        )
        data = of(frame, "all", "data")
        assert (data[["x", "x2"]] >= 0.5).all(axis=None)
        assert of(frame, "all", "alpha")["value"].item() == pytest.approx(8**-0.5)
        low, width = torch.tensor([-5.0, 0.0]).double(), torch.tensor([15.0, 15.0]).double()
        branin = Branin(negate=True)
        seen = branin(low + width * torch.tensor(data[["x", "x2"]].to_numpy()))
        surface = of(frame, "f", "surface")
        values = branin(low + width * torch.tensor(surface[["x", "x2"]].to_numpy()))
        np.testing.assert_allclose(surface["value"], (values - seen.mean()) / seen.std())
        weights = of(frame, "weight", "surface")["value"].to_numpy()
        assert ((weights > 0) & (weights < 1)).all()
        np.testing.assert_allclose(of(frame, "ratio", "surface")["value"], 8 * weights / (1 - weights))
        for panel in ("ucb", "cucb"):
            assert of(frame, panel, "query")[["x", "x2"]].iloc[0].between(0, 1).all()
