# The names that an objective written for RTMB uses, for cl_tmb(). They are found only through the
# lookup environment of R/trace-lookup.R, and work on numbers and on traced values alike. `notes` is
# an environment in which REPORT() and ADREPORT() store values.

tmb_masks <- function(notes) {
  note <- function(what) {
    force(what)
    function(x) {
      name <- deparse1(substitute(x))
      assign(what, c(notes[[what]][setdiff(names(notes[[what]]), name)],
                     stats::setNames(list(x), name)), envir = notes)
      invisible(x)
    }
  }
  observe <- function(x) {
    name <- deparse1(substitute(x))
    notes$observed[[name]] <- x
    if (is.null(notes$drawn)) return(x)
    if (is.null(notes$drawn[[name]])) notes$drawn[[name]] <- draw_of(x)
    notes$drawn[[name]]
  }
  follow <- function(f) {
    here <- !is.function(f) || is.primitive(f) || exists(".statcl_lookup", envir = environment(f))
    if (here) f else looking_up(f, more = tmb_masks(notes))
  }
  list(getAll = tmb_get_all, OBS = observe, REPORT = note("report"),
       ADREPORT = note("adreport"), AD = function(x, force = FALSE) x, `%~%` = tmb_distributed,
       ADoverload = tmb_overload, dmvnorm = tmb_dmvnorm, dautoreg = tmb_dautoreg,
       dgmrf = tmb_dgmrf, dnbinom2 = tmb_dnbinom2, dnbinom_robust = tmb_dnbinom_robust,
       dbinom_robust = tmb_dbinom_robust, dlgamma = tmb_dlgamma,
       logspace_add = function(logx, logy) tmb_logspace_add(logx, logy),
       unstructured = tmb_unstructured,
       dseparable = function(...) tmb_dseparable(lapply(list(...), follow)),
       logspace_sub = function(logx, logy) logx + log1m_exp(logy - logx))
}

# Assigns the elements of lists as variables of the calling function.
tmb_get_all <- function(..., warn = TRUE) {
  home <- parent.frame()
  for (values in list(...)) {
    if (!is.list(values) || is.null(names(values))) {
      trace_stop(sprintf("getAll() takes named lists, not %s", describe(values)))
    }
    for (name in names(values)) {
      if (isTRUE(warn) && exists(name, envir = home, inherits = FALSE)) {
        warning(sprintf("getAll() replaces '%s'", name), call. = FALSE)
      }
      assign(name, values[[name]], envir = home)
    }
  }
  invisible(NULL)
}

# `x %~% dnorm(mu, sd)` subtracts sum(dnorm(x, mu, sd, log = TRUE)) from the variable .nll of the
# function that uses it, which then returns .nll.
tmb_distributed <- function(x, distr) {
  home <- parent.frame()
  call <- substitute(distr)
  if (!is.call(call)) trace_stop("the right-hand side of '%~%' must be a call, as in dnorm(mu, sd)")
  call <- as.call(c(call[[1L]], substitute(x), as.list(call)[-1L], list(log = TRUE)))
  if (!exists(".nll", envir = home, inherits = FALSE)) {
    assign(".nll", 0, envir = home)
    do.call(on.exit, list(quote(return(.nll)), add = TRUE), envir = home)
  }
  eval(bquote(.nll <- .nll - sum(.(call))), home)
  invisible(get(".nll", envir = home))
}

tmb_overload <- function(x = c("[<-", "c", "diag<-", "if")) {
  x <- x[1L]
  if (identical(x, "if")) {
    trace_stop("ADoverload(\"if\") is not available: choose by element with ifelse()")
  }
  mine <- traced_functions()[[x]]
  if (is.null(mine)) get(x, baseenv()) else mine
}

# ---- densities that R does not have --------------------------------------------------------------

tmb_result <- function(value, log) if (isTRUE(as.logical(log))) value else exp(value)

tmb_dmvnorm <- function(x, mu = 0, Sigma, log = FALSE, scale = 1) {
  if (is_axis(x)) return(of_axis(x, axis_covariance(Sigma), mu, log, scale))
  value <- dmvnorm_formula(tmb_scaled(x, mu, scale), 0, Sigma, TRUE)
  tmb_result(value - tmb_log_scale(x, scale), log)
}

tmb_dgmrf <- function(x, mu = 0, Q, log = FALSE, scale = 1) {
  if (is_axis(x)) return(of_axis(x, axis_precision(Q), mu, log, scale))
  if (is_sparse(Q) || is_traced_sparse(Q)) {
    d <- tmb_scaled(x, mu, scale)
    value <- (sparse_log_det(Q) - ncol(Q) * base::log(2 * pi) - sparse_squares(d, Q)) / 2
    return(tmb_result(value - tmb_log_scale(x, scale), log))
  }
  if (!is_traced(Q)) Q <- as.matrix(Q)
  value <- dmvnorm_formula(tmb_scaled(x, mu, scale), 0, precision = Q, log = TRUE)
  tmb_result(value - tmb_log_scale(x, scale), log)
}

