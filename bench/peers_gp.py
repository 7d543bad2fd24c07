"""Times the log marginal likelihood and its gradient of a Gaussian process with PyTorch's autograd
and with GPyTorch (exact, by Cholesky), in double precision on the first CUDA device; prints lines
peer,operation,size,ms,rate,unit. Prints nothing where they are not installed."""
import peers

SIZES = (1000, 2000, 4000, 8000, 16000)
torch = peers.torch_on_cuda()


def measure(peer, n, run):
    ms = peers.wall_ms(torch, run)
    peers.report(peer, "gp_lml_and_gradient", n, ms, 1e-9 * n**3 / ms, "TFLOP/s")


def by_torch(n, x, y):
    log_par = torch.zeros(5, device="cuda", requires_grad=True)

    def run():
        log_par.grad = None
        scaled = x / log_par[:3].exp()
        squares = (scaled**2).sum(1)
        d2 = (squares[:, None] + squares[None, :] - 2 * scaled @ scaled.T).clamp_min(0)
        c = (2 * log_par[3] - 0.5 * d2).exp() + (2 * log_par[4]).exp() * torch.eye(n, device="cuda")
        root = torch.linalg.cholesky(c)
        z = torch.linalg.solve_triangular(root, y[:, None], upper=False)
        (-0.5 * (z**2).sum() - root.diagonal().log().sum()).backward()

    return run


def by_gpytorch(gpytorch, x, y):
    class Process(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            kernel = gpytorch.kernels.RBFKernel(ard_num_dims=x.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, points):
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(points), self.covar_module(points))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().cuda()
    process = Process(likelihood).cuda().train()
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood.train(), process)

    def run():
        process.zero_grad()
        objective(process(x), y).backward()

    return run


try:
    import gpytorch
except ImportError:
    gpytorch = None
for n in peers.sizes(SIZES):
    x = 10 * torch.rand(n, 3, device="cuda")
    y = torch.randn(n, device="cuda")
    measure("torch", n, by_torch(n, x, y))
    if gpytorch is not None:
        exact = gpytorch.settings
        with exact.fast_computations(False, False, False), exact.max_cholesky_size(10**9):
            measure("gpytorch", n, by_gpytorch(gpytorch, x, y))
    torch.cuda.empty_cache()
