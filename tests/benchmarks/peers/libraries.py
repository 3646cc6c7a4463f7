"""Public libraries as contenders, with the settings that they have by default unless it says otherwise.

Each adapter imports its library when it is built. Libraries that fit their model when they are told a value are told
late, so that all work of a round is in `ask`.
"""

import logging
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch

from peers.protocol import Array, Contender, Instance, Peer
from plumbline.core.errors import unknown

INSTALL = "python -m pip install -r envs/peers.lock"
"""What installs them, beside what envs/requirements.lock has."""


class BoTorchPeer:
    """BoTorch's own loop: `SingleTaskGP` with its defaults, log EI, 10 starts out of 256 points."""

    def __init__(self, instance: Instance) -> None:
        self.bounds = torch.from_numpy(instance.bounds)
        self.X: list[Array] = []
        self.y: list[float] = []

    def ask(self) -> Array:
        """Fit the model and maximise log EI."""
        from botorch.acquisition import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.transforms import Normalize
        from botorch.optim import optimize_acqf
        from gpytorch import ExactMarginalLogLikelihood

        X, Y = torch.from_numpy(np.array(self.X)), torch.tensor(self.y, dtype=torch.float64).unsqueeze(-1)
        model = SingleTaskGP(X, Y, input_transform=Normalize(X.shape[-1], bounds=self.bounds))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, Y.max())
        x, _ = optimize_acqf(acquisition, self.bounds, q=1, num_restarts=10, raw_samples=256)
        return x[0].numpy()

    def tell(self, x: Array, y: float) -> None:
        """Keep the value."""
        self.X.append(x)
        self.y.append(y)


def names(instance: Instance) -> list[str]:
    """Return names for the inputs, for libraries that want some."""
    return [f"x{i}" for i in range(instance.bounds.shape[1])]


class OptunaPeer:
    """Optuna's `GPSampler`."""

    def __init__(self, instance: Instance) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.box = {
            name: optuna.distributions.FloatDistribution(*side)
            for name, side in zip(names(instance), instance.bounds.T.tolist(), strict=True)
        }
        sampler = optuna.samplers.GPSampler(seed=instance.seed)
        self.study = optuna.create_study(direction="maximize", sampler=sampler)
        self.asked: Any = None

    def ask(self) -> Array:
        """Ask the study for a trial."""
        self.asked = self.study.ask(self.box)
        return np.array([self.asked.params[name] for name in self.box])

    def tell(self, x: Array, y: float) -> None:
        """Finish the trial that was asked for, else add one."""
        import optuna

        if self.asked is None:
            parameters = dict(zip(self.box, x.tolist(), strict=True))
            self.study.add_trial(optuna.trial.create_trial(params=parameters, distributions=dict(self.box), value=y))
        else:
            self.study.tell(self.asked, y)
            self.asked = None


class ScikitOptimizePeer:
    """What `gp_minimize` of scikit-optimize runs, with EI in place of its portfolio of acquisition functions."""

    def __init__(self, instance: Instance) -> None:
        from skopt import Optimizer
        from skopt.utils import cook_estimator, normalize_dimensions

        space = normalize_dimensions([tuple(side) for side in instance.bounds.T.tolist()])
        gp = cook_estimator("GP", space=space, random_state=instance.seed, noise="gaussian")
        search = {"n_points": 10_000, "n_restarts_optimizer": 5}
        self.optimizer = Optimizer(
            space,
            gp,
            n_initial_points=0,
            acq_func="EI",
            acq_optimizer="lbfgs",
            acq_optimizer_kwargs=search,
            random_state=instance.seed,
        )
        self.untold: list[tuple[list[float], float]] = []

    def ask(self) -> Array:
        """Tell what is new, which fits the model, and ask."""
        X, cost = zip(*self.untold, strict=True)
        self.optimizer.tell(list(X), list(cost))
        self.untold.clear()
        return np.array(self.optimizer.ask())

    def tell(self, x: Array, y: float) -> None:
        """Keep the value, to be minimised, for the next round."""
        self.untold.append((x.tolist(), -y))


class BayesianOptimizationPeer:
    """The package bayesian-optimization, with its UCB."""

    def __init__(self, instance: Instance) -> None:
        from bayes_opt import BayesianOptimization

        self.box = dict(zip(names(instance), map(tuple, instance.bounds.T.tolist()), strict=True))
        self.optimizer = BayesianOptimization(
            None, self.box, random_state=instance.seed, verbose=0, allow_duplicate_points=True
        )

    def ask(self) -> Array:
        """Fit the model and maximise UCB."""
        found = self.optimizer.suggest()
        return np.array([found[name] for name in self.box])

    def tell(self, x: Array, y: float) -> None:
        """Register the value."""
        self.optimizer.register(dict(zip(self.box, x.tolist(), strict=True)), y)


