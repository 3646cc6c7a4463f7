"""What the tests of the trials, the configuration and the command line share."""

import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

# Before torch and NumPy are imported, here and in subprocesses: with as many threads in each of pytest's workers as
# there are cores, most of the time goes into threads that wait for each other.
os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

if TYPE_CHECKING:
    import torch
    from botorch.models import SingleTaskGP
    from torch import Tensor

    from plumbline.api.editions import AtlasGrid
    from plumbline.models.gp.process import GP

from plumbline.registry.references import InitialDesign, MethodRef, ProblemRef
from plumbline.store.spec import Budget, Diagnostics, TrialSpec

# A commit passes or fails by what is in it: the same examples every time, however slow the machine is.
# `pytest --hypothesis-profile explore` draws new ones, and twice as many.
settings.register_profile("same", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("same")

# Ten thousand tests and the modules of torch stay to the end: looking through them for garbage, again and again, took a
# tenth of the time.
gc.set_threshold(20_000, 10, 10)


def pytest_configure() -> None:
    """Let an interrupt end what it is sent to: a shell has jobs in the background ignore it, and their children too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collectstart() -> None:
    """Look for no garbage while tests are collected: their modules stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what the collection has made out of every later search for garbage."""
    gc.freeze()
    gc.enable()


ROOT = Path(__file__).parents[1]
CHEAP = {"search": {"restarts": 1, "raw_samples": 8, "maxiter": 5}}
"""Options that make a round of a Gaussian-process method cost a fraction of a second."""


LONGEST = "test_the_site_builds_without_warnings"
"""Takes minutes: begun last, it would leave the other workers idle."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a GPU, for `make test-gpu`, and begin with the longest test."""
    for item in items:
        if "gpu" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
    items.sort(key=lambda item: item.name != LONGEST)


@pytest.fixture(scope="session")
def gpu() -> "torch.device":
    """A GPU; without one the test is skipped."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch.device("cuda")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def one_core() -> dict[str, str]:
    """The environment of a subprocess: this checkout's package, one thread, no tracking server."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW", "PLUMBLINE"))}
    return {**kept, "PYTHONPATH": path, "COLUMNS": "200"}


@pytest.fixture(scope="session")
def atlas_grid(root: Path) -> "AtlasGrid":
    """The trials that the atlas plans."""
    from plumbline.api.editions import AtlasGrid

    return AtlasGrid(root)


@pytest.fixture(scope="session")
def small_atlas(tmp_path_factory: pytest.TempPathFactory, atlas_grid: "AtlasGrid") -> Path:
    """An edition of two tasks with two methods, two seeds each."""
    from made_edition import small_edition

    folder = tmp_path_factory.mktemp("atlas")
    small_edition(folder, tmp_path_factory.mktemp("results"), atlas_grid)
    return folder


@pytest.fixture(scope="session")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the features of some eighty generated molecules."""
    from plumbline.data.datasets import find_dataset, load_datasets
    from plumbline.data.features import build_features, write_features

    entry = find_dataset(load_datasets(ROOT / "config/datasets.yaml"), "generated-molecules")
    assert entry.features is not None
    small = entry.model_copy(update={"features": entry.features.model_copy(update={"rows": 80})})
    data = tmp_path_factory.mktemp("data")
    write_features(build_features(small), data / "features" / "generated-molecules.parquet", small)
    return data


@pytest.fixture(scope="session")
def bounds() -> "Tensor":
    """A box of two inputs, far from the unit cube."""
    import torch

    return torch.tensor([[-2.0, 0.0], [2.0, 10.0]], dtype=torch.float64)


@pytest.fixture(scope="session")
def process(bounds: "Tensor") -> "GP":
    """A Gaussian process on seven points, in units far from standard ones, at fixed hyperparameters."""
    import torch

    from plumbline.models.gp.likelihood import Hyperparameters
    from plumbline.models.gp.process import conditioned

    U = torch.rand(7, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    X = bounds[0] + (bounds[1] - bounds[0]) * U
    Y = 40 + 8 * torch.sin(4 * U.sum(dim=-1, keepdim=True))
    at = Hyperparameters(0.0, U.new_tensor([0.01]), 0.7, U.new_tensor([0.4]))
    return conditioned(X, Y, bounds, "matern52", at)


@pytest.fixture(scope="session")
def model(process: "GP") -> "SingleTaskGP":
    """The same as a model of GPyTorch."""
    from exact_gpytorch import gpytorch_model

    return gpytorch_model(process)


@pytest.fixture(scope="session")
def cheap_spec() -> Callable[..., TrialSpec]:
    """Return a factory of trials that take seconds at most; `options` are the method's."""

    def make(
        problem: str | dict[str, Any] = "branin",
        method: str = "random",
        *,
        options: dict[str, Any] | None = None,
        seed: int = 0,
        rounds: int = 3,
        size: int = 4,
        q: int = 1,
        label: str = "",
        task: str = "",
        **diagnostics: Any,
    ) -> TrialSpec:
        cheap = {"random": {}, "sobol": {}, "calibrated": {"base": {"name": "ucb", "options": CHEAP}}}.get(
            method, CHEAP
        )
        return TrialSpec(
            problem=ProblemRef.model_validate(problem),
            method=MethodRef(name=method, options=cheap if options is None else options, label=label),
            seed=seed,
            budget=Budget(initial=InitialDesign(design="uniform", size=size), rounds=rounds, q=q),
            diagnostics=Diagnostics(**diagnostics),
            task=task,
        )

    return make


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """Return what enters a toy method or problem for one test: its name, kind, and how it is built.

    Toys lie outside the package: their source counts as that of the module given.
    """
    from plumbline.core.options import Options
    from plumbline.registry.catalogue import _registry, catalogue
    from plumbline.registry.registry import Entry

    entered: list[tuple[Any, str]] = []

    def enter(kind: str, name: str, build: Callable[..., Any], module: str, options: type[Options] = Options) -> None:
        from plumbline.registry.catalogue import Listing

        registry = _registry(kind)  # type: ignore[arg-type]
        registry.entries()
        assert name not in registry._entries
        # First the catalogue: built with the toy in the registry, it would be kept with it for later processes.
        listings = getattr(catalogue(), kind)
        registry._entries[name] = Entry(name, "a toy", build, options, module)
        listings[name] = Listing(name=name, summary="a toy", module=module, options=options.model_json_schema())
        entered.extend([(registry._entries, name), (listings, name)])

    yield enter
    for entries, name in entered:
        del entries[name]


@pytest.fixture
def points(bounds: "Tensor") -> "Tensor":
    """Five points of the box, `5 x 1 x 2`, at which acquisition functions are checked."""
    import torch

    U = torch.rand(5, 1, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return bounds[0] + (bounds[1] - bounds[0]) * U


@pytest.fixture
def own_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of installed packages."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    forget(folder)
    yield folder
    forget(folder)


@pytest.fixture
def forget_packages(own_packages: Path) -> Callable[[], None]:
    """What lets this process look for packages and import them anew, as the next one would."""
    return lambda: forget(own_packages)


def forget(folder: Path) -> None:
    """Let this process forget the packages of a folder, and what it knows of their source."""
    from plumbline.methods.base import methods
    from plumbline.problems.base import problems
    from plumbline.registry import catalogue, packages, references, source_digest
    from plumbline.store import keys, provenance

    importlib.invalidate_caches()
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(folder)):
            del sys.modules[name]
    for registry in (methods, problems):
        for name in [name for name, one in registry._entries.items() if one.module not in sys.modules]:
            del registry._entries[name]
    catalogue._CHECKED.clear()
    for module in (catalogue, packages, references, source_digest, keys, provenance):
        for name, cached in vars(module).items():
            if hasattr(cached, "cache_clear") and name != "catalogue":  # ours, which takes seconds
                cached.cache_clear()
