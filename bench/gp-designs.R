# Does cl_gp() find the best optimum with many inputs? Fits of 45 computer experiments of 6 to 20
# inputs from the literature, by maximum likelihood and by the default method, held against the best
# of 200 restarts from random points within the same bounds.
#
#   STATCL_BENCH_JOBS=16 Rscript bench/gp-designs.R [sets, as 1-45 or names] [restarts]
#
# Prints for each set and method: the value that was maximised, how much the best restart is above
# it (lost), how much more there is with wider bounds (bound), seconds, and at 200 new points the
# root mean squared error divided by the standard deviation, the coverage of 95% intervals and the
# mean log density. The last lines count.

library(statcl)
cl_use(engine = "host")

given <- commandArgs(TRUE)
restarts <- if (length(given) > 1L) as.integer(given[2L]) else 200L
jobs <- as.integer(Sys.getenv("STATCL_BENCH_JOBS", "1"))

# ---- the functions, of points in the unit cube ---------------------------------------------------

within_range <- function(u, low, high) sweep(sweep(u, 2L, high - low, `*`), 2L, low, `+`)
inputs <- list() # how many inputs a function has
functions <- list()
define <- function(name, inputs_of, f) {
  inputs[[name]] <<- inputs_of
  functions[[name]] <<- f
}

