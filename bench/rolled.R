# Models written as plain loops, next to the same written with vectors (or cl_scan()): operations
# recorded; values of the programs; microseconds of processor time of a gradient, on a device by the
# clock; seconds of processor time to record and of the first call. Loops as they were recorded are
# timed on the host only, since a device compiles them for minutes. Data are simulated.
#   Rscript bench/rolled.R [host|device] [models]
# Then, on the host, the first gradient of three loops of 10,000 steps: the least of several, each
# of a new compiled function. `recording` in place of models: these alone.

library(statcl)

given <- commandArgs(TRUE)
device <- length(given) > 0L && given[1L] == "device"
cl_use(engine = if (device) "device" else "host")
set.seed(1)
normal <- function(x, m, s) dnorm(x, m, s, log = TRUE)

models <- list()

models$arma11 <- local({
  n <- 200L
  y <- as.vector(arima.sim(list(ar = 0.4, ma = 0.3), n))
  priors <- function(mu, phi, theta, tau) {
    normal(mu, 0, 10) + normal(phi, 0, 2) + normal(theta, 0, 2) + normal(tau, 0, 1)
  }
  list(point = list(mu = 0.1, phi = 0.4, theta = 0.3, tau = 0.1),
       loop = function(mu, phi, theta, tau) {
         err <- numeric(n)
         err[1] <- y[1] - (mu + phi * mu)
         for (t in 2:n) err[t] <- y[t] - mu - phi * y[t - 1] - theta * err[t - 1]
         priors(mu, phi, theta, tau) + sum(normal(err, 0, exp(tau)))
       }, vector = function(mu, phi, theta, tau) {
         first <- y[1] - (mu + phi * mu)
         given <- y[-1] - mu - phi * y[-n]
         rest <- cl_scan(function(e, x) {
           e <- x - theta * e
           list(state = e, out = e)
         }, first, given)$out
         priors(mu, phi, theta, tau) + sum(normal(c(first, rest), 0, exp(tau)))
       })
})

models$garch11 <- local({
  n <- 200L
  y <- rnorm(n, 0, 1.5)
  list(point = list(mu = 0.1, a0 = 0.3, a1 = 0.2, b1 = 0.4),
       loop = function(mu, a0, a1, b1) {
         s <- numeric(n)
         s[1] <- 1.2
         for (t in 2:n) s[t] <- sqrt(a0 + a1 * (y[t - 1] - mu)^2 + b1 * s[t - 1]^2)
         sum(normal(y, mu, s))
       }, vector = function(mu, a0, a1, b1) {
         s <- cl_scan(function(s, x) {
           s <- sqrt(x + b1 * s^2)
           list(state = s, out = s)
         }, 1.2, a0 + a1 * (y[-n] - mu)^2)$out
         sum(normal(y, mu, c(1.2, s)))
       })
})

models$hmm_drive <- local({
  n <- 416L
  state <- 1L + (cumsum(runif(n) < 0.1) %% 2L)
  u <- 1 / rgamma(n, 20, 20 * c(0.4, 0.9)[state])
  v <- rnorm(n, c(0.2, 1.5)[state], 0.3)
  list(point = list(phi = c(-0.5, 0.4), lambda = c(0.1, 0.8), theta = c(1.5, -1.2)),
       loop = function(phi, lambda, theta) {
         stay <- cl_inv_logit(theta)
         move <- log(rbind(c(stay[1], 1 - stay[1]), c(stay[2], 1 - stay[2])))
         gamma <- matrix(0, n, 2)
         for (k in 1:2) gamma[1, k] <- normal(u[1], phi[k], 0.3) + normal(v[1], lambda[k], 0.3)
         for (t in 2:n) {
           for (k in 1:2) {
             gamma[t, k] <- cl_log_sum_exp(gamma[t - 1, ] + move[, k] + normal(u[t], phi[k], 0.3) +
                                             normal(v[t], lambda[k], 0.3))
           }
         }
         cl_log_sum_exp(gamma[n, ])
       }, vector = function(phi, lambda, theta) {
         stay <- cl_inv_logit(theta)
         move <- log(rbind(c(stay[1], 1 - stay[1]), c(stay[2], 1 - stay[2])))
         seen <- sapply(1:2, function(k) normal(u, phi[k], 0.3) + normal(v, lambda[k], 0.3))
         last <- cl_scan(function(g, x) {
           c(cl_log_sum_exp(g + move[, 1] + x[1]), cl_log_sum_exp(g + move[, 2] + x[2]))
         }, seen[1, ], seen[-1, ])
         cl_log_sum_exp(last)
       })
})

