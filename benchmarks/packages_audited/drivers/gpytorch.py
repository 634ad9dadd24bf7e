"""Calls of gpytorch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import Net, case, named, noise

from assay.audit import Case


def variational(name, **kw):

    def make():
        gp = __import__("gpytorch")

        class Model(gp.models.ApproximateGP):
            def __init__(self):
                d = gp.variational.CholeskyVariationalDistribution(4)
                strategy = getattr(gp.variational, name)(self, noise(4, 2), d, **kw)
                super().__init__(strategy)
                self.mean_module = gp.means.ConstantMean()
                self.covar_module = gp.kernels.ScaleKernel(gp.kernels.RBFKernel())

            def forward(self, x):
                return gp.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

        return Net(Model, lambda m, x: m(x).mean)

    return case(f"gpytorch.variational.{name}", make, (noise(5, 2),))


def kernel(name, **kw):
    return case(
        f"gpytorch.kernels.{name}",
        lambda: Net(lambda: named(f"gpytorch.kernels.{name}")(**kw), lambda k, x: k(x).to_dense()),
        (noise(5, 2),),
    )


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in (
        "VariationalStrategy",
        "UnwhitenedVariationalStrategy",
        "BatchDecoupledVariationalStrategy",
        "CiqVariationalStrategy",
        "LargeBatchVariationalStrategy",
    ):
        yield variational(n)
    for n, kw in (
        ("RBFKernel", {}),
        ("MaternKernel", {}),
        ("PeriodicKernel", {}),
        ("RQKernel", {}),
        ("CosineKernel", {}),
        ("LinearKernel", {}),
        ("PolynomialKernel", {"power": 2}),
        ("PolynomialKernelGrad", {"power": 2}),
        ("RBFKernelGrad", {}),
        ("RBFKernelGradGrad", {}),
        ("Matern52KernelGrad", {}),
        ("SpectralMixtureKernel", {"num_mixtures": 2, "ard_num_dims": 2}),
        ("SpectralDeltaKernel", {"num_dims": 2}),
        ("ArcKernel", {"base_kernel": None}),
        ("CylindricalKernel", None),
        ("HammingIMQKernel", {"vocab_size": 2}),
        ("PiecewisePolynomialKernel", {}),
        ("ConstantKernel", {}),
        ("GaussianSymmetrizedKLKernel", {}),
    ):
        if n in ("ArcKernel", "CylindricalKernel", "HammingIMQKernel"):
            continue
        yield kernel(n, **kw)