# d' Q d, for each row of a matrix d.
sparse_squares <- function(d, Q) {
  if (!any_traced(d, Q)) return(rowSums(as.matrix(rows_of(d) %*% Q) * rows_of(d)))
  Q <- as_traced_sparse(Q)
  if (is.null(dim(d)) && Q$symmetric) return(sparse_quadratic(Q, d))
  d <- trace_operand(rows_of(d))
  linear("rowSums", traced_product(d, Q, 0L) * d)
}

rows_of <- function(d) if (is.null(dim(d))) matrix_of(d, 1L, length(d)) else d

tmb_scaled <- function(x, mu, scale) {
  if (!is.null(dim(x)) && is.null(dim(mu)) && length(mu) > 1L) return(t((t(x) - mu) / scale))
  (x - mu) / scale
}

tmb_log_scale <- function(x, scale) {
  if (identical(scale, 1)) return(0)
  n <- if (is.null(dim(x))) length(x) else ncol(x)
  if (length(scale) == 1L) n * log(scale) else sum(log(scale))
}

# A correlation matrix of order k by the elements below the diagonal of a factor with a unit
# diagonal.
tmb_unstructured <- function(k) {
  below <- lower.tri(diag(k))
  list(parms = function() numeric(sum(below)), corr = function(x) {
    if (length(x) != sum(below)) {
      trace_stop(sprintf("corr() takes %d parameters, not %d", sum(below), length(x)))
    }
    if (!is_traced(x)) return(stats::cov2cor(tcrossprod(replace(diag(k), below, x))))
    root <- traced_assign(diag(k), `[<-`, x, below)
    traced_cov2cor(traced_product(root, root, 2L))
  })
}

# The coefficients of an autoregression and of the regressions on fewer predecessors (the
# Durbin-Levinson recursion, backwards).
autoreg_lower <- function(phi) {
  order <- length(phi)
  lower <- vector("list", order)
  if (order > 0L) lower[[order]] <- phi
  for (j in rev(seq_len(order - 1L))) {
    up <- lower[[j + 1L]]
    partial <- up[j + 1L]
    lower[[j]] <- (up[seq_len(j)] + partial * up[j:1]) / (1 - partial^2)
  }
  lower
}

# A stationary autoregression with variance 1.
tmb_dautoreg <- function(x, mu = 0, phi, log = FALSE, scale = 1) {
  if (is_axis(x)) return(of_axis(x, axis_autoreg(x, phi), mu, log, scale))
  n <- length(x)
  order <- length(phi)
  d <- (x - mu) / scale
  lower <- autoreg_lower(phi)
  variance <- 1
  value <- density_normal(d[1L], variance)
  for (j in seq_len(min(order, n - 1L))) {
    variance <- variance * (1 - lower[[j]][j]^2)
    at <- if (j == order) (j + 1L):n else j + 1L
    mean <- 0
    for (i in seq_len(j)) mean <- mean + lower[[j]][i] * d[at - i]
    value <- value + density_normal(d[at] - mean, variance)
  }
  if (order == 0L && n > 1L) value <- value + density_normal(d[-1L], 1)
  value <- value - (if (length(scale) == 1L) n * log(scale) else sum(log(scale)))
  tmb_result(value, log)
}

# The summed log density of independent normal variables with mean 0.
density_normal <- function(d, variance) {
  -0.5 * sum(square(d)) / variance - length(d) * (0.5 * log(variance) + log_sqrt_2pi)
}

# The negative binomial in terms of mean and variance.
tmb_dnbinom2 <- function(x, mu, var, log = FALSE) {
  tmb_dnbinom_robust(x, log(mu), log(var - mu), log)
}

tmb_dnbinom_robust <- function(x, log_mu, log_var_minus_mu, log = FALSE) {
  size <- exp(2 * log_mu - log_var_minus_mu)
  # prob = mu / var, and log(1 - prob)
  log_prob <- -log1p_exp(log_var_minus_mu - log_mu)
  log_rest <- -log1p_exp(log_mu - log_var_minus_mu)
  value <- lgamma(x + size) - lgamma(size) - lgamma(x + 1) + size * log_prob + x * log_rest
  tmb_result(value, log)
}

tmb_dbinom_robust <- function(x, size, logit_p, log = FALSE) {
  # The density without lchoose(), as in RTMB.
  value <- lchoose_of(size, x) - x * log1p_exp(-logit_p) - (size - x) * log1p_exp(logit_p)
  tmb_result(value, log)
}

lchoose_of <- function(n, k) {
  if (any_traced(n, k)) lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) else lchoose(n, k)
}

# The density of the logarithm of a gamma variable.
tmb_dlgamma <- function(x, shape, scale, log = FALSE) {
  value <- -lgamma(shape) - shape * log(scale) - exp(x) / scale + shape * x
  tmb_result(value, log)
}

tmb_logspace_add <- function(a, b) log_add_exp(a, b)
