# Distributions of Stan programs as R functions, for the tests of their densities and distribution
# functions: R's functions or formulas of the Stan functions reference.

# name, arguments with their types, the point, and the log density of the point.
stan_continuous <- list(
  normal = list("real y; real m; real<lower=0> s;", "m, s", list(y = 0.3, m = 1, s = 2),
                function(y, m, s) dnorm(y, m, s, log = TRUE)),
  std_normal = list("real y;", "", list(y = 0.7), function(y) dnorm(y, log = TRUE)),
  cauchy = list("real y; real m; real<lower=0> s;", "m, s", list(y = 0.3, m = 1, s = 2),
                function(y, m, s) dcauchy(y, m, s, log = TRUE)),
  student_t = list("real y; real<lower=0> n; real m; real<lower=0> s;", "n, m, s",
                   list(y = 0.3, n = 4.5, m = 1, s = 2),
                   function(y, n, m, s) dt((y - m) / s, n, log = TRUE) - log(s)),
  double_exponential = list("real y; real m; real<lower=0> s;", "m, s",
                            list(y = 0.3, m = 1, s = 2),
                            function(y, m, s) -log(2 * s) - abs(y - m) / s),
  logistic = list("real y; real m; real<lower=0> s;", "m, s", list(y = 0.3, m = 1, s = 2),
                  function(y, m, s) dlogis(y, m, s, log = TRUE)),
  gumbel = list("real y; real m; real<lower=0> s;", "m, s", list(y = 0.3, m = 1, s = 2),
                function(y, m, s) -log(s) - (y - m) / s - exp(-(y - m) / s)),
  lognormal = list("real<lower=0> y; real m; real<lower=0> s;", "m, s",
                   list(y = 0.3, m = 1, s = 2), function(y, m, s) dlnorm(y, m, s, log = TRUE)),
  chi_square = list("real<lower=0> y; real<lower=0> n;", "n", list(y = 0.8, n = 3.5),
                    function(y, n) dchisq(y, n, log = TRUE)),
  inv_chi_square = list("real<lower=0> y; real<lower=0> n;", "n", list(y = 0.8, n = 3.5),
                        function(y, n) dchisq(1 / y, n, log = TRUE) - 2 * log(y)),
  scaled_inv_chi_square = list("real<lower=0> y; real<lower=0> n; real<lower=0> s;", "n, s",
                               list(y = 0.8, n = 3.5, s = 1.3), function(y, n, s) {
                                 dgamma(1 / y, n / 2, n * s^2 / 2, log = TRUE) - 2 * log(y)
                               }),
  exponential = list("real<lower=0> y; real<lower=0> b;", "b", list(y = 0.8, b = 1.7),
                     function(y, b) dexp(y, b, log = TRUE)),
  gamma = list("real<lower=0> y; real<lower=0> a; real<lower=0> b;", "a, b",
               list(y = 0.8, a = 2.2, b = 1.7), function(y, a, b) dgamma(y, a, b, log = TRUE)),
  inv_gamma = list("real<lower=0> y; real<lower=0> a; real<lower=0> b;", "a, b",
                   list(y = 0.8, a = 2.2, b = 1.7),
                   function(y, a, b) dgamma(1 / y, a, b, log = TRUE) - 2 * log(y)),
  weibull = list("real<lower=0> y; real<lower=0> a; real<lower=0> b;", "a, b",
                 list(y = 0.8, a = 2.2, b = 1.7), function(y, a, b) dweibull(y, a, b, log = TRUE)),
  frechet = list("real<lower=0> y; real<lower=0> a; real<lower=0> b;", "a, b",
                 list(y = 0.8, a = 2.2, b = 1.7),
                 function(y, a, b) dweibull(1 / y, a, 1 / b, log = TRUE) - 2 * log(y)),
  rayleigh = list("real<lower=0> y; real<lower=0> s;", "s", list(y = 0.8, s = 1.7),
                  function(y, s) dweibull(y, 2, s * sqrt(2), log = TRUE)),
  loglogistic = list("real<lower=0> y; real<lower=0> a; real<lower=0> b;", "a, b",
                     list(y = 0.8, a = 2.2, b = 1.7),
                     function(y, a, b) dlogis(log(y), log(a), 1 / b, log = TRUE) - log(y)),
  pareto = list("real<lower=0> y; real<lower=0> m; real<lower=0> a;", "m, a",
                list(y = 2.5, m = 1.2, a = 1.7),
                function(y, m, a) dexp(log(y / m), a, log = TRUE) - log(y)),
  pareto_type_2 = list("real<lower=0> y; real m; real<lower=0> l; real<lower=0> a;", "m, l, a",
                       list(y = 2.5, m = 0.3, l = 1.2, a = 1.7),
                       function(y, m, l, a) log(a / l) - (a + 1) * log(1 + (y - m) / l)),
  beta = list("real<lower=0, upper=1> y; real<lower=0> a; real<lower=0> b;", "a, b",
              list(y = 0.3, a = 2.2, b = 1.7), function(y, a, b) dbeta(y, a, b, log = TRUE)),
  beta_proportion = list("real<lower=0, upper=1> y; real<lower=0, upper=1> m; real<lower=0> k;",
                         "m, k", list(y = 0.3, m = 0.4, k = 5),
                         function(y, m, k) dbeta(y, m * k, (1 - m) * k, log = TRUE)),
  uniform = list("real y; real a; real b;", "a, b", list(y = 0.3, a = -1, b = 2),
                 function(y, a, b) dunif(y, a, b, log = TRUE)),
  von_mises = list("real y; real m; real<lower=0> k;", "m, k", list(y = 0.3, m = 0.5, k = 2),
                   function(y, m, k) k * cos(y - m) - log(2 * pi * besselI(k, 0))),
  skew_normal = list("real y; real m; real<lower=0> s; real a;", "m, s, a",
                     list(y = 0.3, m = 1, s = 2, a = -0.7), function(y, m, s, a) {
                       log(2) + dnorm(y, m, s, log = TRUE) + pnorm(a * (y - m) / s, log.p = TRUE)
                     }),
  skew_double_exponential = list("real y; real m; real<lower=0> s; real<lower=0, upper=1> t;",
                                 "m, s, t", list(y = 0.3, m = 1, s = 2, t = 0.3),
                                 function(y, m, s, t) {
                                   log(2 * t * (1 - t) / s) -
                                     2 / s * ((1 - t) * (y < m) * (m - y) + t * (y > m) * (y - m))
                                 }),
  exp_mod_normal = list("real y; real m; real<lower=0> s; real<lower=0> l;", "m, s, l",
                        list(y = 0.3, m = 1, s = 2, l = 0.7), function(y, m, s, l) {
                          log(integrate(function(z) dnorm(y - z, m, s) * dexp(z, l), 0, Inf,
                                        rel.tol = 1e-12)$value)
                        }))

