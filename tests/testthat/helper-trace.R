# The values of the nodes that a traced function gives, by plain R: elementwise operations by their
# meaning in base R, others as cl_gradient(retrace = TRUE) has them, which the core has no part in.

# The derivative of f with respect to its k-th argument, 0 where f is constant.
slope_in_base_r <- function(f, k) {
  function(...) {
    up <- down <- list(...)
    h <- 1e-5 * abs(up[[k]])
    up[[k]] <- up[[k]] + h
    down[[k]] <- down[[k]] - h
    value <- f(...)
    slope <- (do.call(f, up) - do.call(f, down)) / (2 * h)
    ifelse(is.finite(value) & value != 0, slope, ifelse(is.na(value), NaN, 0))
  }
}
# Logarithms of distribution functions, and the operand by which a slope is a derivative.
tails <- list(
  log_pgamma = function(a, b) pgamma(a, b, log.p = TRUE),
  log_qgamma = function(a, b) pgamma(a, b, lower.tail = FALSE, log.p = TRUE),
  log_pbeta = function(a, b, c) pbeta(a, b, c, log.p = TRUE),
  log_qbeta = function(a, b, c) pbeta(a, b, c, lower.tail = FALSE, log.p = TRUE),
  log_pnbinom = function(a, b, c) pnbinom(ceiling(a) - 1, c, mu = b, log.p = TRUE),
  log_qnbinom = function(a, b, c) pnbinom(ceiling(a) - 1, c, , b, FALSE, TRUE))
tail_slopes <- c(log_pgamma_slope = 2, log_qgamma_slope = 2, log_pbeta_slope_a = 2,
                 log_pbeta_slope_b = 3, log_qbeta_slope_a = 2, log_qbeta_slope_b = 3,
                 log_pnbinom_slope = 3, log_qnbinom_slope = 3)

# The meaning of each operation of elementwise.def in base R. A new row of the table needs one here.
in_base_r <- list(
  add = `+`, sub = `-`, mul = `*`, div = `/`, pow = `^`, mod = `%%`, intdiv = `%/%`, eq = `==`,
  ne = `!=`, lt = `<`, gt = `>`, le = `<=`, ge = `>=`, and = `&`, or = `|`, pmin = base::pmin,
  pmax = base::pmax, times = function(a, b) ifelse(a == 0, 0, a * b),
  over = function(a, b) ifelse(a == 0, 0, a / b), atan2 = atan2,
  fill_nan = function(a, b) ifelse(is.na(a), b, a),
  ifelse = function(a, b, c) ifelse(a, b, c), not = `!`, is_nan = is.na, is_finite = is.finite,
  is_infinite = is.infinite, shift = function(a) ifelse(is.finite(a), a, 0),
  neg = function(a) -a, square = function(a) a^2,
  inv_logit = plogis, log1p_exp = function(a) pmax(a, 0) + log1p(exp(-abs(a))), round = round,
  erf = function(a) 2 * pnorm(a * sqrt(2)) - 1, erfc = function(a) 2 * pnorm(-a * sqrt(2)),
  log1m_exp = function(a) log(1 - exp(a)),
  log_add_exp = function(a, b) ifelse(a == b, a + log(2), pmax(a, b) + log1p(exp(-abs(a - b)))),
  stirling = function(a) {
    ifelse(a < Inf, lgamma(a) - (a - 0.5) * log(a) + a - log(2 * pi) / 2, 0)
  },
  deviance = function(a, b) ifelse(a > 0, a * log(a / b) + b - a, ifelse(a == 0, pmax(b, 0), NaN)),
  stirling_slope = function(a, b) ifelse(a > 0 & b == 2, trigamma(a) - 1 / a - 0.5 / a^2, NaN),
  digamma_rise = function(a, b) digamma(a + b) - digamma(a),
  log_ratio = function(a, b) log(a / b),
  gamma_power = function(a, b, c) {
    ifelse(a >= 0 & b >= 0, b * log(c * a) - c * a - lgamma(b), NaN)
  },
  t_power = function(a, b) {
    ifelse(a > 0, ifelse(is.infinite(b), Inf, (a + 1) / 2 * log1p(b^2 / a)), NaN)
  },
  t_power_slope = function(a, b) {
    ifelse(a > 0, (log1p(b^2 / a) - (a + 1) / a * b^2 / (a + b^2)) / 2, NaN)
  },
  beta_power = function(a, b, c) {
    ifelse(a >= 0 & a <= 1, b * log(a) + c * log1p(-a) - lbeta(b, c), NaN)
  },
  neg_binomial = function(a, b, c) {
    counts <- ifelse(a == 0, 0, a * log(b / (c + b) / a) + a)
    ifelse(a >= 0 & b >= 0, lgamma(c + a) - lgamma(c) + c * log(c / (c + b)) + counts, NaN)
  },
  neg_binomial_slope = function(a, b, c) {
    ifelse(a >= 0 & b >= 0, digamma(c + a) - digamma(c) + log(c / (c + b)) + (b - a) / (c + b), NaN)
  },
  tetragamma = function(a) psigamma(a, 2), pentagamma = function(a) psigamma(a, 3),
  log_pnorm_slope = function(a) exp(dnorm(a, log = TRUE) - pnorm(a, log.p = TRUE)),
  # an infinite order would crash R
  bessel_k_scaled = function(a, b) besselK(a, ifelse(is.finite(b), abs(b), NaN), TRUE),
  pnorm = pnorm, dnorm = dnorm, qnorm = qnorm, log_qnorm = function(a) qnorm(a, log.p = TRUE),
  log_pnorm = function(a) pnorm(a, log.p = TRUE),
  round_to = function(a, b) ifelse(b > 0, round(a * b) / b, round(a / -b) * -b))