class AxPeer:
    """Ax's client with the strategy `fast`, its default, and no initial points of its own."""

    def __init__(self, instance: Instance) -> None:
        from ax.api.client import Client
        from ax.api.configs import RangeParameterConfig

        for handler in logging.getLogger("ax").handlers:
            handler.setLevel(logging.ERROR)
        self.names = names(instance)
        self.client = Client(random_seed=instance.seed)
        self.client.configure_experiment(
            parameters=[
                RangeParameterConfig(name=name, bounds=tuple(side), parameter_type="float")
                for name, side in zip(self.names, instance.bounds.T.tolist(), strict=True)
            ]
        )
        self.client.configure_optimization(objective="y")
        self.client.configure_generation_strategy(method="fast", initialization_budget=0, initialize_with_center=False)
        self.asked: int | None = None

    def ask(self) -> Array:
        """Ask the client for a trial."""
        ((self.asked, parameters),) = self.client.get_next_trials(max_trials=1).items()
        return np.array([parameters[name] for name in self.names], dtype=np.float64)

    def tell(self, x: Array, y: float) -> None:
        """Complete the trial that was asked for, else attach one."""
        if self.asked is None:
            self.asked = self.client.attach_trial(dict(zip(self.names, x.tolist(), strict=True)))
        self.client.complete_trial(self.asked, raw_data={"y": y})
        self.asked = None


class SmacPeer:
    """SMAC's facade for black boxes, a Gaussian process with EI; it keeps its files in a folder of its own."""

    def __init__(self, instance: Instance) -> None:
        from ConfigSpace import ConfigurationSpace, Float
        from smac import BlackBoxFacade, Scenario

        logging.getLogger("smac").setLevel(logging.ERROR)  # it warns of a design without points
        self.names = names(instance)
        self.space = ConfigurationSpace(seed=instance.seed)
        self.space.add(
            *(Float(name, tuple(side)) for name, side in zip(self.names, instance.bounds.T.tolist(), strict=True))
        )
        self.folder = tempfile.TemporaryDirectory(prefix="smac-")
        scenario = Scenario(
            self.space, deterministic=True, n_trials=1_000_000, seed=instance.seed, output_directory=self.folder.name
        )
        self.facade = BlackBoxFacade(
            scenario,
            lambda config, seed: 0.0,  # never called: values are told
            initial_design=BlackBoxFacade.get_initial_design(scenario, n_configs=0),
            logging_level=False,
            overwrite=True,
        )
        self.asked: Any = None

    def ask(self) -> Array:
        """Ask the facade for a trial."""
        self.asked = self.facade.ask()
        return np.array([self.asked.config[name] for name in self.names], dtype=np.float64)

    def tell(self, x: Array, y: float) -> None:
        """Tell the value, to be minimised, of the trial that was asked for, else of a new one."""
        from ConfigSpace import Configuration
        from smac.runhistory.dataclasses import TrialInfo, TrialValue

        trial = self.asked
        if trial is None:
            # Trials of a deterministic scenario have seed 0.
            trial = TrialInfo(Configuration(self.space, values=dict(zip(self.names, x.tolist(), strict=True))), seed=0)
        self.facade.tell(trial, TrialValue(cost=-y), save=False)
        self.asked = None


class Library(NamedTuple):
    """How to build a peer, and the distributions that its results depend on, its own first."""

    build: Callable[[Instance], Peer]
    distributions: tuple[str, ...]


LIBRARIES: Mapping[str, Library] = MappingProxyType(
    {
        "botorch": Library(BoTorchPeer, ("botorch", "gpytorch", "torch")),
        "optuna": Library(OptunaPeer, ("optuna", "torch")),
        "scikit-optimize": Library(ScikitOptimizePeer, ("scikit-optimize", "scikit-learn")),
        "bayesian-optimization": Library(BayesianOptimizationPeer, ("bayesian-optimization", "scikit-learn")),
        "ax": Library(AxPeer, ("ax-platform", "botorch", "torch")),
        "smac": Library(SmacPeer, ("smac", "scikit-learn")),
    }
)


def installed(libraries: Mapping[str, Library], wanted: list[str]) -> tuple[list[Contender], list[str]]:
    """Return the contenders among `wanted` whose library is installed, and the names of the others.

    Raises:
        PlumblineError: there is no peer of a name.
    """
    found, missing = [], []
    for name in wanted:
        if name not in libraries:
            raise unknown("peer", name, libraries)
        try:
            versions = ", ".join(f"{one} {version(one)}" for one in libraries[name].distributions)
        except PackageNotFoundError:
            missing.append(name)
        else:
            found.append(Contender(name, versions, libraries[name].build))
    return found, missing
