import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.models import ExactGP

from plumbline.core.errors import PlumblineError
from plumbline.problems.build import build_problem
from plumbline.problems.rkhs import RKHSFunction, draw_coefficients, make_kernel
from plumbline.spaces.box import uniform

CASES = [
    {"dim": 1},
    {"dim": 1, "kernel": "matern52", "lengthscale": 0.2},
    {"dim": 3, "kernel": "matern52", "basis": 30, "lengthscale": 0.4},
]


def kernel_by_hand(name: str, lengthscale: float, X: torch.Tensor, Z: torch.Tensor) -> torch.Tensor:
    r = (X.unsqueeze(-2) - Z.unsqueeze(-3)).square().sum(dim=-1).sqrt() / lengthscale
    if name == "rbf":
        return torch.exp(-r.square() / 2)
    return (1 + 5**0.5 * r + 5 * r.square() / 3) * torch.exp(-(5**0.5) * r)


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest, context) -> tuple[RKHSFunction, str, float]:
    options = request.param
    problem = build_problem("rkhs", options, context(5))
    return problem.function, options.get("kernel", "rbf"), options.get("lengthscale", 0.1)


def test_is_a_sum_of_kernels_of_unit_scale(case) -> None:
    problem, name, lengthscale = case
    X = uniform(problem.bounds, 50, torch.Generator().manual_seed(1))
    expected = kernel_by_hand(name, lengthscale, X, problem.basis) @ problem.coefficients
    torch.testing.assert_close(problem(X, noise=False), expected, rtol=1e-9, atol=1e-9)


def test_norm_is_the_root_of_the_quadratic_form(case) -> None:
    problem, name, lengthscale = case
    K = kernel_by_hand(name, lengthscale, problem.basis, problem.basis)
    c = problem.coefficients
    assert problem.norm == pytest.approx((c @ K @ c).sqrt().item(), rel=1e-9)
    # <f, f> = sum_i c_i <kappa(z_i, .), f> = sum_i c_i f(z_i): what makes the kernel a reproducing one.
    assert problem.norm**2 == pytest.approx((c @ problem(problem.basis, noise=False)).item(), rel=1e-9)


def test_values_are_inner_products_with_the_kernel(case) -> None:
    """Reproducing: <f, kappa(x, .)>, by polarisation from the norms of f + kappa(x, .) and f - kappa(x, .)."""
    problem, name, lengthscale = case
    x = uniform(problem.bounds, 1, torch.Generator().manual_seed(2))
    Z = torch.cat([problem.basis, x])
    K = kernel_by_hand(name, lengthscale, Z, Z)
    plus, minus = (torch.cat([problem.coefficients, problem.basis.new_tensor([sign])]) for sign in (1.0, -1.0))
    product = ((plus @ K @ plus) - (minus @ K @ minus)) / 4
    assert product.item() == pytest.approx(problem(x, noise=False).item(), abs=1e-9)


def test_norm_bounds_the_values(case) -> None:
    """Cauchy and Schwarz: abs f(x) <= norm of f, as kappa(x, x) = 1."""
    problem, _, _ = case
    X = uniform(problem.bounds, 2000, torch.Generator().manual_seed(3))
    assert problem(X, noise=False).abs().max() <= problem.norm
    assert problem.optimal_value <= problem.norm


@pytest.mark.parametrize("name", ["rbf", "matern52"])
def test_is_the_posterior_mean_of_a_gaussian_process(name, context) -> None:
    """Algorithm 3's f is the posterior mean at targets y = (K + sigma^2 I) c, with GPyTorch's own linear algebra."""
    problem = build_problem("rkhs", {"dim": 2, "kernel": name, "lengthscale": 0.3, "basis": 20}, context(0)).function
    kernel = make_kernel(name, 0.3)
    K = kernel(problem.basis).to_dense()
    y = K @ problem.coefficients + 0.04 * problem.coefficients

    class Model(ExactGP):
        def __init__(self) -> None:
            likelihood = GaussianLikelihood().double()
            likelihood.noise = 0.04
            super().__init__(problem.basis, y, likelihood)
            self.mean, self.kernel = ZeroMean(), kernel

        def forward(self, X: torch.Tensor) -> MultivariateNormal:
            return MultivariateNormal(self.mean(X), self.kernel(X))

    X = uniform(problem.bounds, 30, torch.Generator().manual_seed(0))
    with torch.no_grad():
        mean = Model().eval()(X).mean
    torch.testing.assert_close(problem(X, noise=False), mean, rtol=1e-7, atol=1e-7)


