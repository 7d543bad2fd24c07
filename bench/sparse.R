# Random effects with a sparse Hessian: Laplace approximations by cl_tmb() and by RTMB, on the host.
#
#   Rscript bench/sparse.R [quick]
#
# needs RTMB (CRAN). Both get the same objective. Processor time in ms of a value and a gradient at
# new parameters near the optimum, as an optimiser asks for them, the best of three; differences are
# relative to the largest element.
suppressMessages({
  library(statcl)
  library(RTMB)
})
cl_use(engine = "host")
set.seed(1)
quick <- "quick" %in% commandArgs(TRUE)

processor_time <- function(expr) {
  start <- sum(proc.time()[1:2])
  force(expr)
  sum(proc.time()[1:2]) - start
}

difference <- function(a, b) max(abs(a - b)) / max(abs(b))

compare <- function(label, nll, start, random, report = FALSE) {
  first <- processor_time({
    ours <- cl_tmb(nll, start, random = random)
    ours$gr(ours$par)
  })
  theirs_first <- processor_time({
    theirs <- RTMB::MakeADFun(nll, start, random = random, silent = TRUE)
    theirs$gr(theirs$par)
  })
  x <- nlminb(ours$par, ours$fn, ours$gr)$par
  best <- nlminb(theirs$par, theirs$fn, theirs$gr)$par
  ms <- function(objective, k) {
    at <- x + 0.01 * k
    1e3 * processor_time({
      objective$fn(at)
      objective$gr(at)
    })
  }
  at <- x + 0.03
  row <- data.frame(
    model = label, effects = length(unlist(start[random])),
    rtmb_ms = min(vapply(1:3, ms, 0, objective = theirs)),
    statcl_ms = min(vapply(1:3, ms, 0, objective = ours)),
    rtmb_first_s = theirs_first, statcl_first_s = first,
    value = difference(ours$fn(at), theirs$fn(at)),
    gradient = difference(as.vector(ours$gr(at)), as.vector(theirs$gr(at))),
    optimum = difference(x, best), errors = NA_real_)
  if (report) {
    errors <- function(s) c(sqrt(diag(s$cov.fixed)), sqrt(s$diag.cov.random))
    row$errors <- difference(errors(cl_sdreport(ours, x)), errors(RTMB::sdreport(theirs, x)))
  }
  row
}

volatility <- function(n) {
  h <- as.numeric(stats::arima.sim(list(ar = 0.95), n, sd = 0.2))
  y <- exp(-0.5 + h / 2) * rnorm(n)
  function(p) {
    h <- p$h
    phi <- 2 * plogis(p$l) - 1
    sd <- exp(p$s)
    -dnorm(h[1], 0, sd / sqrt(1 - phi^2), log = TRUE) -
      sum(dnorm(h[-1], phi * h[-n], sd, log = TRUE)) -
      sum(dnorm(y, 0, exp(p$mu + h / 2), log = TRUE))
  }
}

nile <- function() {
  y <- as.numeric(datasets::Nile) / 100
  n <- length(y)
  function(p) {
    -dnorm(p$u[1], 10, 3, log = TRUE) - sum(dnorm(p$u[-1], p$u[-n], exp(p$s[1]), log = TRUE)) -
      sum(dnorm(y, p$u, exp(p$s[2]), log = TRUE))
  }
}

crossed <- function(levels, n) {
  a <- sample(levels, n, TRUE)
  b <- sample(levels, n, TRUE)
  y <- rpois(n, exp(0.5 + rnorm(levels, 0, 0.5)[a] + rnorm(levels, 0, 0.3)[b]))
  function(p) {
    -sum(dnorm(p$u, 0, exp(p$s[1]), log = TRUE)) - sum(dnorm(p$v, 0, exp(p$s[2]), log = TRUE)) -
      sum(dpois(y, exp(p$mu + p$u[a] + p$v[b]), log = TRUE))
  }
}

# Areas on a lattice: a structured and an unstructured part.
areas <- function(m) {
  y <- rpois(m * m, exp(0.3 + 0.5 * as.vector(outer(1:m, 1:m, function(i, j) sin(i / 5 + j / 7)))))
  id <- matrix(seq_len(m * m), m)
  edges <- rbind(cbind(as.vector(id[-1, ]), as.vector(id[-m, ])),
                 cbind(as.vector(id[, -1]), as.vector(id[, -m])))
  function(p) {
    d <- p$u[edges[, 1]] - p$u[edges[, 2]]
    0.5 * sum(d^2) + 0.5e-3 * sum(p$u^2) - sum(dnorm(p$v, 0, 1, log = TRUE)) -
      sum(dpois(y, exp(p$mu + exp(p$s[1]) * p$u + exp(p$s[2]) * p$v), log = TRUE))
  }
}

# Autoregressions along rows and along columns.
lattice <- function(m) {
  field <- matrix(rnorm(m * m, 0, 0.3), m)
  for (i in 2:m) field[i, ] <- field[i, ] + 0.7 * field[i - 1, ]
  for (j in 2:m) field[, j] <- field[, j] + 0.5 * field[, j - 1]
  y <- rpois(m * m, exp(1 + field))
  function(p) {
    r <- 2 * plogis(p$r) - 1
    x <- p$x
    along <- x[-1, ] - r[1] * x[-m, ]
    across <- along[, -1] - r[2] * along[, -m]
    sd <- exp(p$s)
    -sum(dnorm(across, 0, sd, log = TRUE)) -
      sum(dnorm(along[, 1], 0, sd / sqrt(1 - r[2]^2), log = TRUE)) -
      sum(dnorm(x[1, -1] - r[2] * x[1, -m], 0, sd / sqrt(1 - r[1]^2), log = TRUE)) -
      dnorm(x[1, 1], 0, sd / sqrt((1 - r[1]^2) * (1 - r[2]^2)), log = TRUE) -
      sum(dpois(y, exp(p$mu + as.vector(x)), log = TRUE))
  }
}

n <- if (quick) 2000 else 100000
levels <- if (quick) 200 else 5000
m <- if (quick) 20 else 55
rows <- list(
  compare("local level, the Nile", nile(), list(s = c(-1, 0), u = numeric(100)), "u", TRUE),
  compare("stochastic volatility", volatility(2000), list(mu = 0, l = 2, s = -1, h = numeric(2000)),
          "h", TRUE),
  compare("the same, long", volatility(n), list(mu = 0, l = 2, s = -1, h = numeric(n)), "h"),
  compare("crossed effects", crossed(levels, 2 * levels),
          list(mu = 0, s = c(-1, -1), u = numeric(levels), v = numeric(levels)), c("u", "v")),
  compare("areas, BYM", areas(m), list(mu = 0, s = c(-1, -1), u = numeric(m^2), v = numeric(m^2)),
          c("u", "v"), TRUE),
  compare("AR1 x AR1", lattice(m), list(mu = 0, s = -1, r = c(1, 1), x = matrix(0, m, m)), "x",
          TRUE)
)
table <- do.call(rbind, rows)
table$ratio <- table$rtmb_ms / table$statcl_ms
print(table, digits = 3, row.names = FALSE)