in_base_r <- c(in_base_r, tails, Map(function(name, k) {
  slope_in_base_r(tails[[sub("_slope.*", "", name)]], k)
}, names(tail_slopes), tail_slopes))

meaning_in_base_r <- function(op) {
  f <- in_base_r[[op]]
  if (is.null(f)) get0(op, baseenv(), mode = "function") else f
}

# The values of all nodes of a tape as a list.
reference_values <- function(tape, parameters) {
  values <- vector("list", tape$count)
  given <- list(live = parameters, data = tape$data)
  for (id in seq_len(tape$count)) {
    node <- statcl:::node_at(tape, id)
    args <- values[node[[3]]]
    found <- if (node[[1]] == "apply") reference_apply(node[[2]], args)
             else statcl:::live_result(node, args, given)
    if (length(found) != tape$size[id]) stop("node ", id, " (", node[[1]], ") has another length")
    values[[id]] <- as.double(found)
  }
  values
}

reference_apply <- function(op, args) {
  n <- max(lengths(args))
  if (!all(lengths(args) %in% c(1, n))) stop("lengths")
  suppressWarnings(do.call(meaning_in_base_r(op), lapply(args, rep_len, n)))
}

# f at a point through its trace and the reference, with the dimensions of the traced result; f may
# return anything numeric.
traced_result <- function(f, ...) {
  point <- list(...)
  trace <- statcl:::trace_function(f, point)
  result <- trace$result
  if (!statcl:::is_traced(result)) return(result)
  if (!is.null(dim(result))) stopifnot(prod(dim(result)) == length(result))
  id <- trace$node(result)
  values <- reference_values(trace$tape, as.double(unlist(point)))[[id]]
  values <- rep_len(values, length(result))
  if (!is.null(dim(result))) dim(values) <- dim(result)
  values
}

# f gives the same when traced as when called, shapes and warnings included.
expect_traced <- function(f, ..., tol = 1e-13) {
  warned <- function(code) {
    any <- FALSE
    value <- withCallingHandlers(code, warning = function(w) {
      any <<- TRUE
      invokeRestart("muffleWarning")
    })
    list(value = value, warned = any)
  }
  plain <- warned(f(...))
  want <- plain$value
  if (!is.null(dim(want))) dimnames(want) <- NULL else names(want) <- NULL
  if (is.array(want)) want <- array(as.double(want), dim(want)) else want <- as.double(want)
  found <- warned(traced_result(f, ...))
  expect_identical(found$warned, plain$warned, label = paste("warning of", deparse(body(f))[1]))
  got <- found$value
  if (!is.null(dim(got))) dimnames(got) <- NULL else names(got) <- NULL
  label <- paste(deparse(body(f)), collapse = " ")
  expect_identical(dim(got), dim(want), label = label)
  expect_equal(as.double(got), as.double(want), tolerance = tol, label = label)
}

# f fails when traced, and when called with plain numbers too if `both`.
expect_untraced <- function(f, ..., both = FALSE) {
  if (both) expect_error(f(...))
  expect_fault(statcl:::trace_function(f, list(...)), "argument", argument = "f")
}

refused <- function(f, ..., says, argument = "f") {
  e <- expect_fault(cl_gradient(f)(...), "argument", argument = argument)
  expect_match(conditionMessage(e), says, fixed = TRUE)
}

# Value and gradient as those of f with numbers.
holds <- function(f, ...) {
  point <- list(...)
  got <- cl_gradient(f)(...)
  expect_equal(as.numeric(got), as.numeric(f(...)), tolerance = 1e-12)
  expect_true(all(do.call(cl_check_gradient, c(list(cl_gradient(f)), point))$ok))
}

# Values against the same function of numbers, gradients against differences.
expect_as_matrix <- function(f, at = c(1.3, 0.7)) {
  label <- paste(deparse(body(f)), collapse = " ")
  model <- cl_gradient(f)
  got <- suppressWarnings(model(at))
  expect_equal(c(got), as.numeric(f(at)), tolerance = 1e-10, info = label)
  expect_equal(attr(got, "gradient")$k, slopes_of(function(k) as.numeric(f(k)), at, 1e-3),
               tolerance = 1e-7, info = label)
}
