"""Rounds of one trial, or of several in lockstep, where an error of one ends that trial alone."""

from collections.abc import Sequence
from contextlib import suppress
from time import perf_counter

import torch

from plumbline.core.culprits import plugin_code
from plumbline.core.errors import PlumblineError
from plumbline.methods.ask import AskRequest
from plumbline.methods.base import Method, Proposal
from plumbline.trials.log import Step
from plumbline.trials.session import TrialSession
from plumbline.trials.trial import Trial

GROUP_HALVED = "GroupHalved"
"""The event of a round whose requests exceeded the memory of a GPU."""

Sessions = Sequence[tuple[TrialSession, Trial]]
"""Sessions with their open trials."""


def run_sessions(sessions: Sequence[TrialSession]) -> None:
    """Run trials to their ends in lockstep."""
    for session in sessions:
        session.open()
    size = len(sessions)
    while running := [session for session in sessions if not session.over]:
        ready = []
        for session in running:
            trial = session.trial
            assert trial is not None
            with session.guarded():
                if trial.done:
                    session.finish()
                elif trial.beginning:
                    session.keep(*session.begin(trial))
                else:
                    ready.append((session, trial))
        size = run_rounds(ready, size)


def run_rounds(sessions: Sessions, size: int, events: Sequence[str] = (), again: bool = False) -> int:
    """Run a round of each session, at most `size` in lockstep, and return the size for later rounds."""
    while sessions:
        part, sessions = sessions[:size], sessions[size:]
        size = run_round(part, size, events, again)
    return size


def run_round(sessions: Sessions, size: int, events: Sequence[str] = (), again: bool = False) -> int:
    """Ask for, evaluate and log one round of each session.

    Args:
        sessions: sessions with their trials.
        size: greatest number of requests in one `ask_many`.
        events: events of this round so far, besides those of the requests.
        again: whether an earlier attempt at this round failed.

    Returns:
        The size for later rounds: `size`, or less if it exceeded the memory of a GPU.

    Raises:
        torch.cuda.OutOfMemoryError: a single request exceeds the memory.
    """
    started = perf_counter()
    requests, ready = [], []
    for session, trial in sessions:
        with session.guarded():
            requests.append(trial.same_request() if again else trial.request())
            ready.append((session, trial))
    sessions = ready
    if not sessions:
        return size
    method = sessions[0][1].method
    proposals = _proposals(type(method), sessions[0][0].spec.method.name, requests)
    # Outside the `except` block no traceback keeps tensors of the failed computation in memory.
    if isinstance(proposals, torch.cuda.OutOfMemoryError):
        if len(sessions) == 1:
            raise proposals
        torch.cuda.empty_cache()
        return run_rounds(sessions, (len(sessions) + 1) // 2, [*events, GROUP_HALVED], again=True)
    if isinstance(proposals, BaseException):
        if len(sessions) > 1:  # one by one, so that only the trials at fault fail
            run_rounds(sessions, 1, events, again=True)
            return size
        proposals = [proposals]
    share = (perf_counter() - started) / len(sessions)
    for (session, trial), request, proposal in zip(sessions, requests, proposals, strict=True):
        with session.guarded():
            if isinstance(proposal, BaseException):
                raise proposal
            session.keep(*_step(trial, request, proposal, events, share))
    return size


def _proposals(
    method: type[Method], name: str, requests: Sequence[AskRequest]
) -> Sequence[Proposal | BaseException] | BaseException:
    """Return the proposals for the requests, or an error that concerns all of them."""
    try:
        with plugin_code(f"method {name!r}"):
            proposals = method.ask_many(requests)
            if not isinstance(proposals, list) or len(proposals) != len(requests):
                raise PlumblineError(f"method {name!r}: `ask_many` must return a list of {len(requests)} proposals")
            return [_charged(one, name) for one in proposals]
    except torch.cuda.OutOfMemoryError as error:
        return error if len(requests) == 1 else error.with_traceback(None)
    except BaseException as error:  # whether it ends a trial or the job is judged where a trial is at hand
        return error


def _charged(proposal: Proposal | Exception, name: str) -> Proposal | Exception:
    """Return a proposal as it is, and an error in its place as the method's."""
    if isinstance(proposal, Exception):
        with suppress(Exception), plugin_code(f"method {name!r}"):
            raise proposal
    return proposal


def _step(
    trial: Trial, request: AskRequest, proposal: Proposal, events: Sequence[str], asking: float
) -> tuple[Step, float]:
    """Return the step of a proposal, and its total seconds, including `asking` for the request."""
    started = perf_counter()
    request.events = sorted({*request.events, *events})
    step = trial.answer(request, proposal)
    return step, asking + perf_counter() - started
