"""Any acquisition function of BoTorch, or one written for BoTorch, on our Gaussian process."""

import inspect
import warnings
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Annotated, Any, TypeVar

import torch
from botorch.acquisition import (
    AcquisitionFunction,
    AnalyticAcquisitionFunction,
    OneShotAcquisitionFunction,
    qKnowledgeGradient,
)
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.sampling import manual_seed
from pydantic import Field, JsonValue, field_validator
from torch import Size, Tensor

from plumbline.core.errors import PlumblineError, kind_of
from plumbline.core.inputs import Code
from plumbline.methods.base import Domain, methods
from plumbline.methods.composed import Choice, Round
from plumbline.methods.gp.single_outcome import IncumbentGPMethod, IncumbentGPOptions
from plumbline.methods.named_class import class_at, class_path, parameters_of, refuse_arguments
from plumbline.models.gp.process import GP
from plumbline.spaces.blocks import Blocks
from plumbline.spaces.box import Box

Made = TypeVar("Made", bound=AcquisitionFunction)

LOG_EI = "botorch.acquisition.logei.qLogExpectedImprovement"


class BoTorchAcquisitionOptions(IncumbentGPOptions):
    """Options of an acquisition function that is named by its path.

    Attributes:
        acquisition: its class, `package.module.Class` or `package.module:Class`.
        arguments: arguments of the class besides those that the method knows; lists for tensors.
    """

    acquisition: Annotated[str, Code()] = LOG_EI
    arguments: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("acquisition")
    @classmethod
    def _is_a_path(cls, path: str) -> str:
        return class_path(path)


def acquisition_class(path: str) -> type[AcquisitionFunction]:
    """Return the class of acquisition functions at a path.

    Raises:
        PlumblineError: there is no such module or class, or the class is no concrete acquisition function.
    """
    found = class_at(path, f"acquisition {path!r}")
    if not issubclass(found, AcquisitionFunction) or inspect.isabstract(found):
        raise PlumblineError(f"acquisition {path!r} is no class of acquisition functions that can be instantiated")
    return found


KNOWN = ("model", "best_f", "X_baseline", "bounds", "sampler", "X_pending")
"""Arguments that the method fills in."""

OF_ONE_POINT = "batch_shape x q=1 x d"
"""What `t_batch_mode_transform(expected_q=1)` says of several points."""


def as_argument(value: JsonValue, parameter: inspect.Parameter | None) -> Any:
    """Return an option as an argument: a list as a float64 tensor where the parameter's annotation says `Tensor`."""
    if isinstance(value, list) and parameter is not None and "Tensor" in str(parameter.annotation):
        return torch.tensor(value, dtype=torch.float64)
    return value


class CheckValues:
    """A hook that refuses values of an acquisition function that no search can use.

    Args:
        path: of its class, for messages.
    """

    def __init__(self, path: str) -> None:
        self.whose = f"acquisition {path!r}"

    def __call__(self, module: torch.nn.Module, arguments: tuple[Any, ...], values: Any) -> None:
        """Raise PlumblineError unless `b x q x d` points, at any batch shape b, have values of this shape."""
        X = arguments[0]
        if not isinstance(values, Tensor):
            raise PlumblineError(f"{self.whose} returned {kind_of(values)}: a tensor is wanted")
        if values.shape != X.shape[:-2] and X.ndim > 2:
            there, wanted = (" x ".join(map(str, shape)) or "()" for shape in (values.shape, X.shape[:-2]))
            raise PlumblineError(
                f"{self.whose} returned values of shape {there} for points of shape {' x '.join(map(str, X.shape))}: "
                f"{wanted} is wanted, a value for each batch"
            )
        if values.isnan().any():
            raise PlumblineError(f"{self.whose} returned NaN at x = {X[values.isnan()][0].tolist()}")
        if torch.is_grad_enabled() and X.requires_grad and not values.requires_grad:
            raise PlumblineError(f"{self.whose} returned values without a gradient: the search needs one")


class AtFantasies(AcquisitionFunction):
    """A one-shot acquisition function of the query alone, its other points as the search left them.

    It is at most the value that a search for these points would give.

    Args:
        one_shot: the function.
        others: `s x d`, its points other than queries.
    """

    def __init__(self, one_shot: OneShotAcquisitionFunction, others: Tensor) -> None:
        super().__init__(one_shot.model)
        self.one_shot, self.others = one_shot, others

    def forward(self, X: Tensor) -> Tensor:
        """Return the values of `batch_shape x q x d` queries: `batch_shape`."""
        value: Tensor = self.one_shot(torch.cat([X, self.others.expand(*X.shape[:-2], -1, -1)], -2))
        return value


def unmoved(module: Made, *_: Any, **__: Any) -> Made:
    """Return a module as it is, in the place of `Module.to`.

    BoTorch's analytic functions move themselves to X's device in each evaluation. They are there already, and the walk
    over all their parts takes a tenth of a round.
    """
    return module


