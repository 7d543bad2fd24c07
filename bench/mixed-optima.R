# Does cl_glmm() find the maximum of the likelihood? Simulated models with random intercepts,
# slopes, correlated, nested and crossed effects, and weights, of 7 families, many of them with
# variances of 0, next to lme4 (where it has the same likelihood) and to a dense likelihood in plain
# R, which is maximised from the estimates of both and from three other starting points.
#
#   Rscript bench/mixed-optima.R [models] [first]
#
# Prints a line for each model whose log likelihood is more than 1e-6 below the best, then counts.
# lme4 (CRAN) is used if it is installed.
suppressMessages(library(statcl))
cl_use(engine = "host")
given <- as.integer(commandArgs(TRUE))
models <- if (length(given) > 0L) given[1L] else 500L
first <- if (length(given) > 1L) given[2L] else 1L
peer <- requireNamespace("lme4", quietly = TRUE)

kinds <- list(
  intercept = y ~ x + (1 | g), constant = y ~ 1 + (1 | g), slope = y ~ x + (0 + x | g),
  correlated = y ~ x + (x | g), separate = y ~ x + (x || g), nested = y ~ x + (1 | g / h),
  crossed = y ~ x + (1 | g) + (1 | k), crossed_slope = y ~ x + (x | g) + (1 | k),
  three = y ~ x + z + (x + z | g), factor = y ~ f + (0 + f | g))
laws <- c("normal", "reml", "normal", "reml", "bernoulli", "binomial", "poisson", "weighted",
          "neg_binomial", "probit", "gamma")

simulate_model <- function(seed) {
  set.seed(seed)
  law <- laws[(seed - 1L) %% length(laws) + 1L]
  kind <- names(kinds)[(seed - 1L) %/% length(laws) %% length(kinds) + 1L]
  groups <- sample(c(6L, 12L, 25L), 1L)
  n <- groups * sample(c(4L, 8L), 1L)
  d <- data.frame(g = factor(sample(rep_len(seq_len(groups), n))), h = factor(sample(3L, n, TRUE)),
                  k = factor(sample(5L, n, TRUE)), x = rnorm(n, sample(c(0, 3), 1L)),
                  z = rnorm(n), f = factor(sample(c("a", "b"), n, TRUE)))
  size <- function() sample(c(0, 0.1, 0.3, 0.6, 1.5), 1L)
  slope <- size() * rnorm(groups)
  eta <- 0.3 + 0.4 * d$x / 2 + (size() * rnorm(groups) + size() * slope)[d$g] +
    (slope * (d$x - mean(d$x)))[d$g] / 2 + (size() * rnorm(5L))[d$k] +
    (size() * rnorm(3 * groups))[as.integer(interaction(d$g, d$h))]
  d$precision <- runif(n, 0.3, 3)
  d$m <- sample(8L, n, TRUE)
  mean <- exp(pmin(eta, 3.5) - 0.5)
  d$y <- switch(law, bernoulli = , probit = rbinom(n, 1L, plogis(eta - 0.5)),
    binomial = rbinom(n, d$m, plogis(eta - 0.5)), poisson = rpois(n, mean),
    neg_binomial = rnbinom(n, size = 2, mu = mean), gamma = rgamma(n, 3, 3 / mean),
    weighted = eta + rnorm(n) / sqrt(d$precision), eta + rnorm(n))
  if (law == "binomial") d$y <- cbind(d$y, d$m - d$y)
  list(law = law, kind = kind, formula = kinds[[kind]], data = d)
}

family_of <- function(law) switch(law, bernoulli = , binomial = binomial(), poisson = poisson(),
  neg_binomial = "neg_binomial_2_log", probit = binomial("probit"), gamma = Gamma("log"),
  "normal_id")

ours <- function(model) {
  arguments <- list(model$formula, model$data, family_of(model$law),
                    method = if (model$law == "reml") "reml" else "ml")
  if (model$law == "weighted") arguments$weights <- model$data$precision
  said <- ""
  fit <- withCallingHandlers(do.call(cl_glmm, arguments), message = function(m)
    invokeRestart("muffleMessage"), warning = function(w) {
      said <<- conditionMessage(w)
      invokeRestart("muffleWarning")
    })
  list(fit = fit, said = said)
}

theirs <- function(model) {
  if (!peer || model$law %in% c("neg_binomial", "probit", "gamma")) return(NULL)
  quiet <- function(e) suppressMessages(suppressWarnings(tryCatch(e, error = function(e) NULL)))
  if (model$law %in% c("normal", "reml", "weighted")) {
    w <- if (model$law == "weighted") model$data$precision
    environment(model$formula) <- environment()
    return(quiet(lme4::lmer(model$formula, model$data, REML = model$law == "reml", weights = w)))
  }
  quiet(lme4::glmer(model$formula, model$data, family_of(model$law),
                    control = lme4::glmerControl(tolPwrss = 1e-13)))
}

