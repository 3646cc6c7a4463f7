"""The harness beside peers, with contenders that are made up: none of the libraries needs to be there."""

import os
import subprocess
import sys
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from peers import command, libraries, regret, rounds
from peers.ledger import Ledger
from peers.libraries import Library, installed, peer
from peers.ours import our_method
from peers.protocol import Contender, Instance, draw_instance, refuse_unsuitable
from peers.regret import compared, keep_regrets, optimise
from peers.rounds import Timing, interleave, keep_rounds, last_timings, rounds_table

import plumbline as pb
from plumbline.core.errors import PlumblineError
from plumbline.methods.base import Domain
from plumbline.problems.build import problem_of
from plumbline.problems.synthetic import Branin
from plumbline.spaces.box import Box


def on_a_line(problem="line", seed=0, n=2) -> Instance:
    """The identity on [0, 1], of which the initial design has the lower half."""
    X = np.linspace(0, 0.5, n)[:, None]
    domain = Domain(Box(torch.tensor([[0.0], [1.0]], dtype=torch.float64)))
    return Instance(problem, seed, problem, domain, 1.0, lambda x: float(x[0]), X, X[:, 0])


class Clock:
    """Time that passes when somebody says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Scripted:
    """A peer whose queries are given; it writes down what happens."""

    def __init__(self, events, name, queries, work=lambda: None):
        self.events, self.name, self.queries, self.work = events, name, iter(queries), work

    def ask(self):
        self.events.append(("ask", self.name))
        self.work()
        return np.array([next(self.queries)])

    def tell(self, x, y):
        self.events.append(("tell", self.name, float(x[0]), y))


def scripted(name, queries=(0.6, 0.7, 0.8), events=None, work=lambda: None, versions="1"):
    events = [] if events is None else events
    return Contender(name, versions, lambda instance: Scripted(events, name, queries, work))


def failing(name):
    def fail():
        raise ArithmeticError("no Cholesky factor")

    return scripted(name, work=fail)


# A round on the same data.


def test_contenders_are_timed_in_turn():
    clock, events = Clock(), []
    costs = {"a": count(1), "b": count(2, 2)}  # a round is the first of each a warm-up

    def works(name):
        def work():
            clock.now += next(costs[name])

        return work

    pair = [scripted(name, events=events, work=works(name)) for name in "ab"]
    a, b = interleave(pair, on_a_line(), 5, clock)
    assert [name for what, name, *_ in events if what == "ask"] == ["a", "b"] * 6
    assert (a.seconds, b.seconds) == ((2, 3, 4, 5, 6), (4, 6, 8, 10, 12))
    assert a.over(b) == (0.5, 0.5, 0.5)
    assert b.over(a).median == 2
    assert (a.n, a.median) == (2, 4)


def test_a_ratio_has_the_range_of_its_sweeps():
    a = Timing("r", "line", 2, "a", "1", (1.0, 2.0, 3.0, 4.0, 50.0))
    b = Timing("r", "line", 2, "b", "1", (1.0, 4.0, 4.0, 4.0, 5.0))
    assert a.over(b) == (1.0, 0.5, 10.0)


def test_a_ratio_of_two_runs_is_refused():
    (a,), (b,) = (interleave([scripted(name)], on_a_line(), 5) for name in "ab")
    with pytest.raises(PlumblineError, match="a and b were not measured in turn"):
        a.over(b)


def test_a_ratio_of_two_settings_is_refused():
    a, b = (Timing("r", "line", n, "a", "1", (1.0,)) for n in (2, 3))
    with pytest.raises(PlumblineError, match=r"line with 2 points .* line with 3 points"):
        a.over(b)


def test_a_median_of_few_is_refused():
    with pytest.raises(PlumblineError, match="4 sweeps"):
        interleave([scripted("a")], on_a_line(), 4)


def test_a_contender_that_fails_is_named_and_left_out(capsys):
    found = interleave([failing("bad"), scripted("good")], on_a_line(), 5)
    assert [one.method for one in found] == ["good"]
    assert "bad failed on line" in capsys.readouterr().err


def test_timings_on_file_are_those_of_the_last_run(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "draw_instance", on_a_line)
    path, pair = tmp_path / "rounds.csv", [scripted("a"), scripted("b")]
    first = keep_rounds(path, pair, "line", 3)
    other = keep_rounds(path, pair, "line", 4)
    last = keep_rounds(path, pair, "line", 3)
    found = last_timings(path)
    assert [(one.run, one.n) for one in found] == [(one.run, one.n) for one in (*other, *last)]
    np.testing.assert_allclose([one.seconds for one in found], [one.seconds for one in (*other, *last)], atol=1e-6)
    assert first[0].run not in path.read_text().splitlines()[-1]


def test_the_table_of_rounds_has_a_share_of_each_contender():
    times = {"ours": (1.0,) * 5, "theirs": (4.0,) * 5}
    timings = [Timing("r", "line", 2, name, "1", seconds) for name, seconds in times.items()]
    elsewhere = Timing("s", "line", 3, "theirs", "1", (1.0,) * 5)
    table = rounds_table([*timings, elsewhere], ["ours"])
    assert table["ours / it"].tolist() == ["1 (1 to 1)", "0.25 (0.25 to 0.25)", "–"]


# Regret at the end.


def test_regret_is_that_of_the_best_evaluation():
    clock, events = Clock(), []

    def work():
        clock.now += 2

    contender = scripted("a", (0.6, 0.9, 0.2), events, work)
    result = optimise(contender, on_a_line(), 5, clock)
    assert result.regret == pytest.approx(0.1)
    assert result.cpu_s == 6
    told = [event[2:] for event in events if event[0] == "tell"]
    assert told == [(x, x) for x in (0.0, 0.5, 0.6, 0.9, 0.2)]


def test_a_query_outside_of_the_box_is_refused():
    with pytest.raises(PlumblineError, match="outside of its box"):
        optimise(scripted("a", [1.1]), on_a_line(), 3)
    assert optimise(scripted("a", [1 + 1e-12]), on_a_line(), 3).regret == 0


def kept(path, contenders, seeds=range(2), problems=("one", "two")):
    keep_regrets(path, contenders, problems, seeds, 4, 2, on_a_line)
    return Ledger(path, regret.COLUMNS).rows()


def test_a_stopped_run_goes_on_and_repeats_no_row(tmp_path):
    path, asks = tmp_path / "regret.csv", count()

    def stop():
        if next(asks) == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept(path, [scripted("a", work=stop)])
    assert len(Ledger(path, regret.COLUMNS).rows()) == 3
    events = []
    rows = kept(path, [scripted("a", events=events)])
    assert rows[["problem", "seed"]].to_numpy().tolist() == [["one", 0], ["two", 0], ["one", 1], ["two", 1]]
    assert sum(event[0] == "ask" for event in events) == 3  # one to warm up, two rounds
    again = []
    pd.testing.assert_frame_equal(kept(path, [scripted("a", events=again)]), rows)
    assert not again


def test_another_version_is_another_row_and_takes_the_place_of_the_first(tmp_path):
    path = tmp_path / "regret.csv"
    kept(path, [scripted("a", (0.6, 0.7))])
    rows = kept(path, [scripted("a", (0.8, 0.9), versions="2")])
    assert len(rows) == 8
    assert regret.current(rows)["regret"].unique() == pytest.approx([0.1])


def test_a_run_that_fails_leaves_no_row_and_is_tried_again(tmp_path, capsys):
    path = tmp_path / "regret.csv"
    assert kept(path, [failing("a"), scripted("b")])["method"].unique().tolist() == ["b"]
    assert "a failed on two, seed 1: ArithmeticError" in capsys.readouterr().err
    assert len(kept(path, [scripted("a"), scripted("b")])) == 8


def of(method, regrets, problem="p"):
    return [(problem, method, seed, 60, value, 1.0, "1") for seed, value in regrets.items()]


def test_comparisons_are_paired_by_seed():
    peer = {seed: 10.0**-seed for seed in range(6)}
    ours = {seed: value / 10 for seed, value in peer.items()} | {9: 1e9}
    rows = pd.DataFrame([*of("ours", ours), *of("peer", peer)], columns=list(regret.COLUMNS))
    (found,) = compared(rows, ["ours"], ["peer"], 60)
    assert found[:4] == ("p", "ours", "peer", 6)
    assert found[4:7] == pytest.approx((-1, -1, -1))
    assert found.p == pytest.approx(2 * 0.5**6)
    assert compared(rows, ["ours"], ["peer"], 30) == []


def test_regrets_below_the_floor_are_alike():
    rows = [*of("ours", {0: 0.0, 1: 1e-12, 2: -1e-13}), *of("peer", {0: 1e-11, 1: 1e-10, 2: 0.0})]
    (found,) = compared(pd.DataFrame(rows, columns=list(regret.COLUMNS)), ["ours"], ["peer"], 60)
    assert (found.median, found.p) == (0, 1)


# Files.


def test_a_row_that_was_cut_off_is_dropped(tmp_path):
    ledger = Ledger(tmp_path / "rows.csv", {"name": str, "value": float})
    ledger.append({"name": "a, b", "value": 0.1 + 0.2})
    with ledger.path.open("a") as file:
        file.write("c,4")
    assert ledger.rows()["value"].tolist() == [0.1 + 0.2]
    ledger.append({"name": "d", "value": 5})
    assert ledger.rows()["name"].tolist() == ["a, b", "d"]


def test_a_file_with_other_columns_is_refused(tmp_path):
    Ledger(tmp_path / "rows.csv", {"name": str, "value": float}).append({"name": "a", "value": 1})
    other = Ledger(tmp_path / "rows.csv", {"name": str, "weight": float})
    for use in (other.rows, lambda: other.append({"name": "b", "weight": 1})):
        with pytest.raises(PlumblineError, match="move it away"):
            use()


# Problems, methods and libraries.


@pytest.mark.slow
@pytest.mark.parametrize("method", ["ei", "trust-region"])
def test_our_methods_do_what_trials_do(tmp_path, method):
    """The same initial design and queries as `pb.run` on the same seed, to the last digit."""
    entry = {"method": method} if method == "ei" else {"method_class": method, "options": {"base": "ei"}}
    name = method if method == "ei" else f"{method}:base=ei"
    there = pb.run(**entry, problem="branin", rounds=3, initial=4, design="sobol", seeds=[3], store=tmp_path)
    instance = draw_instance("branin", 3, 4)
    peer = our_method(name).start(instance)
    X = list(instance.X)
    for _ in range(3):
        X.append(peer.ask())
        peer.tell(X[-1], instance.value(X[-1]))
    np.testing.assert_array_equal(np.array(X), there[["x1", "x2"]].to_numpy())
    np.testing.assert_array_equal([instance.value(x) for x in X], there["y"])


def test_the_version_of_our_method_changes_with_its_options():
    versions = [our_method(name).versions for name in ("logei", "logei:model.kernel=rbf", "logei:model.kernel=rbf")]
    assert versions[0] != versions[1] == versions[2]


def test_an_unknown_method_is_refused():
    with pytest.raises(PlumblineError, match="logey"):
        our_method("logey")


@pytest.mark.parametrize("problem", regret.PROBLEMS)
def test_problems_are_noise_free_and_have_an_optimum(problem):
    instance = draw_instance(problem, 0, 3)
    assert 2 <= instance.bounds.shape[1] <= 10
    assert np.all(instance.y < instance.optimum)
    assert instance.value(instance.X[1]) == instance.y[1]


def test_a_noisy_problem_is_refused():
    with pytest.raises(PlumblineError, match="noise-free"):
        refuse_unsuitable(problem_of(Branin(noise_std=0.1, negate=True)), "branin")


@pytest.mark.slow
@pytest.mark.parametrize("library", libraries.LIBRARIES)
def test_libraries_ask_in_the_box_and_again_the_same(library):
    found, _ = installed(libraries.LIBRARIES, [library])
    if not found:
        pytest.skip(f"{library} is not installed: {libraries.INSTALL}")
    instance = draw_instance("branin", 0, 12)
    runs = []
    for _ in range(2):
        peer, X = found[0].start(instance), []
        for _ in range(2):
            X.append(instance.inside(peer.ask()))
            peer.tell(X[-1], instance.value(X[-1]))
        runs.append(X)
    np.testing.assert_array_equal(*runs)
    assert not np.array_equal(*runs[0])


def test_libraries_that_are_not_installed_are_named():
    some = {
        "there": Library(peer("botorch-loop"), ("torch",)),
        "absent": Library(peer("botorch-loop"), ("torch", "no-such-distribution")),
    }
    found, missing = installed(some, ["absent", "there"])
    assert ([one.name for one in found], missing) == (["there"], ["absent"])
    assert found[0].versions.startswith("torch ")
    with pytest.raises(PlumblineError, match="did you mean 'there'"):
        installed(some, ["their"])


# The command.


def test_the_command_prints_and_keeps_the_tables(tmp_path, monkeypatch, capsys):
    some = {
        "botorch": Library(lambda instance: Scripted([], "botorch", (0.6, 0.7)), ("torch",)),
        "absent": Library(peer("botorch-loop"), ("no-such-distribution",)),
    }
    monkeypatch.setattr(command, "LIBRARIES", some)
    monkeypatch.setattr(command, "our_method", lambda name: scripted(name, (0.8, 0.9)))
    monkeypatch.setattr(rounds, "draw_instance", on_a_line)
    monkeypatch.setattr(command, "keep_regrets", partial(keep_regrets, initial=2, draw=on_a_line))
    what = "--methods mine --peers botorch absent --sizes 20 --rounds line"
    how_long = "--problems line --seeds 2 --evaluations 4"
    command.main([*what.split(), *how_long.split(), "--folder", str(tmp_path)])
    printed = capsys.readouterr().out
    assert (tmp_path / "table.md").read_text() == printed[:-1]
    assert f"Not installed: absent. `{libraries.INSTALL}` installs them." in printed
    (call,) = command.calls_table(Ledger(tmp_path / "calls.csv", command.CALLS).rows()).to_dict("records")
    assert call["cores"] == os.cpu_count()
    assert all(len(call[f"load at the {end}"].split()) == 3 for end in ("start", "end"))
    assert "| load at the start |" in printed
    assert "| line | mine | botorch | 2 | -0.4771 |" in printed
    assert "| line | 20 | botorch |" in printed
    assert "* mine: 1" in printed


def test_a_call_that_was_killed_has_no_end(tmp_path):
    path = tmp_path / "calls.csv"
    with pytest.raises(KeyboardInterrupt), command.on_record(path, "first"):
        raise KeyboardInterrupt
    with command.on_record(path, "second"):
        pass
    calls = command.calls_table(Ledger(path, command.CALLS).rows())
    assert calls["asked"].tolist() == ["first", "second"]
    assert calls["when at the end"].eq("–").tolist() == [True, False]


def test_a_mistake_is_one_line(tmp_path):
    with pytest.raises(SystemExit, match=r"error: .*logey"):
        command.main(["--methods", "logey", "--folder", str(tmp_path)])


@pytest.mark.slow
def test_the_command_computes_on_one_thread():
    pools = "{torch.get_num_threads(), *(pool['num_threads'] for pool in threadpool_info())}"
    code = f"import peers.__main__, torch; from threadpoolctl import threadpool_info; print({pools})"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    given = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{1}"