models$radon <- local({
  n <- 919L
  groups <- 85L
  g <- sort(sample(groups, n, replace = TRUE))
  floor <- rbinom(n, 1L, 0.2)
  uranium <- rnorm(groups)
  y <- rnorm(n, 1.3 - 0.6 * floor + 0.3 * rnorm(groups)[g], 0.7)
  list(point = list(alpha = rnorm(groups, 1, 0.2), beta = c(-0.5, 0.7), mu = 1.2, s = c(-1, -0.3)),
       loop = function(alpha, beta, mu, s) {
         total <- normal(mu, 0, 10)
         for (j in 1:groups) total <- total + normal(alpha[j], mu + beta[2] * uranium[j], exp(s[1]))
         for (i in 1:n) total <- total + normal(y[i], alpha[g[i]] + beta[1] * floor[i], exp(s[2]))
         total
       }, vector = function(alpha, beta, mu, s) {
         normal(mu, 0, 10) + sum(normal(alpha, mu + beta[2] * uranium, exp(s[1]))) +
           sum(normal(y, alpha[g] + beta[1] * floor, exp(s[2])))
       })
})

models$logistic <- local({
  n <- 1000L
  x <- matrix(rnorm(8 * n), n)
  y <- rbinom(n, 1L, 0.4)
  list(point = list(alpha = 0.2, beta = rnorm(8) / 4),
       loop = function(alpha, beta) {
         total <- sum(normal(beta, 0, 2))
         for (i in 1:n) {
           total <- total + dbinom(y[i], 1, cl_inv_logit(alpha + sum(x[i, ] * beta)), log = TRUE)
         }
         total
       }, vector = function(alpha, beta) {
         sum(normal(beta, 0, 2)) +
           sum(dbinom(y, 1, cl_inv_logit(alpha + c(x %*% beta)), log = TRUE))
       })
})

models$irt_2pl <- local({
  items <- 20L
  persons <- 100L
  y <- matrix(rbinom(items * persons, 1L, 0.5), items)
  list(point = list(theta = rnorm(persons), a = rnorm(items, 0, 0.3), b = rnorm(items)),
       loop = function(theta, a, b) {
         total <- sum(normal(theta, 0, 1)) + sum(normal(a, 0, 1)) + sum(normal(b, 0, 2))
         for (i in 1:items) {
           for (j in 1:persons) {
             eta <- exp(a[i]) * (theta[j] - b[i])
             total <- total + y[i, j] * eta - cl_log1p_exp(eta)
           }
         }
         total
       }, vector = function(theta, a, b) {
         i <- rep(1:items, persons)
         eta <- exp(a)[i] * (rep(theta, each = items) - b[i])
         sum(normal(theta, 0, 1)) + sum(normal(a, 0, 1)) + sum(normal(b, 0, 2)) +
           sum(c(y) * eta - cl_log1p_exp(eta))
       })
})

models$dogs <- local({
  dogs <- 30L
  trials <- 25L
  y <- matrix(rbinom(dogs * trials, 1L, 0.3), dogs)
  before <- function(x) t(apply(x, 1L, function(v) cumsum(c(0, v[-trials]))))
  avoided <- before(1 - y)
  shocked <- before(y)
  list(point = list(beta = c(0.5, -0.2, -0.1)),
       loop = function(beta) {
         total <- sum(normal(beta, 0, 10))
         for (j in 1:dogs) {
           for (t in 1:trials) {
             eta <- beta[1] + beta[2] * avoided[j, t] + beta[3] * shocked[j, t]
             total <- total + dbinom(y[j, t], 1, cl_inv_logit(eta), log = TRUE)
           }
         }
         total
       }, vector = function(beta) {
         eta <- beta[1] + beta[2] * c(avoided) + beta[3] * c(shocked)
         sum(normal(beta, 0, 10)) + sum(dbinom(c(y), 1, cl_inv_logit(eta), log = TRUE))
       })
})

models$mixture <- local({
  n <- 1000L
  y <- rnorm(n, ifelse(runif(n) < 0.4, -1.5, 2), 0.8)
  priors <- function(mu, s, l) sum(normal(mu, 0, 2)) + sum(normal(s, 0, 1)) + normal(l, 0, 1)
  list(point = list(mu = c(-1, 1), s = c(0.1, -0.2), l = 0.3),
       loop = function(mu, s, l) {
         total <- priors(mu, s, l)
         for (i in 1:n) {
           total <- total + cl_log_sum_exp(c(log(cl_inv_logit(l)) + normal(y[i], mu[1], exp(s[1])),
                                             log(1 - cl_inv_logit(l)) +
                                               normal(y[i], mu[2], exp(s[2]))))
         }
         total
       }, vector = function(mu, s, l) {
         a <- log(cl_inv_logit(l)) + normal(y, mu[1], exp(s[1]))
         b <- log(1 - cl_inv_logit(l)) + normal(y, mu[2], exp(s[2]))
         m <- pmax(a, b)
         priors(mu, s, l) + sum(m + log(exp(a - m) + exp(b - m)))
       })
})

