"""Value and gradient of the densities of models.R in JAX, jit(value_and_grad), and in PyTorch,
torch.compile, in double precision, with the sizes of models.R. Prints lines
"peer,operation,size,ms,rate,unit"; nothing without a CUDA device.

Parameters come from the host and value and gradient go there, as in models.R. Medians by the clock,
compilation not counted.
"""
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import numpy as np

import peers

random = np.random.default_rng(1)
HALF_LOG_2_PI = 0.5 * np.log(2 * np.pi)


def models(m):
    """(operation, size, data, parameters, density) for each model; `m` has the functions of the
    array library that the densities need."""

    def normal(x, mean, sd):
        z = (x - mean) / sd
        return -0.5 * z * z - m.log(sd) - HALF_LOG_2_PI

    one = m.one

    for n, p in ((581012, 55), (1000000, 100)):
        def logistic(par, data):
            eta = par["alpha"] + data["x"] @ par["beta"]
            return m.sum(data["y"] * eta - m.softplus(eta))

        yield ("model_logistic", f"{n}x{p}",
               {"x": random.standard_normal((n, p)), "y": 1.0 * (random.random(n) < 0.5)},
               {"alpha": np.array(0.1), "beta": random.standard_normal(p) / p}, logistic)

    n, groups = 1000000, 10000

    def hierarchical(par, data):
        mu, tau, sigma = par["mu"], m.exp(par["log_tau"]), m.exp(par["log_sigma"])
        group = data["group"]
        eta = mu[0] + tau[0] * par["a"][group] + (mu[1] + tau[1] * par["b"][group]) * data["x"]
        return (m.sum(normal(data["y"], eta, sigma)) + m.sum(normal(par["a"], 0.0, one)) +
                m.sum(normal(par["b"], 0.0, one)) + m.sum(normal(mu, 0.0, 5 * one)) +
                m.sum(normal(par["log_tau"], 0.0, one)) + normal(par["log_sigma"], 0.0, one))

    yield ("model_hierarchical", f"{n} in {groups}",
           {"group": np.arange(n) % groups, "x": random.standard_normal(n),
            "y": random.standard_normal(n)},
           {"mu": np.array([0.1, 0.2]), "log_tau": np.array([-0.5, -0.3]),
            "log_sigma": np.array(0.1), "a": random.standard_normal(groups) / 10,
            "b": random.standard_normal(groups) / 10}, hierarchical)

    for n in (1000, 4000):
        def gp(par, data):
            k = m.exp(2 * par["log_sd"] -
                      0.5 * data["distance2"] * m.exp(-2 * par["log_lengthscale"]))
            k = k + m.exp(2 * par["log_noise"]) * data["identity"]
            factor = m.cholesky(k)
            z = m.solve_lower(factor, data["y"])
            return (-0.5 * m.sum(z * z) - m.sum(m.log(m.diagonal(factor))) -
                    len(data["y"]) * HALF_LOG_2_PI)

        x = np.sort(10 * random.random(n))
        yield ("model_gp", str(n),
               {"distance2": (x[:, None] - x)**2, "identity": np.eye(n),
                "y": random.standard_normal(n)},
               {"log_sd": np.array(0.1), "log_lengthscale": np.array(0.0),
                "log_noise": np.array(-1.0)}, gp)

    n = 1000000

    def mixture(par, data):
        log_weight = par["weight"] - m.logsumexp(par["weight"], 0)
        parts = log_weight + normal(data["y"][:, None], par["mu"], m.exp(par["log_sigma"]))
        return m.sum(m.logsumexp(parts, 1))

    yield ("model_mixture", str(n), {"y": random.standard_normal(n)},
           {"mu": np.array([-1.0, 0, 1, 2]), "log_sigma": np.full(4, 0.1),
            "weight": np.array([0.1, 0.2, 0.3, 0.4])}, mixture)

    n = 100000

    def factor_model(par, data):
        mean = par["scores"] @ par["loadings"].T
        return (m.sum(normal(data["y"], mean, m.exp(par["log_psi"]))) +
                m.sum(normal(par["scores"], 0.0, one)) + m.sum(normal(par["loadings"], 0.0, one)) +
                m.sum(normal(par["log_psi"], 0.0, one)))

    yield ("model_factor", f"{n}x20", {"y": random.standard_normal((n, 20))},
           {"scores": random.standard_normal((n, 3)), "loadings": random.standard_normal((20, 3)),
            "log_psi": np.full(20, 0.1)}, factor_model)

    sequences = 10000

    def hidden_markov(par, data):
        transition = m.softmax(par["logits"], 1)
        emission = m.exp(normal(data["y"][:, :, None], par["mu"], m.exp(par["log_sigma"])))

        def step(state, now):
            ahead, total = state
            scale = m.sum(ahead, 1)
            return ((ahead / scale[:, None]) @ transition) * now, total + m.sum(m.log(scale))

        ahead, total = m.scan(step, (0.25 * emission[0], 0.0 * one), emission[1:])
        return total + m.sum(m.log(m.sum(ahead, 1)))

    yield ("model_hidden_markov", f"{sequences}x100",
           {"y": random.standard_normal((100, sequences))},
           {"mu": np.array([-1.0, 0, 1, 2]), "log_sigma": np.array(0.1), "logits": np.eye(4)},
           hidden_markov)