# The series for long times, with more terms than any time here needs.
stan_wiener_density <- function(y, a, t, b, d) {
  k <- 1:400
  series <- vapply((y - t) / a^2, function(s) {
    sum(k * exp(-0.5 * k^2 * pi^2 * s) * sin(k * pi * (1 - b)))
  }, 0)
  log(pi * series) - 2 * log(a) + d * a * (1 - b) - 0.5 * d^2 * (y - t)
}
stan_continuous$wiener <- list(paste("real<lower=0> y; real<lower=0> a; real<lower=0> t;",
                                "real<lower=0, upper=1> b; real d;"),
                          "a, t, b, d", list(y = 0.8, a = 1.5, t = 0.2, b = 0.4, d = 0.5),
                          stan_wiener_density)

stan_discrete <- list(
  bernoulli = list("real<lower=0, upper=1> p;", "p", list(p = 0.3), c(0, 1, 1),
                   function(y, p) dbinom(y, 1, p, log = TRUE)),
  bernoulli_logit = list("real a;", "a", list(a = 0.3), c(0, 1, 1),
                         function(y, a) dbinom(y, 1, plogis(a), log = TRUE)),
  binomial = list("real<lower=0, upper=1> p;", "9, p", list(p = 0.3), c(0, 4, 9),
                  function(y, p) dbinom(y, 9, p, log = TRUE)),
  binomial_logit = list("real a;", "9, a", list(a = 0.3), c(0, 4, 9),
                        function(y, a) dbinom(y, 9, plogis(a), log = TRUE)),
  beta_binomial = list("real<lower=0> a; real<lower=0> b;", "9, a, b", list(a = 1.5, b = 2.5),
                       c(0, 4, 9),
                       function(y, a, b) lchoose(9, y) + lbeta(y + a, 9 - y + b) - lbeta(a, b)),
  poisson = list("real<lower=0> l;", "l", list(l = 2.5), c(0, 4, 9),
                 function(y, l) dpois(y, l, log = TRUE)),
  poisson_log = list("real a;", "a", list(a = 0.9), c(0, 4, 9),
                     function(y, a) dpois(y, exp(a), log = TRUE)),
  neg_binomial = list("real<lower=0> a; real<lower=0> b;", "a, b", list(a = 1.5, b = 0.5),
                      c(0, 4, 9), function(y, a, b) dnbinom(y, a, b / (1 + b), log = TRUE)),
  neg_binomial_2 = list("real<lower=0> m; real<lower=0> f;", "m, f", list(m = 2.5, f = 0.5),
                        c(0, 4, 9), function(y, m, f) dnbinom(y, f, mu = m, log = TRUE)),
  neg_binomial_2_log = list("real e; real<lower=0> f;", "e, f", list(e = 0.8, f = 0.5),
                            c(0, 4, 9),
                            function(y, e, f) dnbinom(y, f, mu = exp(e), log = TRUE)),
  categorical = list("vector[3] t;", "softmax(t)", list(t = c(0.2, 0.3, 0.5)), c(1, 3, 2),
                     function(y, t) (t - log(sum(exp(t))))[y]),
  categorical_logit = list("vector[3] b;", "b", list(b = c(0.2, -0.3, 0.5)), c(1, 3, 2),
                           function(y, b) b[y] - log(sum(exp(b)))),
  ordered_logistic = list("real e; ordered[2] c;", "e, c", list(e = 0.2, c = c(-0.3, 0.5)),
                          c(1, 3, 2), function(y, e, c) {
                            log(diff(c(0, plogis(c - e), 1))[y])
                          }),
  ordered_probit = list("real e; ordered[2] c;", "e, c", list(e = 0.2, c = c(-0.3, 0.5)),
                        c(1, 3, 2), function(y, e, c) log(diff(c(0, pnorm(c - e), 1))[y])))