# Capture and recapture with one probability, and one before and one after the first capture.
capture <- function(before_after) {
  rows <- 387L
  times <- 5L
  y <- matrix(rbinom(rows * times, 1L, 0.3), rows)
  y[1:200, 2] <- 1L
  y[201:rows, ] <- 0L
  seen <- rowSums(y)
  caught <- t(apply(y, 1L, function(v) cumsum(c(0, v[-times])) > 0)) + 0
  second <- function(p) if (before_after) p[2] else p[1]
  list(point = list(omega = 0.2, p = c(-0.5, 0.3)[seq_len(1L + before_after)]),
       loop = function(omega, p) {
         o <- cl_inv_logit(omega)
         total <- 0
         for (i in 1:rows) {
           l <- 0
           for (t in 1:times) {
             q <- cl_inv_logit(p[1] * (1 - caught[i, t]) + second(p) * caught[i, t])
             l <- l + dbinom(y[i, t], 1, q, log = TRUE)
           }
           total <- total + if (seen[i] > 0) log(o) + l else
             cl_log_sum_exp(c(log(o) + l, log(1 - o)))
         }
         total
       }, vector = function(omega, p) {
         o <- cl_inv_logit(omega)
         q <- cl_inv_logit(p[1] * (1 - c(caught)) + second(p) * c(caught))
         l <- rowSums(matrix(dbinom(c(y), 1, q, log = TRUE), rows))
         none <- log(o) + l[201:rows]
         m <- pmax(none, log(1 - o))
         sum(log(o) + l[1:200]) + sum(m + log(exp(none - m) + exp(log(1 - o) - m)))
       })
}
models$M0 <- capture(FALSE)
models$Mb <- capture(TRUE)

models$lotka_volterra <- local({
  n <- 21L
  inner <- 10L
  y <- cbind(exp(rnorm(n, 3)), exp(rnorm(n, 2.5)))
  list(point = list(theta = c(0.55, 0.028, 0.80, 0.024), z = c(3.4, 1.8), s = c(-1, -1)),
       loop = function(theta, z, s) {
         h <- 1 / inner
         u <- exp(z[1])
         v <- exp(z[2])
         total <- 0
         for (t in 1:n) {
           total <- total + normal(log(y[t, 1]), log(u), exp(s[1])) +
             normal(log(y[t, 2]), log(v), exp(s[2]))
           for (k in 1:inner) {
             du <- (theta[1] - theta[2] * v) * u
             dv <- (theta[4] * u - theta[3]) * v
             u <- u + h * du
             v <- v + h * dv
           }
         }
         total
       }, vector = function(theta, z, s) {
         h <- 1 / inner
         path <- cl_scan(function(p) {
           before <- p
           for (k in 1:inner) {
             p <- c(p[1] + h * (theta[1] - theta[2] * p[2]) * p[1],
                    p[2] + h * (theta[4] * p[1] - theta[3]) * p[2])
           }
           list(state = p, out = before)
         }, exp(z), length.out = n)$out
         sum(normal(log(y[, 1]), log(path[, 1]), exp(s[1]))) +
           sum(normal(log(y[, 2]), log(path[, 2]), exp(s[2])))
       })
})

models$normal_mixture_k <- local({
  n <- 500L
  k <- 5L
  y <- rnorm(n, sample(c(-4, -2, 0, 2, 4), n, replace = TRUE), 0.7)
  list(point = list(mu = c(-4, -2, 0.1, 2, 4), s = -0.2, w = rnorm(5) / 4),
       loop = function(mu, s, w) {
         p <- log(cl_softmax(w))
         total <- sum(normal(mu, 0, 5)) + normal(s, 0, 1) + sum(normal(w, 0, 1))
         for (i in 1:n) {
           l <- numeric(k)
           for (j in 1:k) l[j] <- p[j] + normal(y[i], mu[j], exp(s))
           total <- total + cl_log_sum_exp(l)
         }
         total
       }, vector = function(mu, s, w) {
         p <- log(cl_softmax(w))
         l <- matrix(rep(p, each = n) + normal(rep(y, k), rep(mu, each = n), exp(s)), n)
         m <- pmax(l[, 1], l[, 2], l[, 3], l[, 4], l[, 5])
         sum(normal(mu, 0, 5)) + normal(s, 0, 1) + sum(normal(w, 0, 1)) +
           sum(m + log(rowSums(exp(l - m))))
       })
})