# ---- the dense likelihood ------------------------------------------------------------------------

# The terms of the bars: list(Z: n x (levels * columns), K, levels).
dense_terms <- function(formula, data) {
  bars <- list()
  walk <- function(e) {
    if (is.call(e) && identical(e[[1L]], quote(`(`)) && is.call(e[[2L]])) {
      bars[[length(bars) + 1L]] <<- e[[2L]]
    } else if (is.call(e)) for (part in as.list(e)[-1L]) walk(part)
  }
  walk(formula[[3L]])
  found <- list()
  for (bar in bars) {
    group <- bar[[3L]]
    nested <- is.call(group) && identical(group[[1L]], quote(`/`))
    factors <- if (nested) list(interaction(data[all.vars(group)], drop = TRUE),
                                data[[all.vars(group)[1L]]]) else list(data[[as.character(group)]])
    columns <- if (identical(bar[[1L]], quote(`||`))) list(quote(1), quote(0 + x)) else
      list(bar[[2L]])
    for (f in factors) for (e in columns) {
      x <- model.matrix(as.formula(call("~", e)), data)
      J <- outer(as.integer(f), seq_len(nlevels(f)), `==`) * 1
      found <- c(found, list(list(Z = do.call(cbind, lapply(seq_len(ncol(x)), function(j)
        J * x[, j])), K = ncol(x), levels = nlevels(f))))
    }
  }
  found
}

fixed_part <- function(formula) {
  drop_bars <- function(e) {
    if (is.call(e) && identical(e[[1L]], quote(`(`))) return(NULL)
    if (!is.call(e) || !identical(e[[1L]], quote(`+`))) return(e)
    parts <- Filter(Negate(is.null), lapply(as.list(e)[-1L], drop_bars))
    if (length(parts) == 2L) call("+", parts[[1L]], parts[[2L]]) else parts[[1L]]
  }
  as.formula(call("~", drop_bars(formula[[3L]])))
}

# list(value(par), theta_count, beta_count, aux), minus the log likelihood of theta (factors by
# columns, in the columns' own units), and of fixed effects and log(phi) for families that are not
# normal.
dense_problem <- function(model) {
  d <- model$data
  terms <- dense_terms(model$formula, d)
  x <- model.matrix(fixed_part(model$formula), d)
  Z <- do.call(cbind, lapply(terms, `[[`, "Z"))
  count <- vapply(terms, function(t) t$K * (t$K + 1) / 2, 0)
  ends <- cumsum(count)
  z_lambda <- function(theta) {
    do.call(cbind, lapply(seq_along(terms), function(t) {
      K <- terms[[t]]$K
      l <- matrix(0, K, K)
      l[lower.tri(l, TRUE)] <- theta[ends[t] - count[t] + seq_len(count[t])]
      terms[[t]]$Z %*% kronecker(l, diag(terms[[t]]$levels))
    }))
  }
  y <- d$y
  n <- nrow(d)
  if (model$law %in% c("normal", "reml", "weighted")) {
    w <- if (model$law == "weighted") d$precision else rep(1, n)
    value <- function(par) {
      root <- tryCatch(chol(tcrossprod(z_lambda(par)) + diag(1 / w)), error = function(e) NULL)
      if (is.null(root)) return(Inf)
      a <- qr(backsolve(root, x, transpose = TRUE))
      left <- sum(qr.resid(a, backsolve(root, y, transpose = TRUE))^2)
      df <- n - (model$law == "reml") * ncol(x)
      (2 * sum(log(diag(root))) + df * (1 + log(2 * pi * left / df))) / 2 +
        (model$law == "reml") * sum(log(abs(diag(qr.R(a)))))
    }
    return(list(value = value, theta = sum(count), beta = 0, aux = 0))
  }
  # log density and its first two derivatives by eta
  pieces <- function(eta, phi) switch(model$law,
    poisson = list(dpois(y, exp(eta), log = TRUE), y - exp(eta), exp(eta)),
    bernoulli = {
      p <- plogis(eta)
      list(dbinom(y, 1, p, log = TRUE), y - p, p * (1 - p))
    },
    binomial = {
      p <- plogis(eta)
      list(dbinom(y[, 1L], d$m, p, log = TRUE), y[, 1L] - d$m * p, d$m * p * (1 - p))
    },
    neg_binomial = {
      mu <- exp(eta)
      list(dnbinom(y, phi, mu = mu, log = TRUE), phi * (y - mu) / (phi + mu),
           phi * mu * (phi + y) / (phi + mu)^2)
    },
    gamma = { # phi: the dispersion
      mu <- exp(eta)
      list(dgamma(y, 1 / phi, scale = mu * phi, log = TRUE), (y / mu - 1) / phi, y / mu / phi)
    },
    probit = {
      s <- 2 * y - 1
      r <- exp(dnorm(eta, log = TRUE) - pnorm(s * eta, log.p = TRUE))
      list(pnorm(s * eta, log.p = TRUE), s * r, r * (r + s * eta))
    })
  aux <- model$law %in% c("neg_binomial", "gamma")
  value <- function(par) {
    zl <- z_lambda(par[seq_len(sum(count))])
    fixed <- as.vector(x %*% par[sum(count) + seq_len(ncol(x))])
    phi <- if (aux) exp(par[length(par)])
    u <- numeric(ncol(zl))
    of <- function(u) {
      q <- pieces(fixed + as.vector(zl %*% u), phi)
      list(f = sum(u^2) / 2 - sum(q[[1L]]), s = q[[2L]], w = q[[3L]])
    }
    at <- of(u)
    for (i in 1:100) {
      if (!is.finite(at$f)) return(Inf)
      g <- as.vector(crossprod(zl, at$s)) - u
      root <- tryCatch(chol(crossprod(zl, zl * at$w) + diag(length(u))), error = function(e) NULL)
      if (is.null(root)) return(Inf)
      step <- backsolve(root, backsolve(root, g, transpose = TRUE))
      if (sum(g * step) < 1e-18) break
      half <- 1
      repeat {
        new <- of(u + half * step)
        if (is.finite(new$f) && new$f <= at$f + 1e-12 * abs(at$f) || half < 1e-6) break
        half <- half / 2
      }
      u <- u + half * step
      at <- new
    }
    at$f + sum(log(diag(root)))
  }
  list(value = value, theta = sum(count), beta = ncol(x), aux = aux)
}