define("borehole", 8, function(u) { # Worley (1987)
  x <- within_range(u, c(0.05, 100, 63070, 990, 63.1, 700, 1120, 9855),
                    c(0.15, 50000, 115600, 1110, 116, 820, 1680, 12045))
  ratio <- log(x[, 2] / x[, 1])
  2 * pi * x[, 3] * (x[, 4] - x[, 6]) /
    (ratio * (1 + 2 * x[, 7] * x[, 3] / (ratio * x[, 1]^2 * x[, 8]) + x[, 3] / x[, 5]))
})
define("otl", 6, function(u) { # Ben-Ari and Steinberg (2007)
  x <- within_range(u, c(50, 25, 0.5, 1.2, 0.25, 50), c(150, 70, 3, 2.5, 1.2, 300))
  vb <- 12 * x[, 2] / (x[, 1] + x[, 2])
  beta <- x[, 6] * (x[, 5] + 9)
  ((vb + 0.74) * beta + 11.35 * x[, 3]) / (beta + x[, 3]) +
    0.74 * x[, 3] * beta / ((beta + x[, 3]) * x[, 4])
})
define("wing", 10, function(u) { # Forrester, Sobester and Keane (2008)
  x <- within_range(u, c(150, 220, 6, -10, 16, 0.5, 0.08, 2.5, 1700, 0.025),
                    c(200, 300, 10, 10, 45, 1, 0.18, 6, 2500, 0.08))
  angle <- cos(x[, 4] * pi / 180)
  0.036 * x[, 1]^0.758 * x[, 2]^0.0035 * (x[, 3] / angle^2)^0.6 * x[, 5]^0.006 * x[, 6]^0.04 *
    (100 * x[, 7] / angle)^-0.3 * (x[, 8] * x[, 9])^0.49 + x[, 1] * x[, 10]
})
define("piston", 7, function(u) { # Kenett and Zacks (1998)
  x <- within_range(u, c(30, 0.005, 0.002, 1000, 90000, 290, 340),
                    c(60, 0.02, 0.01, 5000, 110000, 296, 360))
  a <- x[, 5] * x[, 2] + 19.62 * x[, 1] - x[, 4] * x[, 3] / x[, 2]
  v <- x[, 2] / (2 * x[, 4]) * (sqrt(a^2 + 4 * x[, 4] * x[, 5] * x[, 3] * x[, 6] / x[, 7]) - a)
  2 * pi * sqrt(x[, 1] / (x[, 4] + x[, 2]^2 * x[, 5] * x[, 3] * x[, 6] / (x[, 7] * v^2)))
})
define("robot", 8, function(u) { # An and Owen (2001)
  angle <- t(apply(2 * pi * u[, 1:4], 1L, cumsum))
  sqrt(rowSums(u[, 5:8] * cos(angle))^2 + rowSums(u[, 5:8] * sin(angle))^2)
})
define("welch", 20, function(u) { # Welch et al. (1992)
  x <- u - 0.5
  5 * x[, 12] / (1 + x[, 1]) + 5 * (x[, 4] - x[, 20])^2 + x[, 5] + 40 * x[, 19]^3 - 5 * x[, 19] +
    0.05 * x[, 2] + 0.08 * x[, 3] - 0.03 * x[, 6] + 0.03 * x[, 7] - 0.09 * x[, 9] -
    0.01 * x[, 10] - 0.07 * x[, 11] + 0.25 * x[, 13]^2 - 0.04 * x[, 14] + 0.06 * x[, 15] -
    0.01 * x[, 17] - 0.03 * x[, 18]
})
define("friedman", 10, function(u) { # Friedman (1991), five inputs of which have no effect
  10 * sin(pi * u[, 1] * u[, 2]) + 20 * (u[, 3] - 0.5)^2 + 10 * u[, 4] + 5 * u[, 5]
})
define("morris", 20, function(u) { # Morris (1991)
  w <- 2 * (u - 0.5)
  w[, c(3, 5, 7)] <- 2 * (1.1 * u[, c(3, 5, 7)] / (u[, c(3, 5, 7)] + 0.1) - 0.5)
  y <- 20 * rowSums(w[, 1:10])
  for (i in 1:20) y <- y + (if (i > 10) (-1)^i else 0) * w[, i]
  for (i in 1:19) for (j in (i + 1):20) {
    y <- y + (if (j <= 6) -15 else (-1)^(i + j)) * w[, i] * w[, j]
  }
  for (i in 1:3) for (j in (i + 1):4) for (k in (j + 1):5) y <- y - 10 * w[, i] * w[, j] * w[, k]
  y + 5 * w[, 1] * w[, 2] * w[, 3] * w[, 4]
})
sobol_g <- function(a) function(u) {
  apply((abs(4 * u - 2) + rep(a, each = nrow(u))) / rep(1 + a, each = nrow(u)), 1L, prod)
}
define("sobol_g", 8, sobol_g(c(0, 1, 4.5, 9, 99, 99, 99, 99))) # Saltelli and Sobol (1995)
define("sobol_g15", 15, sobol_g(c(1, 2, 5, 10, 20, 50, 100, 500, rep(1000, 7))))
define("linkletter", 10, function(u) sin(u[, 1]) + sin(5 * u[, 2])) # Linkletter et al. (2006)
define("linkletter_linear", 10, function(u) 0.2 * rowSums(u[, 1:4]))
define("linkletter_decreasing", 10, function(u) as.vector(u[, 1:8] %*% (0.2 / 2^(0:7))))
define("bratley", 8, function(u) { # Bratley, Fox and Niederreiter (1992)
  y <- 0
  for (i in 1:8) y <- y + (-1)^i * apply(u[, seq_len(i), drop = FALSE], 1L, prod)
  y
})
define("dette_pepelyshev", 8, function(u) { # Dette and Pepelyshev (2010)
  y <- 4 * (u[, 1] - 2 + 8 * u[, 2] - 8 * u[, 2]^2)^2 + (3 - 4 * u[, 2])^2 +
    16 * sqrt(u[, 3] + 1) * (2 * u[, 3] - 1)^2
  for (i in 4:8) y <- y + i * log(1 + rowSums(u[, 3:i, drop = FALSE]))
  y
})
define("loeppky", 10, function(u) { # Loeppky, Sacks and Welch (2009)
  as.vector(u[, 1:7] %*% c(6, 4, 5.5, 3, 1, 0.3, 0.01)) + 2.2 * u[, 1] * u[, 2] +
    1.4 * u[, 1] * u[, 3] + u[, 2] * u[, 3]
})
define("zhou", 10, function(u) { # Zhou (1998)
  bump <- function(at) exp(-0.5 * rowSums((4 * (u - at))^2))
  bump(1 / 3) + bump(2 / 3)
})
define("roos_arnold", 10, function(u) apply(abs(4 * u - 2), 1L, prod)^0.3) # made less extreme
define("gramacy_lee", 6, function(u) { # Gramacy and Lee (2009)
  exp(sin((0.9 * (u[, 1] + 0.48))^10)) + u[, 2] * u[, 3] + u[, 4]
})
define("steel_column", 9, function(u) { # Kuschel and Rackwitz (1997)
  x <- within_range(u, c(330, 4e5, 5e5, 5e5, 250, 15, 250, 10, 2e5),
                    c(470, 6e5, 7e5, 7e5, 350, 25, 350, 50, 2.2e5))
  p <- x[, 2] + x[, 3] + x[, 4]
  area <- 2 * x[, 5] * x[, 6]
  module <- x[, 5] * x[, 6] * x[, 7]
  inertia <- x[, 5] * x[, 6] * x[, 7]^2 / 2
  euler <- pi^2 * x[, 9] * inertia / 7500^2
  x[, 1] - p * (1 / area + x[, 8] / module * euler / (euler - p))
})
define("sulfur", 9, function(u) { # Charlson et al. (1992)
  x <- within_range(u, c(0.75, 0.5, 0.6, 0.8, 0.15, 3, 0.2, 2, 50),
                    c(1, 0.8, 0.9, 1, 0.4, 7, 0.4, 6, 100))
  -0.5 * 1366^2 * 1e-6 * x[, 1]^2 * x[, 2] * x[, 3]^2 * x[, 4] * x[, 5] * x[, 6] * x[, 7] * x[, 8] *
    x[, 9]
})
define("flood", 8, function(u) { # Iooss and Lemaitre (2015)
  x <- within_range(u, c(500, 15, 49, 54, 7, 55, 4990, 295), c(3000, 55, 51, 56, 9, 56, 5010, 305))
  depth <- (x[, 1] / (x[, 8] * x[, 2] * sqrt((x[, 4] - x[, 3]) / x[, 7])))^0.6
  x[, 3] + depth - x[, 5] - x[, 6]
})
define("hartmann", 6, function(u) { # Dixon and Szego (1978)
  a <- rbind(c(10, 3, 17, 3.5, 1.7, 8), c(0.05, 10, 17, 0.1, 8, 14), c(3, 3.5, 1.7, 10, 17, 8),
             c(17, 8, 0.05, 10, 0.1, 14))
  p <- 1e-4 * rbind(c(1312, 1696, 5569, 124, 8283, 5886), c(2329, 4135, 8307, 3736, 1004, 9991),
                    c(2348, 1451, 3522, 2883, 3047, 6650), c(4047, 8828, 8732, 5743, 1091, 381))
  -as.vector(vapply(1:4, function(i) {
    exp(-rowSums(sweep(sweep(u, 2L, p[i, ])^2, 2L, a[i, ], `*`)))
  }, numeric(nrow(u))) %*% c(1, 1.2, 3, 3.2))
})
# Genz (1987)
define("genz_corner", 8, function(u) (1 + as.vector(u %*% (1:8 / 8)))^-9)
define("genz_oscillatory", 12, function(u) cos(1 + as.vector(u %*% (12:1 / 6))))
define("genz_product", 6, function(u) {
  1 / apply(sweep((u - 0.4)^2, 2L, (1:6 / 4)^-2, `+`), 1L, prod)^0.5
})
define("genz_gaussian", 12, function(u) exp(-as.vector((u - 0.4)^2 %*% (12:1 / 6)^2)))
define("rosenbrock", 6, function(u) {
  x <- 4 * u - 2
  rowSums(100 * (x[, -1] - x[, -6]^2)^2 + (1 - x[, -6])^2)
})
define("levy", 8, function(u) {
  w <- 1 + (20 * u - 11) / 4 * 0.3
  sin(pi * w[, 1])^2 + rowSums((w[, -8] - 1)^2 * (1 + 10 * sin(pi * w[, -8] + 1)^2))
})
define("styblinski", 7, function(u) {
  x <- 10 * u - 5
  rowSums(x^4 - 16 * x^2 + 5 * x) / 2
})
define("moon", 15, function(u) { # after Moon (2010): few strong inputs among many weak ones
  v <- 3 * u
  -19.71 * v[, 1] * v[, 14] / 10 + 23.72 * v[, 1] * v[, 15] / 10 - 13.34 * v[, 15]^2 / 10 +
    28.99 * v[, 7] * v[, 12] / 10 + rowSums(v[, 2:6]) / 100
})
define("ishigami", 6, function(u) { # Ishigami and Homma (1990), three inputs without effect
  x <- 2 * pi * u - pi
  sin(x[, 1]) + 7 * sin(x[, 2])^2 + 0.1 * x[, 3]^4 * sin(x[, 1])
})

