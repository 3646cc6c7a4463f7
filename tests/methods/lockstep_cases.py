"""What lockstep must not change."""

import torch

from plumbline.methods.base import Proposal


def assert_same_proposal(joint: Proposal, alone: Proposal) -> None:
    """Points, notes and ends of searches are the same, to the last bit."""
    assert torch.equal(joint.X, alone.X)
    assert joint.notes == alone.notes
    assert (joint.ends is None) == (alone.ends is None)
    if joint.ends is not None and alone.ends is not None:
        assert torch.equal(joint.ends, alone.ends)