@methods.register("botorch-acquisition", BoTorchAcquisitionOptions)
class BoTorchAcquisitionMethod(IncumbentGPMethod):
    """Any acquisition function of BoTorch, or of one's own, that is named by the path of its class.

    What the class takes by the name of `model`, `best_f`, `X_baseline`, `bounds`, `sampler` or `X_pending` is filled
    in; `arguments` have the rest, and come first. One-shot functions are maximised by BoTorch's `optimize_acqf`.
    """

    libraries = ("botorch", "gpytorch")
    options: BoTorchAcquisitionOptions

    def __init__(self, domain: Domain, options: BoTorchAcquisitionOptions) -> None:
        """Make the method.

        Raises:
            PlumblineError: there is no such class, its arguments are not known, or it cannot search the space.
        """
        super().__init__(domain, options)
        self.made = acquisition_class(options.acquisition)
        refuse_arguments(f"acquisition {options.acquisition!r}", self.made, options.arguments, KNOWN)
        space, one_shot = domain.space, issubclass(self.made, OneShotAcquisitionFunction)
        if one_shot and (not isinstance(space, Box) or isinstance(space, Blocks)):
            raise PlumblineError(
                f"acquisition {options.acquisition!r} is one-shot and searches a box; this problem has "
                f"{'rows of a table' if space.finite else 'inputs that change in blocks'}: use the method 'kg'"
            )

    def utility(self, surrogate: GP, round: Round) -> AcquisitionFunction:
        """Return the acquisition function, which says what is wrong with its values.

        Raises:
            PlumblineError: the class is of one point and `q` is above 1, or what it made is no acquisition function.
        """
        path = self.options.acquisition
        if round.q > 1 and issubclass(self.made, AnalyticAcquisitionFunction):
            raise self.of_one_point(round)
        utility = self.made(**self.arguments(surrogate, round))
        if not isinstance(utility, AcquisitionFunction):
            raise PlumblineError(f"acquisition {path!r} made a {type(utility).__name__}, no acquisition function")
        utility.register_forward_hook(CheckValues(path))
        utility.to = MethodType(unmoved, utility)
        return utility

    def of_one_point(self, round: Round) -> PlumblineError:
        """Return the error for a class of one point in a round of several."""
        path = self.options.acquisition
        return PlumblineError(f"acquisition {path!r} is of one point: for q = {round.q} take one of batches")

    def arguments(self, surrogate: GP, round: Round) -> dict[str, Any]:
        """Return the arguments of the class: those it takes that are known, and those of the options."""
        parameters, given = parameters_of(self.made), self.options.arguments
        known: dict[str, Callable[[], Any]] = {
            "model": surrogate.as_botorch,
            "best_f": round.data.Y.max,
            "X_baseline": lambda: round.data.X,
            "bounds": lambda: round.space.bounds,
            "sampler": lambda: self.sampler(round),
            "X_pending": lambda: None,
        }
        filled = {name: known[name]() for name in KNOWN if name in parameters and name not in given}
        return filled | {name: as_argument(value, parameters.get(name)) for name, value in given.items()}

    def sampler(self, round: Round) -> SobolQMCNormalSampler:
        """Return a sampler of as many draws as there are fantasies, where the class has such a number."""
        parameter = parameters_of(self.made).get("num_fantasies")
        usual = self.options.mc_samples if parameter is None else parameter.default
        size = self.options.arguments.get("num_fantasies", usual)
        return SobolQMCNormalSampler(Size([size if isinstance(size, int) else self.options.mc_samples]), round.seed)

    def search(self, utility: AcquisitionFunction, surrogate: GP, round: Round) -> Choice[GP]:
        """Return the points of greatest utility; of one-shot functions, by BoTorch's search.

        Raises:
            PlumblineError: the class says, by `t_batch_mode_transform`, that it is of one point, and `q` is above 1.
        """
        if not isinstance(utility, OneShotAcquisitionFunction):
            try:
                return super().search(utility, surrogate, round)
            except AssertionError as error:
                if round.q > 1 and OF_ONE_POINT in str(error):
                    raise self.of_one_point(round) from error
                raise
        X, others = one_shot_maximiser(utility, round, self.options.search.model_dump())
        return Choice(round.space.nearest(X, round.history), AtFantasies(utility, others), surrogate)


def one_shot_maximiser(
    utility: OneShotAcquisitionFunction, round: Round, search: Mapping[str, Any]
) -> tuple[Tensor, Tensor]:
    """Return the query, `q x d`, and the other points, `s x d`, of greatest one-shot value."""
    # BoTorch adds the other points to the starts itself for the knowledge gradient alone.
    q = round.q if isinstance(utility, qKnowledgeGradient) else utility.get_augmented_q_batch_size(round.q)
    with manual_seed(round.seed), warnings.catch_warnings(action="ignore"):
        full, _ = optimize_acqf(
            utility,
            round.space.bounds,
            q=q,
            num_restarts=search["restarts"],
            raw_samples=search["raw_samples"],
            options={"maxiter": search["maxiter"], "seed": round.seed},
            return_full_tree=True,
            retry_on_optimization_warning=False,
        )
    return utility.extract_candidates(full).detach(), full[round.q :].detach()