# ---- the sets ------------------------------------------------------------------------------------

# Each with the number of points, a seed and the noise: fixed at 1e-4 sd(y), or estimated ("free").
set <- function(f, n, seed = 1, noise = "fixed") list(f = f, n = n, seed = seed, noise = noise)
sets <- list(
  set("welch", 60, 201), set("welch", 60, 202), set("welch", 60, 203), set("welch", 100, 1),
  set("borehole", 40), set("borehole", 80, 2), set("borehole", 60, 3, "free"), set("otl", 40),
  set("otl", 60, 2, "free"), set("wing", 50), set("wing", 100, 2), set("wing", 60, 3, "free"),
  set("piston", 50), set("piston", 80, 2, "free"), set("robot", 80), set("robot", 100, 2, "free"),
  set("friedman", 50), set("friedman", 60, 2, "free"), set("morris", 80), set("morris", 100, 2),
  set("sobol_g", 60), set("sobol_g15", 80, 1, "free"), set("linkletter", 40),
  set("linkletter", 50, 2, "free"), set("linkletter_linear", 40), set("linkletter_decreasing", 40),
  set("bratley", 50), set("dette_pepelyshev", 60), set("loeppky", 50), set("zhou", 80),
  set("roos_arnold", 60, 1, "free"), set("gramacy_lee", 60), set("steel_column", 50),
  set("sulfur", 60), set("flood", 50), set("hartmann", 60), set("genz_corner", 60),
  set("genz_oscillatory", 70), set("genz_product", 50), set("genz_gaussian", 80),
  set("rosenbrock", 60), set("levy", 60), set("styblinski", 60), set("moon", 70),
  set("ishigami", 60))
