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

# Catches of ages in years: log fishing mortality is a separable field around an effect of each age,
# log recruits are a random walk, and the numbers of a cohort follow from both.
catches <- function(ages, years) {
  expected <- function(f, recruits) {
    total <- exp(f) + 0.2
    numbers <- list(recruits[ages - 1L + seq_len(years)])
    for (a in 2:ages) {
      younger <- numbers[[a - 1L]]
      numbers[[a]] <- c(recruits[ages + 1L - a], younger[-years] - total[a - 1L, -years])
    }
    do.call(rbind, numbers) + f - log(total) + log(1 - exp(-total))
  }
  field <- matrix(rnorm(ages * years, 0, 0.15), ages)
  for (i in 2:ages) field[i, ] <- field[i, ] + 0.6 * field[i - 1, ]
  for (j in 2:years) field[, j] <- field[, j] + 0.8 * field[, j - 1]
  recruits <- 8 + cumsum(rnorm(years + ages - 1, 0, 0.2))
  level <- -1.5 + 0.7 * plogis(seq_len(ages) - 3)
  y <- expected(level + field, recruits) + rnorm(ages * years, 0, 0.2)
  function(p) {
    r <- 2 * plogis(p$r) - 1
    by_age <- function(x) dautoreg(x, phi = r[1], log = TRUE)
    by_year <- function(x) dautoreg(x, phi = r[2], log = TRUE)
    -dseparable(by_age, by_year)(p$f, scale = exp(p$s[1])) -
      sum(dnorm(p$n[-1], p$n[-length(p$n)], exp(p$s[2]), log = TRUE)) -
      sum(dnorm(y, expected(p$level + p$f, p$n), exp(p$s[3]), log = TRUE))
  }
}

# The areas with the parametrisation BYM2, the structured part by its precision.
bym2 <- function(rows, columns) {
  n <- rows * columns
  id <- matrix(seq_len(n), rows)
  edges <- rbind(cbind(as.vector(id[-1, ]), as.vector(id[-rows, ])),
                 cbind(as.vector(id[, -1]), as.vector(id[, -columns])))
  edges <- edges[sort(sample(nrow(edges), 0.95 * nrow(edges))), ]
  a <- Matrix::sparseMatrix(edges[, 1], edges[, 2], x = 1, dims = c(n, n))
  a <- a + Matrix::t(a)
  q <- 1.3 * (Matrix::Diagonal(x = Matrix::rowSums(a) + 1e-3) - a)
  y <- rpois(n, exp(0.3 + 0.5 * sin(seq_len(n) / 40) + rnorm(n, 0, 0.2)))
  function(p) {
    phi <- plogis(p$l)
    b <- exp(p$s) * (sqrt(phi) * p$u + sqrt(1 - phi) * p$v)
    -dgmrf(p$u, 0, q, log = TRUE) - sum(dnorm(p$v, 0, 1, log = TRUE)) -
      sum(dpois(y, exp(p$mu + b), log = TRUE)) - dnorm(p$l, 0, 1.5, log = TRUE)
  }
}

# Linear finite elements of a triangulated lattice whose vertices are moved: the lumped masses, the
# stiffness matrix and G C^-1 G (Lindgren, Rue and Lindstroem 2011).
elements <- function(m) {
  id <- matrix(seq_len(m * m), m)
  x <- cbind(as.vector(row(id)), as.vector(col(id))) + runif(2 * m * m, -0.3, 0.3)
  corner <- cbind(as.vector(id[-m, -m]), as.vector(id[-1, -m]), as.vector(id[-1, -1]),
                  as.vector(id[-m, -1]))
  triangle <- rbind(corner[, c(1, 2, 3)], corner[, c(1, 3, 4)])
  opposite <- list(c(2, 3), c(3, 1), c(1, 2))
  edge <- lapply(opposite, function(k) x[triangle[, k[2]], ] - x[triangle[, k[1]], ])
  area <- abs(edge[[1]][, 1] * edge[[2]][, 2] - edge[[1]][, 2] * edge[[2]][, 1]) / 2
  i <- j <- g <- NULL
  for (k in 1:3) for (l in 1:3) {
    i <- c(i, triangle[, k])
    j <- c(j, triangle[, l])
    g <- c(g, rowSums(edge[[k]] * edge[[l]]) / (4 * area))
  }
  mass <- as.vector(base::rowsum(rep(area / 3, 3), as.vector(triangle)))
  g <- Matrix::sparseMatrix(i, j, x = g, dims = c(m * m, m * m))
  general <- function(a) as(as(a, "generalMatrix"), "CsparseMatrix")
  list(M0 = general(Matrix::Diagonal(x = mass)), M1 = general(g),
       M2 = general(g %*% Matrix::Diagonal(x = 1 / mass) %*% g))
}

field <- function(m) {
  spde <- elements(m)
  at <- sample(m * m, m * m / 2)
  y <- rpois(length(at), exp(1 + 0.7 * sin(at / m / 9) * cos(at %% m / 11)))
  function(p) {
    kappa <- exp(p$log_kappa)
    Q <- kappa^4 * spde$M0 + 2 * kappa^2 * spde$M1 + spde$M2
    -dgmrf(p$x, 0, Q, log = TRUE) - sum(dpois(y, exp(p$mu + exp(p$log_sd) * p$x[at]), log = TRUE))
  }
}

n <- if (quick) 2000 else 100000
levels <- if (quick) 200 else 5000
m <- if (quick) 20 else 55
side <- if (quick) 30 else 142
years <- if (quick) 20 else 60
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
          TRUE),
  compare("catch at age", catches(10, years),
          list(level = rep(-1, 10), s = c(-1, -1, -1), r = c(1, 1), f = matrix(0, 10, years),
               n = rep(8, years + 9)), c("f", "n"), TRUE),
  compare("BYM2", bym2(m, m), list(mu = 0, s = -1, l = 0, u = numeric(m^2), v = numeric(m^2)),
          c("u", "v"), TRUE),
  compare("SPDE, small", field(20), list(mu = 1, log_kappa = -1, log_sd = 0, x = numeric(400)), "x",
          TRUE),
  compare("SPDE", field(side), list(mu = 1, log_kappa = -1, log_sd = 0, x = numeric(side^2)), "x")
)
table <- do.call(rbind, rows)
table$ratio <- table$rtmb_ms / table$statcl_ms
print(table, digits = 3, row.names = FALSE)
