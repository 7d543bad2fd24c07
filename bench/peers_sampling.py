"""Logistic regression by Hamiltonian Monte Carlo, as lines "peer,operation,size,ms,rate,unit".
STATCL_BENCH_SHAPES and STATCL_BENCH_STEPS as in sampling.R.

By NumPyro, if it is there and JAX has a GPU, or the environment variable JAX_PLATFORMS is set: rows
`run`, milliseconds of a whole run of 500 + 500 iterations in double precision with flat priors,
chains vectorised, up to 1e7 numbers; rows `ess`, the same divided by the effective draws of the
parameter that has fewest. The second run counts: the first compiles.

By hand in PyTorch, if it is there with a CUDA device, with the sizes and steps of the rows `hmc` of
sampling.R: milliseconds for a gradient of one chain. Positions and momenta stay on the device for a
trajectory of 10 steps; the log density is read at its end. Four chains are four columns of one matrix.
"""
import os
import time

import peers

steps = int(float(os.environ.get("STATCL_BENCH_STEPS", "100")))
whole_runs = os.environ.get("STATCL_BENCH_NUTS", "1") != "0"
shapes = os.environ.get("STATCL_BENCH_SHAPES", "1e4x10,1e5x10,1e6x10,1e6x100").split(",")
shapes = [tuple(int(float(part)) for part in shape.split("x")) for shape in shapes]
NUMPYRO_NUMBERS = 10**7


def name_of(kind, chains):
    return f"{kind}_{chains}_chain{'s' if chains > 1 else ''}"


def run(x, y, chains, trajectories, leapfrogs=10, step=0.1):
    n, k = x.shape
    inverse_metric = 8 / n
    wide = (chains,) if chains > 1 else ()  # one chain: vectors, not matrices of one column
    observed = y[:, None] if chains > 1 else y
    alpha = torch.full(wide, 1.0, device=device)
    beta = torch.zeros((k,) + wide, device=device)
    beta[0], beta[1] = 3.0, -2.0

    def gradient():
        residual = observed - torch.sigmoid(alpha + x @ beta)
        return residual.sum(0), x.t() @ residual

    def density():
        return torch.nn.functional.logsigmoid((2 * observed - 1) * (alpha + x @ beta)).sum(0)

    g_alpha, g_beta = gradient()
    count = chains
    for _ in range(trajectories):
        p_alpha = torch.randn(wide, device=device) / inverse_metric**0.5 + 0.5 * step * g_alpha
        p_beta = torch.randn((k,) + wide, device=device) / inverse_metric**0.5 + 0.5 * step * g_beta
        for i in range(leapfrogs):
            alpha += step * inverse_metric * p_alpha
            beta += step * inverse_metric * p_beta
            g_alpha, g_beta = gradient()
            share = step if i + 1 < leapfrogs else 0.5 * step
            p_alpha += share * g_alpha
            p_beta += share * g_beta
            count += chains
        density().tolist()
    return count


def numpyro_runs():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax
        import numpyro
    except ImportError:
        return
    if jax.default_backend() == "cpu" and "JAX_PLATFORMS" not in os.environ:
        return
    numpyro.enable_x64()
    import jax.numpy as jnp
    import numpyro.distributions as dist
    from numpyro.diagnostics import effective_sample_size
    from numpyro.infer import MCMC, NUTS

    def model(x, y):
        real = dist.constraints.real
        alpha = numpyro.sample("alpha", dist.ImproperUniform(real, (), ()))
        beta = numpyro.sample("beta", dist.ImproperUniform(real, (), (x.shape[1],)))
        numpyro.sample("y", dist.Bernoulli(logits=alpha + x @ beta), obs=y)

    for n, k in shapes:
        if n * k > NUMPYRO_NUMBERS:
            continue
        x = jax.random.normal(jax.random.PRNGKey(0), (n, k))
        eta = 3 * x[:, 0] - 2 * x[:, 1] + 1
        y = (jax.random.uniform(jax.random.PRNGKey(1), (n,)) < jax.nn.sigmoid(eta)) * 1.0
        for chains in (1, 4):
            wide = (chains,) if chains > 1 else ()
            sampler = MCMC(NUTS(model), num_warmup=500, num_samples=500, num_chains=chains,
                           chain_method="vectorized", progress_bar=False)
            start_at = {"alpha": jnp.zeros(wide), "beta": jnp.zeros(wide + (k,))}
            for key in (2, 3):
                start = time.perf_counter()
                sampler.run(jax.random.PRNGKey(key), x, y, init_params=start_at)
                jax.block_until_ready(sampler.get_samples())
                ms = 1000 * (time.perf_counter() - start)
            draws = sampler.get_samples(group_by_chain=True).values()
            ess = min(float(effective_sample_size(jax.device_get(v)).min()) for v in draws)
            peers.report("NumPyro", name_of("run", chains), f"{n}x{k}", ms)
            peers.report("NumPyro", name_of("ess", chains), f"{n}x{k}", ms / ess,
                         1000 * ess / ms, "draws/s")


if whole_runs:
    numpyro_runs()
torch = peers.torch_on_cuda()
device = "cuda"
for n, k in shapes:
    x = torch.randn(n, k, device=device)
    y = (torch.rand(n, device=device) < torch.sigmoid(3 * x[:, 0] - 2 * x[:, 1] + 1)).double()
    for chains in (1, 4):
        run(x, y, chains, 1)
        torch.cuda.synchronize()
        start = time.perf_counter()
        count = run(x, y, chains, max(1, steps // 10))
        torch.cuda.synchronize()
        ms = 1000 * (time.perf_counter() - start) / count
        peers.report("torch", name_of("hmc", chains), f"{n}x{k}", ms)
    del x, y
