# Twenty models: value, gradient, optimum and standard errors by cl_tmb() and by RTMB for the same
# objective, on the host.
#
#   Rscript bench/rtmb-models.R
#
# needs RTMB (CRAN). Differences are relative to the largest element; those of standard errors are
# at one point, where RTMB takes the Hessian of the marginal likelihood by differences. The last
# line says whether all are below 1e-6.
suppressMessages({
  library(statcl)
  library(RTMB)
})
cl_use(engine = "host")
set.seed(1)

difference <- function(a, b) max(abs(a - b)) / max(abs(b), 1e-8)

# Newton's iteration with RTMB's gradient and Hessian, from where nlminb() ends.
polish <- function(objective, x) {
  for (k in 1:3) x <- x - solve(stats::optimHess(x, objective$fn, objective$gr),
                                as.vector(objective$gr(x)))
  x
}

compare <- function(label, nll, start, random = NULL) {
  ours <- cl_tmb(nll, start, random = random)
  theirs <- RTMB::MakeADFun(nll, start, random = random, silent = TRUE)
  at <- theirs$par + 0.05 * sin(seq_along(theirs$par))
  optimum <- lapply(list(ours, theirs), function(o) {
    polish(o, suppressWarnings(nlminb(o$par, o$fn, o$gr))$par)
  })
  x <- optimum[[2]]
  invisible(theirs$fn(x))
  hessian <- numeric_hessian(theirs, x)
  report <- RTMB::sdreport(theirs, x, hessian.fixed = hessian)
  own <- cl_sdreport(ours, x)
  table <- function(s) summary(s)[, 2]
  one <- c(table(own))
  other <- c(sqrt(diag(report$cov.fixed)), if (length(random) > 0L) sqrt(report$diag.cov.random),
             report$sd)
  data.frame(model = label, parameters = length(x), effects = length(unlist(start[random])),
             value = abs(ours$fn(at) - theirs$fn(at)) / max(1, abs(theirs$fn(at))),
             gradient = difference(as.vector(ours$gr(at)), as.vector(theirs$gr(at))),
             optimum = difference(optimum[[1]], x), errors = max(abs(one / other - 1)))
}

# Fourth-order differences of RTMB's gradient, which are more accurate than those of optimHess().
numeric_hessian <- function(objective, x) {
  h <- 1e-3 * pmax(1, abs(x))
  columns <- lapply(seq_along(x), function(k) {
    at <- function(by) as.vector(objective$gr(replace(x, k, x[k] + by * h[k])))
    (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h[k])
  })
  result <- matrix(unlist(columns), length(x))
  (result + t(result)) / 2
}

x1 <- rnorm(80)
group <- rep(1:16, each = 5)
effect <- rnorm(16, 0, 0.7)[group]
normal <- 1 + 0.5 * x1 + effect + rnorm(80, 0, 0.6)
count <- rpois(80, exp(0.7 + 0.4 * x1 + effect))
slopes <- rpois(80, exp(0.7 + effect + rnorm(16, 0.4, 0.5)[group] * x1))
success <- rbinom(80, 6, plogis(0.3 + 0.8 * x1 + effect))
time <- rgamma(80, 3, 3 / exp(0.3 + 0.4 * x1 + effect))
t60 <- as.numeric(arima.sim(list(ar = 0.8), 60, sd = 0.4))
seen <- t60 + rnorm(60, 0, 0.3)
counts <- rpois(60, exp(1 + t60))
line <- Matrix::bandSparse(40, k = 0:1, diagonals = list(c(1, rep(2, 38), 1), rep(-1, 39)),
                           symmetric = TRUE)
M1 <- as(line, "generalMatrix")
M2 <- as(line %*% line, "generalMatrix")
M0 <- as(as(Matrix::Diagonal(40), "generalMatrix"), "CsparseMatrix")
field <- rpois(40, exp(1 + sin((1:40) / 5)))
far <- as.matrix(dist(cbind(runif(25), runif(25))))
spatial <- rnorm(25, 2) + 0.2
age <- 1:20
size <- 30 * (1 - exp(-0.25 * age)) * exp(rnorm(20, 0, 0.05))
stock <- 100 * exp(-0.3 * (0:14)) * exp(rnorm(15, 0, 0.1))
a2 <- sample(8, 90, TRUE)
b2 <- sample(10, 90, TRUE)
crossed <- rpois(90, exp(0.6 + rnorm(8, 0, 0.5)[a2] + rnorm(10, 0, 0.4)[b2]))
three <- matrix(rnorm(90), 30) %*% chol(matrix(c(1, 0.5, 0.2, 0.5, 1, 0.3, 0.2, 0.3, 1), 3))
sites <- rnbinom(80, size = 3, mu = exp(0.7 + 0.4 * x1))

