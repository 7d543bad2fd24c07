# Calls with malformed arguments, for test-fuzz-errors.R.

# Values that are not meant for any argument.
odd_values <- function() {
  fake <- function(class, x = list()) structure(x, class = class)
  c(list(NULL, NA, NaN, Inf, -1, 0, 1.5, 1e10, 2^31, "a", "", NA_character_, "\xff", TRUE, 1i,
         as.raw(1), quote(x), quote(f(x)), y ~ x, ~1, y ~ nowhere, ~ log(x) | x, globalenv(),
         list(), list(1), list(NULL), list(a = 1, a = 2), function(x) x, sum, factor("a"),
         Sys.Date(), numeric(), character(), integer(), c(a = 1), 1:3, c(1, NA), letters,
         matrix(0, 0, 0), matrix(0, 3, 0), matrix("a", 2, 2), matrix(list(1, 2), 1),
         array(0, c(2, 2, 2)), array(1, 3), data.frame(), data.frame(l = I(list(1, 2))),
         data.frame(a = 1:2, b = c("u", "v")), fake("odd", 1), methods::new("clMatrix"),
         methods::new("clArray"), fake("cl_kernel", list(terms = 1)),
         fake("cl_likelihood", function(x) x)),
    lapply(c("cl_glm", "cl_gp", "cl_kernel", "cl_sample", "cl_batch_lm", "cl_prior",
             "cl_transform", "cl_log_posterior", "cl_gp_likelihood", "cl_gp_prior"), fake))
}

# list(function, valid arguments) by name; one argument at a time is replaced.
fuzz_calls <- function() {
  x <- matrix(c(2, 1, 1, 3), 2)
  a3 <- array(c(x, x), c(2, 2, 2))
  d <- data.frame(y = c(0, 1, 0, 1, 1, 0, 1, 0), x = c(1, 3, 2, 5, 4, 1, 2, 3), w = 1)
  count <- c(3, 1, 4, 1, 5, 9, 2, 6)
  density <- function(a) structure(-sum(a^2) / 2, gradient = list(a = -a))
  few <- list(n = 8, k = k_matern52())
  fit <- cl_glm(y ~ x, d)
  gp <- cl_gp(cbind(d$x), count, starts = 1)
  lm <- suppressWarnings(cl_batch_lm(count ~ x, d, group = rep(1:2, 4)))
  draws <- suppressWarnings(cl_sample(density, list(a = 0), chains = 1, warmup = 20, iter = 20,
                                      refresh = 0)) # so few draws warn on some processors
  f <- cl_likelihood("bernoulli_logit", d$y, cbind(d$x))
  g <- cl_gp_likelihood(count, cbind(d$x), few$k)
  row <- function(f, ...) list(f, list(...))
  list(
    as_cl = row(as_cl, x = x, view = "general"), cl_matrix = row(cl_matrix, x, 2, 2),
    cl_identity = row(cl_identity, 2), cl_zeros = row(cl_zeros, 2, 2), cl_free = row(cl_free, x),
    cl_matmul = row(cl_matmul, x, x), cl_chol = row(cl_chol, x, jitter = 0),
    cl_chol_adjoint = row(cl_chol_adjoint, t(chol(x)), x),
    cl_tri_solve = row(cl_tri_solve, x, x, upper = FALSE, transpose = FALSE),
    cl_tri_inverse = row(cl_tri_inverse, x), cl_ifelse = row(cl_ifelse, as_cl(x), 1, 0),
    cl_op = row(cl_op, "add", 1, x), cl_map = row(cl_map, function(x) x + 1, x),
    cl_reduce = row(cl_reduce, x, map = function(x) x, combine = "sum", identity = 0,
                    margin = "all"),
    cl_row = row(cl_row, as_cl(x)), cl_eval = row(cl_eval, as_cl(x)),
    cl_pnorm = row(cl_pnorm, x, lower.tail = TRUE, log.p = FALSE), cl_erf = row(cl_erf, x),
    cl_atan2 = row(cl_atan2, x, x), cl_cov = row(cl_cov, x, x, few$k),
    cl_cov_adjoint = row(cl_cov_adjoint, x, x, NULL, few$k, inputs = FALSE),
    k_exp_quad = row(k_exp_quad, 1, 1, 1), k_matern32 = row(k_matern32, 1, 1, "a"),
    k_rational_quadratic = row(k_rational_quadratic, 1, 1, 1, NULL),
    k_periodic = row(k_periodic, 1, 1, 1, NULL), k_linear = row(k_linear, 1, 1, center = 0),
    k_constant = row(k_constant, 1), k_white = row(k_white, 1),
    k_user = row(k_user, function(d, l) exp(-d / l), c(l = 1)),
    kernel_plus = row(function(a, b) a + b, few$k, few$k),
    kernel_update = row(update, few$k, sd = 2), kernel_print = row(format, few$k, digits = 3),
    cl_gp_likelihood = row(cl_gp_likelihood, count, cbind(d$x), few$k, mean = 0),
    gp_call = row(g, c(1, 1, 1)), glm_call = row(f, 0.1, 0.2, gradient = FALSE),
    cl_likelihood = row(cl_likelihood, "bernoulli_logit", d$y, cbind(d$x)),
    cl_gp = row(function(...) cl_gp(..., starts = 1), cbind(d$x), count, few$k, method = "ml",
                mean = "estimate", weights = NULL, variance = NULL, prior = NULL),
    cl_gp_formula = row(function(...) cl_gp(..., starts = 1), y ~ x, d, kernel = few$k,
                        mean = "estimate", subset = 1:8),
    cl_glm = row(cl_glm, cbind(d$x), d$y, "bernoulli_logit", "ml", weights = NULL, offset = NULL,
                 trials = NULL, intercept = TRUE, start = NULL, control = list()),
    cl_glm_formula = row(cl_glm, y ~ x, d, family = "bernoulli_logit", weights = NULL,
                         offset = NULL, trials = NULL, subset = 1:8, na.action = na.omit,
                         contrasts = NULL, model = TRUE),
    cl_batch_lm = row(cl_batch_lm, count ~ x, d, group = rep(1:2, 4), on_error = "warn"),
    cl_batch_chol = row(cl_batch_chol, a3), cl_batch_solve = row(cl_batch_solve, a3, a3),
    cl_batch_matmul = row(cl_batch_matmul, a3, a3),
    cl_batch_inverse = row(cl_batch_inverse, a3), cl_batch_det = row(cl_batch_det, a3),
    cl_batch_mvn_lpdf = row(cl_batch_mvn_lpdf, x, x, a3),
    cl_sample = row(function(...) cl_sample(..., warmup = 5, refresh = 0), density, list(a = 0),
                    chains = 1, iter = 5, transform = NULL),
    cl_log_posterior = row(cl_log_posterior, f, ~ -a^2),
    cl_check_gradient = row(cl_check_gradient, f, alpha = 0.1, beta = 0.2, step = 1e-5),
    prior_normal = row(prior_normal, 0, 1), prior_inv_gamma = row(prior_inv_gamma, tails = c(1, 2)),
    prior_lognormal = row(prior_lognormal, 0, 1), cl_lower = row(cl_lower, 0),
    cl_bounds = row(cl_bounds, 0, 1), cl_use = row(cl_use, "host", "host"),
    with_cl = row(with_cl, 1, "host", "host"), cl_thresholds = row(cl_thresholds),
    predict_glm = row(predict, fit, d, type = "link", level = 0.9),
    residuals_glm = row(residuals, fit, type = "response"), coef_glm = row(coef, fit),
    vcov_glm = row(vcov, fit), confint_glm = row(confint, fit, "x", 0.9),
    summary_glm = row(summary, fit), simulate_glm = row(simulate, fit, nsim = 1, seed = 1),
    logLik_glm = row(logLik, fit), anova_glm = row(anova, fit, fit), print_glm = row(print, fit),
    predict_gp = row(predict, gp, cbind(1:2), type = "latent", level = 0.9),
    update_gp = row(update, gp, newdata = cbind(1), y = 2), coef_gp = row(coef, gp),
    residuals_gp = row(residuals, gp), simulate_gp = row(simulate, gp, nsim = 1, seed = 1),
    summary_gp = row(summary, gp), print_gp = row(print, gp), vcov_gp = row(vcov, gp),
    as.data.frame_lm = row(as.data.frame, lm), vcov_lm = row(vcov, lm), print_lm = row(print, lm),
    summary_sample = row(summary, draws), matrix_sample = row(as.matrix, draws),
    print_sample = row(print, draws))
}

