"""Hamiltonian Monte Carlo for logistic regression by hand in PyTorch, with the sizes and steps of the
rows `hmc` of sampling.R: milliseconds for a gradient of one chain, as lines
"peer,operation,size,ms,rate,unit"; nothing without torch or without a CUDA device.

Positions and momenta stay on the device for a trajectory of 10 steps; the log density is read at
its end. Four chains are four columns of one matrix. STATCL_BENCH_SHAPES and STATCL_BENCH_STEPS as
in sampling.R.
"""
import os
import time

import peers

torch = peers.torch_on_cuda()
device = "cuda"
steps = int(float(os.environ.get("STATCL_BENCH_STEPS", "100")))


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


for shape in os.environ.get("STATCL_BENCH_SHAPES", "1e4x10,1e5x10,1e6x10,1e6x100").split(","):
    n, k = (int(float(part)) for part in shape.split("x"))
    x = torch.randn(n, k, device=device)
    y = (torch.rand(n, device=device) < torch.sigmoid(3 * x[:, 0] - 2 * x[:, 1] + 1)).double()
    for chains in (1, 4):
        run(x, y, chains, 1)
        torch.cuda.synchronize()
        start = time.perf_counter()
        count = run(x, y, chains, max(1, steps // 10))
        torch.cuda.synchronize()
        ms = 1000 * (time.perf_counter() - start) / count
        name = f"hmc_{chains}_chain{'s' if chains > 1 else ''}"
        peers.report("torch", name, f"{n}x{k}", ms)
    del x, y