names(sets) <- vapply(seq_along(sets), function(i) {
  sprintf("%s-%d-%d", sets[[i]]$f, sets[[i]]$n, sets[[i]]$seed)
}, "")
if (length(given) > 0L) {
  sets <- if (grepl("^[0-9,-]+$", given[1L])) {
    at <- lapply(strsplit(strsplit(given[1L], ",")[[1L]], "-"), as.integer)
    sets[unlist(lapply(at, function(v) seq(v[1L], v[length(v)])))]
  } else {
    sets[names(sets) %in% strsplit(given[1L], ",")[[1L]]]
  }
}

# Of 20 Latin hypercubes the one with the largest smallest distance.
design <- function(n, p) {
  best <- NULL
  for (i in 1:20) {
    u <- vapply(seq_len(p), function(j) (sample(n) - runif(n)) / n, numeric(n))
    if (is.null(best) || min(dist(u)) > min(dist(best))) best <- u
  }
  best
}

# A random start: lengthscales about one typical value, or with some inputs that have little effect.
random_start <- function(p, scale, free) {
  spread <- sample(c(0, 0.5, 1, 2), 1L)
  lengths <- sqrt(p) * exp(runif(1L, log(0.1), log(10)) + spread * rnorm(p))
  if (runif(1L) < 0.5) lengths[runif(p) < runif(1L)] <- 100 * sqrt(p)
  c(sd = scale * exp(runif(1L, log(0.5), log(50))),
    setNames(lengths, paste0("lengthscale.", seq_len(p))),
    noise = if (free) scale * exp(runif(1L, log(1e-4), log(0.5))))
}