# Objects of the package's classes with a field missing or wrong, for methods of fits.
damaged <- function(x, k) {
  if (!is.list(x) || is.data.frame(x)) return(list())
  y <- unclass(x)
  names <- setdiff(names(y), "call")
  made <- lapply(names[seq_len(min(length(names), k))], function(name) {
    list(replace(y, name, list("odd")), y[base::setdiff(base::names(y), name)])
  })
  lapply(unlist(made, recursive = FALSE), structure, class = class(x))
}

# Errors that are not classed, as "function argument: message", with their counts.
fuzz <- function(calls, keep = function(n) seq_len(n)) {
  found <- character()
  try_call <- function(name, f, arguments, changed) {
    error <- tryCatch({
      utils::capture.output(suppressMessages(suppressWarnings(
        do.call(f, arguments, quote = TRUE))))
      NULL
    }, error = function(e) e)
    if (is.null(error) || inherits(error, "statcl_error")) return()
    found <<- c(found, sprintf("%s %s: %s", name, changed, conditionMessage(error)[1L]))
  }
  values <- odd_values()
  for (name in names(calls)) {
    f <- calls[[name]][[1L]]
    arguments <- calls[[name]][[2L]]
    for (i in seq_along(arguments)) {
      changed <- if (is.null(names(arguments)) || !nzchar(names(arguments)[i])) i else
        names(arguments)[i]
      # the object whose method is called is damaged, not replaced
      method <- i == 1L && grepl("_(glm|gp|lm|sample)$|^kernel_", name) && is.list(arguments[[1L]])
      odd <- if (method) damaged(arguments[[1L]], 40) else values
      for (value in odd[keep(length(odd))]) {
        now <- arguments
        now[i] <- list(value)
        try_call(name, f, now, changed)
      }
    }
  }
  found
}
