"""Seeds in lockstep on a GPU and on a core: what a seed's round takes, by how many there are."""

from time import perf_counter

import pytest
import torch
from test_sparse_rounds import BOUNDS, Q, data, value

from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Domain, build_method
from plumbline.spaces.box import Box


def seconds(name, device, seeds, rounds=4):
    """Return the least wall seconds of a round and seed of some rounds after the first, in a trust region."""
    methods = [build_method("trust-region", {"base": name}, Domain(Box(BOUNDS))) for _ in range(seeds)]
    histories, taken = [data(500)] * seeds, []
    for number in range(rounds):
        streams = [torch.Generator().manual_seed(100 * number + seed) for seed in range(seeds)]
        questions = [
            AskRequest(method, history, Q, stream, device)
            for method, history, stream in zip(methods, histories, streams, strict=True)
        ]
        started = perf_counter()
        proposals = type(methods[0]).ask_many(questions)
        taken.append((perf_counter() - started) / seeds)
        for seed, proposal in enumerate(proposals):
            methods[seed].tell(proposal.X, value(proposal.X))
            histories[seed] = histories[seed].join(proposal.X, value(proposal.X))
    return min(taken[1:])


@pytest.mark.parametrize("seeds", [1, 8, 20])
@pytest.mark.parametrize("name", ["elbo-ei", "eulbo-ei"])
def test_seeds_in_lockstep_on_a_gpu(benchmark, gpu, name, seeds):
    """Nothing is required but that more seeds do not cost more each."""
    here, there = (seconds(name, device, seeds) for device in (torch.device("cpu"), gpu))
    benchmark.extra_info["seconds a seed, of a core's"] = there / here
    print(f"\n{name}, {seeds} seeds: {there:.2f} s a round and seed on the GPU, {here:.2f} on a core")
    benchmark.pedantic(lambda: None)
    assert seeds == 1 or there < 1.2 * seconds(name, gpu, 1)