rows <- list(
  compare("linear regression", function(p) {
    getAll(p)
    ADREPORT(exp(s))
    -sum(dnorm(normal, b[1] + b[2] * x1, exp(s), log = TRUE))
  }, list(b = c(0, 0), s = 0)),
  compare("robust regression, t", function(p) {
    getAll(p)
    -sum(dt((normal - b[1] - b[2] * x1) / exp(s), 5, log = TRUE) - s)
  }, list(b = c(0.5, 0), s = 0)),
  compare("Poisson regression", function(p) {
    -sum(dpois(count, exp(p$b[1] + p$b[2] * x1), log = TRUE))
  }, list(b = c(0, 0))),
  compare("negative binomial regression", function(p) {
    mu <- exp(p$b[1] + p$b[2] * x1)
    -sum(dnbinom2(sites, mu, mu * (1 + mu * exp(p$s)), log = TRUE))
  }, list(b = c(0, 0), s = -1)),
  compare("von Bertalanffy growth", function(p) {
    getAll(p)
    mean <- exp(linf) * (1 - exp(-exp(k) * age))
    ADREPORT(mean[1:3])
    -sum(dnorm(log(size), log(mean), exp(s), log = TRUE))
  }, list(linf = 3.3, k = -1.2, s = -2)),
  compare("multivariate normal", function(p) {
    sd <- exp(p$s)
    r <- unstructured(3)$corr(p$r)
    -sum(dmvnorm(three, p$m, r * (sd %*% t(sd)), log = TRUE))
  }, list(m = numeric(3), s = numeric(3), r = numeric(3))),
  compare("random intercepts", function(p) {
    getAll(p)
    u %~% dnorm(0, exp(s[1]))
    normal %~% dnorm(b[1] + b[2] * x1 + u[group], exp(s[2]))
  }, list(b = c(0, 0), s = c(0, 0), u = numeric(16)), "u"),
  compare("Poisson, random intercepts", function(p) {
    getAll(p)
    u %~% dnorm(0, exp(s))
    ADREPORT(mean(exp(u)))
    count %~% dpois(exp(b[1] + b[2] * x1 + u[group]))
  }, list(b = c(0, 0), s = 0, u = numeric(16)), "u"),
  compare("binomial, random intercepts", function(p) {
    getAll(p)
    -sum(dnorm(u, 0, exp(s), log = TRUE)) -
      sum(dbinom_robust(success, 6, b[1] + b[2] * x1 + u[group], log = TRUE))
  }, list(b = c(0, 0), s = 0, u = numeric(16)), "u"),
  compare("gamma, random intercepts", function(p) {
    getAll(p)
    u %~% dnorm(0, exp(s))
    time %~% dgamma(shape = exp(l), scale = exp(b[1] + b[2] * x1 + u[group] - l))
  }, list(b = c(0, 0), s = 0, l = 0.5, u = numeric(16)), "u"),
  compare("random slopes", function(p) {
    getAll(p)
    sd <- exp(s)
    k <- unstructured(2)$corr(r) * (sd %*% t(sd))
    nll <- -sum(dmvnorm(u, 0, k, log = TRUE)) - dnorm(r, 0, 0.5, log = TRUE)
    nll - sum(dpois(slopes, exp(b[1] + u[group, 1] + (b[2] + u[group, 2]) * x1), log = TRUE))
  }, list(b = c(0, 0), s = c(-0.5, -1), r = 0.1, u = matrix(0, 16, 2)), "u"),
  compare("crossed effects", function(p) {
    getAll(p)
    u %~% dnorm(0, exp(s[1]))
    v %~% dnorm(0, exp(s[2]))
    crossed %~% dpois(exp(mu + u[a2] + v[b2]))
  }, list(mu = 0, s = c(-0.5, -0.5), u = numeric(8), v = numeric(10)), c("u", "v")),
  compare("local level", function(p) {
    getAll(p)
    nll <- -dnorm(u[1], 0, 2, log = TRUE)
    for (i in 2:60) nll <- nll - dnorm(u[i], u[i - 1], exp(s[1]), log = TRUE)
    nll - sum(dnorm(seen, u, exp(s[2]), log = TRUE))
  }, list(s = c(-1, -1), u = numeric(60)), "u"),
  compare("autoregression with noise", function(p) {
    getAll(p)
    phi <- 2 * plogis(r) - 1
    ADREPORT(phi)
    -dautoreg(u, phi = phi, scale = exp(s[1]), log = TRUE) -
      sum(dnorm(seen, m + u, exp(s[2]), log = TRUE)) - dnorm(r, 2, 1, log = TRUE)
  }, list(m = 0, r = 1, s = c(-0.5, -1), u = numeric(60)), "u"),
  compare("autoregression of counts", function(p) {
    getAll(p)
    phi <- 2 * plogis(r) - 1
    -dautoreg(u, phi = phi, scale = exp(s), log = TRUE) -
      sum(dpois(counts, exp(m + u), log = TRUE))
  }, list(m = 1, r = 1, s = -0.5, u = numeric(60)), "u"),
  compare("stochastic volatility", function(p) {
    getAll(p)
    phi <- 2 * plogis(r) - 1
    nll <- -dnorm(h[1], 0, exp(s) / sqrt(1 - phi^2), log = TRUE)
    nll <- nll - sum(dnorm(h[-1], phi * h[-60], exp(s), log = TRUE)) - dnorm(r, 2, 1, log = TRUE)
    nll - sum(dnorm(seen, 0, exp(m + h / 2), log = TRUE)) - dnorm(s, -1, 0.3, log = TRUE)
  }, list(m = 0, r = 2, s = -1, h = numeric(60)), "h"),
  compare("surplus production", function(p) {
    getAll(p)
    nll <- -sum(dnorm(n[-1], n[-15] - exp(z), exp(s[1]), log = TRUE))
    nll <- nll - dnorm(n[1], 4.6, 1, log = TRUE)
    nll - sum(dnorm(log(stock), n, exp(s[2]), log = TRUE)) - sum(dnorm(s, -2, 0.5, log = TRUE))
  }, list(z = -1, s = c(-2, -2), n = rep(4, 15)), "n"),
  compare("spatial Gaussian process", function(p) {
    getAll(p)
    k <- exp(2 * s[1]) * exp(-far * exp(-l))
    -dmvnorm(u, 0, k, log = TRUE) - sum(dnorm(spatial, m + u, exp(s[2]), log = TRUE)) -
      dnorm(l, -1, 0.5, log = TRUE) - sum(dnorm(s, -0.5, 0.4, log = TRUE))
  }, list(m = 1, l = -1, s = c(-0.5, -0.5), u = numeric(25)), "u"),
  compare("SPDE precision", function(p) {
    getAll(p)
    kappa <- exp(k)
    Q <- kappa^4 * M0 + 2 * kappa^2 * M1 + M2
    -dgmrf(x, 0, exp(2 * t) * Q, log = TRUE) - sum(dpois(field, exp(m + x), log = TRUE)) -
      dnorm(k, -1, 0.5, log = TRUE)
  }, list(m = 1, k = -1, t = 0, x = numeric(40)), "x"),
  compare("conditional autoregression", function(p) {
    getAll(p)
    Q <- exp(t) * (M1 + exp(k) * M0)
    ADREPORT(sum(exp(x)))
    -dgmrf(x, 0, Q, log = TRUE) - sum(dpois(field, exp(m + x), log = TRUE)) -
      dnorm(k, -2, 0.7, log = TRUE)
  }, list(m = 1, k = -2, t = 1, x = numeric(40)), "x")
)
table <- do.call(rbind, rows)
print(table, digits = 2, row.names = FALSE)
cat(sprintf("%d models, all below 1e-6: %s\n", nrow(table), all(unlist(table[4:7]) < 1e-6)))