def time_calls(call, budget=2.0):
    """Median milliseconds of `call(i)`, which waits by itself."""
    for i in range(3):
        call(i)
    taken = []
    begin = time.perf_counter()
    while len(taken) < 50 and (len(taken) < 5 or time.perf_counter() - begin < budget):
        start = time.perf_counter()
        call(len(taken))
        taken.append(1000 * (time.perf_counter() - start))
    return sorted(taken)[len(taken) // 2]


def run_jax():
    try:
        import jax
    except ImportError:
        return
    jax.config.update("jax_enable_x64", True)
    if jax.default_backend() != "gpu":
        return
    import jax.numpy as jnp

    class Functions:
        one = 1.0
        log, exp, sum, diagonal = jnp.log, jnp.exp, jnp.sum, jnp.diagonal
        softplus, softmax = jax.nn.softplus, jax.nn.softmax
        logsumexp = jax.scipy.special.logsumexp
        cholesky = jnp.linalg.cholesky

        @staticmethod
        def solve_lower(factor, y):
            return jax.scipy.linalg.solve_triangular(factor, y, lower=True)

        @staticmethod
        def scan(step, state, inputs):
            return jax.lax.scan(lambda s, x: (step(s, x), None), state, inputs)[0]

    for operation, size, data, start, density in models(Functions):
        data = {key: jnp.asarray(value) for key, value in data.items()}
        both = jax.jit(jax.value_and_grad(density))

        def call(i):
            par = {key: value + 1e-6 * (i % 7) for key, value in start.items()}
            return jax.device_get(both(par, data))

        peers.report("jax", operation, size, time_calls(call))


def run_torch():
    torch = peers.torch_on_cuda()

    class Functions:
        one = torch.ones((), device="cuda")
        log, exp, sum, softmax = torch.log, torch.exp, torch.sum, torch.softmax
        softplus = torch.nn.functional.softplus
        logsumexp, diagonal, cholesky = torch.logsumexp, torch.diagonal, torch.linalg.cholesky

        @staticmethod
        def solve_lower(factor, y):
            return torch.linalg.solve_triangular(factor, y[:, None], upper=False)

        @staticmethod
        def scan(step, state, inputs):
            for now in inputs:
                state = step(state, now)
            return state

    for operation, size, data, start, density in models(Functions):
        if operation == "model_hidden_markov":
            continue  # torch.compile unrolls the loop, and takes minutes
        data = {key: torch.as_tensor(value, device="cuda") for key, value in data.items()}
        compiled = torch.compile(density)

        def call(i):
            par = {key: torch.as_tensor(value + 1e-6 * (i % 7)).cuda().requires_grad_()
                   for key, value in start.items()}
            value = compiled(par, data)
            value.backward()
            return value.item(), [x.grad.cpu() for x in par.values()]

        peers.report("torch", operation, size, time_calls(call))


if "torch" not in sys.argv[1:]:
    run_jax()
if "jax" not in sys.argv[1:]:
    run_torch()
