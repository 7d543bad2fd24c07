"""Peers of gp-experiment.R: one gradient of the log marginal likelihood of its model, one input,
squared exponential kernel, in double precision on the GPU: by PyTorch's autograd, and by GPyTorch
(exact, Cholesky). Prints lines peer,operation,size,ms,rate,unit; nothing without torch or without
a CUDA device. Sizes as arguments, or as in gp-experiment.R.
"""
import math
import sys

import peers

torch = peers.torch_on_cuda()
device = "cuda"


def data(n):
    x = torch.rand(n, device=device) * 20 - 10
    f = x + x**2 - x**3 + 100 * torch.sin(2 * x)
    return x, (f - f.mean()) / f.std() + 0.1 * torch.randn(n, device=device)


def by_autograd(x, y):
    n = len(y)
    eye = torch.eye(n, device=device)

    def run():
        p = torch.tensor([1.5, 2.0, 0.1], device=device, requires_grad=True)
        k = p[0]**2 * torch.exp(-0.5 * ((x[:, None] - x[None]) / p[1])**2) + p[2]**2 * eye
        l = torch.linalg.cholesky(k)
        z = torch.linalg.solve_triangular(l, y[:, None], upper=False)
        value = -0.5 * z.pow(2).sum() - l.diagonal().log().sum() - n / 2 * math.log(2 * math.pi)
        return torch.autograd.grad(value, p)
    return run


def by_gpytorch(x, y):
    import gpytorch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x[:, None], y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, at):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(at),
                                                             self.covar_module(at))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
    model = Model(likelihood).to(device)
    likelihood.noise = 0.01
    model.covar_module.outputscale = 2.25
    model.covar_module.base_kernel.lengthscale = 2.0
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    model.train()
    likelihood.train()

    def run():
        with gpytorch.settings.fast_computations(False, False, False), \
                gpytorch.settings.max_cholesky_size(10**9):
            model.zero_grad()
            mll(model(x[:, None]), y).backward()
    return run


for n in peers.sizes((500, 1000, 2000, 4000, 8000, 16000), "STATCL_BENCH_SIZES"):
    x, y = data(n)
    for peer, make in (("pytorch", by_autograd), ("gpytorch", by_gpytorch)):
        try:
            ms = peers.wall_ms(torch, make(x, y), 3 if n > 4000 else 7, warmup=1)
            peers.report(peer, "gp_experiment_gradient", n, ms)
        except (ImportError, torch.OutOfMemoryError) as e:
            print(f"# {peer} at {n}: {e}".splitlines()[0], file=sys.stderr)
    del x, y
    torch.cuda.empty_cache()