one <- function(s, method) {
  set.seed(s$seed)
  f <- functions[[s$f]]
  p <- inputs[[s$f]]
  x <- design(s$n, p)
  y <- f(x)
  new <- matrix(runif(200 * p), 200)
  truth <- f(new)
  free <- s$noise == "free"
  fixed <- if (!free) c(noise = 1e-4 * sd(y))
  quiet <- function(...) {
    arguments <- list(x, y, fixed = fixed, progress = FALSE, ...)
    if (nzchar(method)) arguments$method <- method
    suppressWarnings(do.call(cl_gp, arguments))
  }
  used <- system.time(fit <- quiet())
  at <- predict(fit, new, se.fit = TRUE, interval = "none")
  se <- sqrt(pmax(at$se.fit, 1e-10 * sd(y))^2 + if (free) fit$noise^2 else 0)
  values <- vapply(seq_len(restarts), function(i) {
    tryCatch(quiet(start = random_start(p, sd(y), free), starts = 1)$objective,
             statcl_error = function(e) -Inf)
  }, 0)
  lengths <- setNames(rep(1e9, p), paste0("lengthscale.", seq_len(p)))
  wide <- quiet(start = fit$par[!names(fit$par) %in% fit$fixed], starts = 1,
                upper = c(lengths, sd = 1e6 * sd(y)))$objective
  c(n = s$n, p = p, value = fit$objective, lost = max(values) - fit$objective,
    bound = wide - fit$objective, seconds = used[["elapsed"]],
    evaluations = fit$evaluations, within = mean(values > max(values) - 0.1),
    rmse = sqrt(mean((at$fit - truth)^2)) / sd(truth),
    coverage = mean(abs(at$fit - truth) < qnorm(0.975) * se),
    score = mean(dnorm(truth, at$fit, se, log = TRUE)) + log(sd(truth)))
}

tasks <- expand.grid(set = seq_along(sets), method = c("ml", ""), stringsAsFactors = FALSE)
rows <- parallel::mclapply(seq_len(nrow(tasks)), function(i) {
  s <- sets[[tasks$set[i]]]
  row <- one(s, tasks$method[i])
  method <- if (nzchar(tasks$method[i])) tasks$method[i] else "default"
  cat(sprintf("%-26s %-7s %2.0f inputs %10.2f lost %7.2f bound %6.2f %5.1f s %6.0f evaluations,",
              names(sets)[tasks$set[i]], method, row[["p"]], row[["value"]], row[["lost"]],
              row[["bound"]], row[["seconds"]], row[["evaluations"]]),
      sprintf("%3.0f%% of restarts; rmse %.4f coverage %.2f score %6.2f\n", 100 * row[["within"]],
              row[["rmse"]], row[["coverage"]], row[["score"]]))
  row
}, mc.cores = jobs, mc.preschedule = FALSE)
failed <- vapply(rows, inherits, NA, what = "try-error")
if (any(failed)) stop(rows[[which(failed)[1L]]])
rows <- do.call(rbind, rows)
for (method in unique(tasks$method)) {
  r <- rows[tasks$method == method, , drop = FALSE]
  cat(sprintf(paste("%s: %d fits, %d more than 0.1 below the best of %d restarts (largest %.2f);",
                    "bounds cost at most %.2f; %.1f s; mean rmse %.4f, coverage %.3f,",
                    "score %.3f\n"),
              if (nzchar(method)) method else "default", nrow(r), sum(r[, "lost"] > 0.1), restarts,
              max(r[, "lost"]), max(r[, "bound"]), sum(r[, "seconds"]), mean(r[, "rmse"]),
              mean(r[, "coverage"]), mean(r[, "score"])))
}