facts_of <- function(model) .Call(statcl:::r_program_facts, environment(model)$program)

# Seconds of the user and of the system; on a device by the clock.
seconds <- function(code) {
  took <- system.time(code)
  if (device) took[[3L]] else took[[1L]] + took[[2L]]
}

# Microseconds a gradient of each function: the least of several runs, in turn.
gradient_times <- function(functions, point) {
  run <- function(f, count) seconds(for (i in seq_len(count)) do.call(f, point))
  counts <- vapply(functions, function(f) {
    count <- 1
    while ((took <- run(f, count)) < 0.03) count <- 3 * count
    count
  }, 0)
  best <- rep(Inf, length(functions))
  for (k in 1:9) best <- pmin(best, mapply(run, functions, counts) / counts)
  1e6 * best
}

compare <- function(name, m) {
  loop <- if (!device) cl_gradient(m$loop, roll = FALSE)
  rolled <- cl_gradient(m$loop)
  vector <- cl_gradient(m$vector)
  if (!device) do.call(loop, m$point)
  first <- seconds(found <- do.call(rolled, m$point))
  exact <- do.call(vector, m$point)
  record <- seconds(statcl:::trace_model(environment(rolled),
                                         list(values = m$point, listed = FALSE)))
  whole <- function(x) c(x, unlist(attr(x, "gradient")))
  error <- max(abs(whole(found) - whole(exact)) / (1 + abs(whole(exact))))
  times <- gradient_times(c(if (!device) list(loop), list(rolled, vector)), m$point)
  if (device) times <- c(NA, times)
  counts <- vapply(list(rolled, vector), function(f) {
    as.integer(facts_of(f)[["values"]] + facts_of(f)[["gradient_values"]])
  }, 0L)
  cat(sprintf("| %s | %d | %d | %d | %.1f | %.1f | %.1f | %.2f | %.2f | %.2f | %.1e |\n", name,
              length(environment(rolled)$nodes$kind), counts[1L], counts[2L], times[1L], times[2L],
              times[3L], times[2L] / times[3L], record, first, error))
}

chosen <- if (length(given) > 1L) setdiff(given[-1L], "recording") else names(models)
if (length(chosen) > 0L) {
  cat("| model | recorded | left | vector's | loop, us | rolled | vector | ratio | ",
      "recording, s | first call, s | error |\n|---|", rep("---:|", 10L), "\n", sep = "")
}
for (name in chosen) compare(name, models[[name]])

# ---- recording ---------------------------------------------------------------------------------

steps <- 10000L
series <- as.vector(arima.sim(list(ar = 0.4), steps))
long <- list(
  dnorm = list(point = list(mu = 0.1, s = 0.2), f = function(mu, s) {
    total <- 0
    for (t in 1:steps) total <- total + normal(series[t], mu, exp(s))
    total
  }),
  ar1 = list(point = list(mu = 0.1, phi = 0.4, s = 0.2), f = function(mu, phi, s) {
    total <- 0
    for (t in 2:steps) total <- total + normal(series[t], mu + phi * series[t - 1], exp(s))
    total
  }),
  garch = list(point = list(mu = 0.1, a0 = 0.3, a1 = 0.2, b1 = 0.4), f = function(mu, a0, a1, b1) {
    s <- numeric(steps)
    s[1] <- 1.2
    for (t in 2:steps) s[t] <- sqrt(a0 + a1 * (series[t - 1] - mu)^2 + b1 * s[t - 1]^2)
    sum(normal(series, mu, s))
  }))

if (!device && (length(given) < 2L || "recording" %in% given)) {
  cat("\n| 10,000 steps | recorded | recording, s | first gradient, s |\n|---|---:|---:|---:|\n")
  for (name in names(long)) {
    m <- long[[name]]
    took <- replicate(7L, {
      model <- cl_gradient(m$f)
      gc()
      first <- seconds(do.call(model, m$point))
      record <- seconds(statcl:::trace_model(environment(model),
                                             list(values = m$point, listed = FALSE)))
      c(length(environment(model)$nodes$kind), record, first)
    })
    best <- apply(took, 1L, min)
    cat(sprintf("| %s | %d | %.2f | %.2f |\n", name, as.integer(best[1L]), best[2L], best[3L]))
  }
}