@pytest.mark.slow
def test_targets_have_the_covariance_of_algorithm_3() -> None:
    kernel = make_kernel("rbf", 0.3)
    Z = torch.linspace(0, 1, 4, dtype=torch.float64).unsqueeze(-1)
    K = kernel(Z).to_dense()
    A = K + 0.04 * torch.eye(4, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    C = torch.stack([draw_coefficients(K, 0.04, generator) for _ in range(20_000)])
    Y = C @ A
    # A standard error of a covariance is at most A_ii sqrt(2/20,000) = 0.0104: five of them.
    torch.testing.assert_close(Y.T @ Y / len(Y), A, rtol=0.0, atol=0.052)
    assert Y.mean(dim=0).abs().max() < 5 * (1.04 / 20_000) ** 0.5


@pytest.mark.parametrize("options", [{"dim": 1}, {"dim": 2}], ids=str)
def test_optimum_is_the_best_of_a_fine_grid(options, context) -> None:
    for seed in range(4):
        problem = build_problem("rkhs", options, context(seed)).function
        axis = torch.linspace(0, 1, 20_001 if options["dim"] == 1 else 401, dtype=torch.float64)
        grid = torch.cartesian_prod(*[axis] * options["dim"]).reshape(-1, options["dim"])
        best = problem(grid, noise=False).max().item()
        assert best <= problem.optimal_value + 1e-9
        assert best == pytest.approx(problem.optimal_value, abs=2e-3)


def test_optimum_is_stationary_or_on_the_boundary(context) -> None:
    problem = build_problem("rkhs", {"dim": 5, "kernel": "matern52", "basis": 128}, context(0)).function
    x = problem.optimizers.clone().requires_grad_()
    (slope,) = torch.autograd.grad(problem(x, noise=False).sum(), x)
    inside = (problem.optimizers > 0) & (problem.optimizers < 1)
    assert slope[inside].abs().max() < 1e-4
    assert ((problem.optimizers >= 0) & (problem.optimizers <= 1)).all()
    everywhere = torch.cat([problem.basis, uniform(problem.bounds, 20_000, torch.Generator().manual_seed(0))])
    assert problem(everywhere, noise=False).max() <= problem.optimal_value


def test_seeds_give_other_functions_and_other_basis_points(context) -> None:
    one, other = (build_problem("rkhs", {"dim": 2}, context(seed)).function for seed in (0, 1))
    assert not torch.equal(one.basis, other.basis)
    assert not torch.equal(one.coefficients, other.coefficients)


def test_leaves_the_global_stream_alone(context) -> None:
    before = torch.get_rng_state()
    build_problem("rkhs", {"dim": 2}, context(0))
    assert torch.equal(torch.get_rng_state(), before)


def test_noise_variance_of_the_algorithm_is_not_that_of_observations(context) -> None:
    problem = build_problem("rkhs", {"dim": 1, "noise_variance": 1.0, "noise_std": 0.3}, context(0)).function
    assert problem.noise_std == 0.3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "matern"}, "'matern52'"),
        ({"lengthscale": 0.0}, "lengthscale"),
        ({"noise_variance": 0.0}, "noise_variance"),
        ({"basis": 0}, "basis"),
        ({"dim": None}, "dim"),
    ],
)
def test_mistakes_are_told_in_one_line(context, change: dict[str, object], message: str) -> None:
    with pytest.raises(PlumblineError, match=message) as caught:
        build_problem("rkhs", {"dim": 1, **change}, context(0))
    assert "\n" not in str(caught.value)