# The theta of fits, by columns, in the order of dense_terms().
fit_theta <- function(fit, normal) {
  l <- lapply(fit$roots, function(r) r / if (normal) fit$aux[[1L]] else 1)
  unlist(lapply(l, function(r) r[lower.tri(r, TRUE)]))
}

compare <- function(seed) {
  model <- simulate_model(seed)
  own <- tryCatch(ours(model), error = function(e) e)
  label <- sprintf("%4d %-12s %-13s", seed, model$law, model$kind)
  if (inherits(own, "error")) {
    cat(label, "refused:", conditionMessage(own), "\n")
    return(c(NA, NA, NA, NA))
  }
  other <- theirs(model)
  problem <- dense_problem(model)
  normal <- problem$beta == 0
  fit <- own$fit
  here <- c(fit_theta(fit, normal), if (!normal) c(coef(fit), if (problem$aux) log(fit$aux)))
  same <- -problem$value(here) - fit$logLik
  starts <- list(here)
  if (length(other) > 0L) {
    order <- seq_along(fit$roots)
    found <- if (normal) lme4::getME(other, "theta") else c(lme4::getME(other, "theta"),
                                                             lme4::fixef(other))
    if (length(found) == length(here)) starts <- c(starts, list(unname(found)))
  }
  k <- problem$theta
  diagonal <- unlist(lapply(fit$roots, function(r) (row(r) == col(r))[lower.tri(r, TRUE)])) * 1
  for (size in c(1, 0.3)) starts <- c(starts, list(c(size * diagonal, here[-seq_len(k)])))
  starts <- c(starts, list(c(rnorm(k, 0, 0.5), here[-seq_len(k)])))
  best <- max(vapply(starts, function(start) {
    value <- function(par) min(problem$value(par), 1e10)
    -stats::nlminb(start, value, control = list(rel.tol = 1e-12, iter.max = 300,
                                                eval.max = 3000))$objective
  }, 0))
  peer_value <- if (length(other) > 0L) as.numeric(stats::logLik(other)) else NA
  lost <- max(best, peer_value, na.rm = TRUE) - fit$logLik
  if (lost > 1e-6 || abs(same) > 1e-6 || nzchar(own$said)) {
    cat(sprintf("%s ours %.7f lme4 %.7f dense %.7f, at our estimates %.1e %s\n", label, fit$logLik,
                peer_value, best, same, own$said))
  }
  c(lost = lost, peer = peer_value - fit$logLik, same = same, warned = nzchar(own$said))
}

table <- t(vapply(seq_len(models) + first - 1L, compare, numeric(4L)))
cat(sprintf(paste("%d models: %d more than 1e-6 below the best, by at most %.1e; %d below lme4,",
                  "lme4 more than 1e-6 below us in %d; %d not converged\n"), nrow(table),
            sum(table[, 1L] > 1e-6, na.rm = TRUE), max(table[, 1L], na.rm = TRUE),
            sum(table[, 2L] > 1e-6, na.rm = TRUE), sum(table[, 2L] < -1e-6, na.rm = TRUE),
            sum(table[, 4L], na.rm = TRUE)))
