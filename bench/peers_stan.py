"""The models of stan.R by NumPyro, as lines "peer,operation,size,ms,rate,unit": milliseconds by the
clock of the potential energy and its gradient at unconstrained parameters, compiled, in double
precision, with the data on the device. Only if JAX has a GPU, or JAX_PLATFORMS is set; the argument
"small" takes the sizes of a CPU device.
"""
import os
import sys
import time

import peers

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
try:
    import jax
    import numpyro
except ImportError:
    sys.exit(0)
if jax.default_backend() == "cpu" and "JAX_PLATFORMS" not in os.environ:
    sys.exit(0)
numpyro.enable_x64()
import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.infer.util import initialize_model

SMALL = "small" in sys.argv
constraints = dist.constraints
keys = iter(jax.random.split(jax.random.PRNGKey(0), 100))


def flat(name, support, shape=()):
    return numpyro.sample(name, dist.ImproperUniform(support, (), shape))


def normals(*shape):
    return jax.random.normal(next(keys), shape)


def coins(n, share):
    return (jax.random.uniform(next(keys), (n,)) < share) * 1.0


def measure(name, size, model, *data, times=11):
    found = initialize_model(next(keys), model, model_args=data, dynamic_args=True)
    start = found.param_info.z

    def energy(z, *data):
        return found.potential_fn(*data)(z)

    gradient = jax.jit(jax.value_and_grad(energy))
    taken = []
    for i in range(times + 2):  # the first compiles
        z = jax.block_until_ready({k: v + 1e-6 * i for k, v in start.items()})
        begin = time.perf_counter()
        jax.block_until_ready(gradient(z, *data))
        taken.append(1000 * (time.perf_counter() - begin))
    peers.report("NumPyro", name, size, sorted(taken[2:])[times // 2])


def logistic(x, y):
    eta = flat("alpha", constraints.real) + x @ flat("beta", constraints.real, (x.shape[1],))
    numpyro.sample("y", dist.Bernoulli(logits=eta), obs=y)


def radon(county, floor, y):
    mu = numpyro.sample("mu", dist.Normal(0, 10))
    beta = numpyro.sample("beta", dist.Normal(0, 10))
    tau = numpyro.sample("tau", dist.HalfNormal(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    a = numpyro.sample("a", dist.Normal(mu, tau).expand([y.shape[0] // 100]).to_event(1))
    numpyro.sample("y", dist.Normal(a[county] + beta * floor, sigma), obs=y)


def process(x, y):
    sd, lengthscale, noise = (flat(name, constraints.positive) for name in ("sd", "length", "noise"))
    k = sd**2 * jnp.exp(-0.5 * ((x[:, None] - x) / lengthscale) ** 2)
    k += noise**2 * jnp.eye(x.shape[0])
    numpyro.sample("y", dist.MultivariateNormal(0.0, scale_tril=jnp.linalg.cholesky(k)), obs=y)


def mixture(y):
    mu = flat("mu", constraints.ordered_vector, (2,))
    numpyro.factor("prior", dist.Normal(0, 2).log_prob(mu).sum())
    sigma = numpyro.sample("sigma", dist.HalfNormal(2).expand([2]).to_event(1))
    theta = numpyro.sample("theta", dist.Beta(5, 5))
    parts = dist.Normal(mu, sigma).log_prob(y[:, None]) + jnp.log(jnp.stack([theta, 1 - theta]))
    numpyro.factor("y", jnp.logaddexp(parts[:, 0], parts[:, 1]).sum())


def items(person, item, y):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    ability = numpyro.sample("ability", dist.Normal().expand([y.shape[0] // 100]).to_event(1))
    a = numpyro.sample("a", dist.LogNormal().expand([100]).to_event(1))
    b = numpyro.sample("b", dist.Normal(mu, 1).expand([100]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=a[item] * (ability[person] - b[item])), obs=y)


n, p = (20000, 10) if SMALL else (1000000, 100)
measure("stan_logistic", f"{n}x{p}", logistic, normals(n, p), coins(n, 0.5))
n = 10000 if SMALL else 1000000
at = jnp.arange(n) % (n // 100)
measure("stan_radon", n, radon, at, coins(n, 0.3), normals(n))
measure("stan_mixture", n, mixture, normals(n) + 2 * coins(n, 0.5))
measure("stan_items", n, items, at, jnp.arange(n) // (n // 100), coins(n, 0.5))
n = 100 if SMALL else 4000
measure("stan_gp", n, process, jnp.sort(10 * jax.random.uniform(next(keys), (n,))), normals(n))
