# Random expression trees: R calls that mean the same to base R and to statcl, for test-lazy.R.
#
# A tree is evaluated in an environment of leaves. Where a clMatrix with one row or one column is
# combined with a matrix, base R uses a full matrix or a vector instead.

# Leaves of the shapes m x n and n x m ("t"), for base R (base = TRUE) or statcl.
tree_leaves <- function(m, n, special, base) {
  number <- function(k, size) {
    x <- round(sin(seq_len(size) * (k + 1.7) + k) * 8) / 4
    if (special) x[seq_len(size) %% 11 == k %% 11] <- c(NA, NaN, Inf, -Inf, 0, -0)[(k - 1) %% 6 + 1]
    x
  }
  matrix_of <- function(k, rows, columns) matrix(number(k, rows * columns), rows, columns)
  make <- function(x, view = "general") if (base) x else as_cl(x, view = view)
  triangle <- function(x) {
    x[upper.tri(x)] <- 0
    x
  }
  mirror <- function(x) {
    x[upper.tri(x)] <- t(x)[upper.tri(x)]
    x
  }
  row <- number(7, n)
  leaves <- list(
    a = make(matrix_of(1, m, n)), b = make(matrix_of(2, m, n)), at = make(matrix_of(3, n, m)),
    bt = make(matrix_of(4, n, m)), wide = make(matrix_of(5, m + 2, n + 3)),
    column = if (base) number(6, m) else as_cl(number(6, m)),
    row = if (base) matrix(row, m, n, byrow = TRUE) else as_cl(matrix(row, 1)),
    plain = matrix_of(8, m, n), vector = number(9, m), whole = seq_len(m), yes = TRUE)
  if (m == n) {
    leaves$lower <- make(triangle(matrix_of(10, m, m)), "lower")
    leaves$symmetric <- make(mirror(matrix_of(11, m, m)), "symmetric")
  }
  leaves
}

# Functions that trees call in addition to those of base R. Sums are lazy for statcl.
tree_functions <- list(
  quotient = function(x, y) x / (abs(y) + 0.5),
  block = function(x, m, n) x[2:(m + 1), 3:(n + 2), drop = FALSE],
  replaced = function(x, y) {
    rows <- seq_len(max(nrow(x) - 1L, 1L))
    x[rows, 1L] <- y[rows, ncol(x), drop = FALSE]
    x
  },
  less_mean = function(x) {
    if (is_cl(x)) x - cl_reduce(x, margin = "rows") / ncol(x) else x - rowMeans(x)
  },
  less_largest = function(x) {
    if (is_cl(x)) return(x - cl_reduce(x, combine = "max", identity = -Inf, margin = "cols"))
    x - rep(apply(x, 2L, max), each = nrow(x))
  },
  with_total = function(x) {
    if (is_cl(x)) x / 4 + cl_reduce(x, map = function(x, i) x / i) else x / 4 + sum(x / row(x))
  },
  with_product = function(x) x + as.vector_or_column(x %*% (seq_len(ncol(x)) / 4)),
  as.vector_or_column = function(x) if (is_cl(x)) x else as.vector(x))

# Functions of one number, with arguments for which they have values.
tree_units <- list(
  quote(exp(-abs(x))), quote(log1p(abs(x))), quote(sqrt(abs(x))), quote(sin(x)), quote(cos(x)),
  quote(tanh(x)), quote(abs(x)), quote(sign(x)), quote(atan(x)), quote(-x), quote(+x),
  quote(log(abs(x) + 0.5, 3)), quote(expm1(pmin(x, 2))), quote(floor(x)), quote(ceiling(x)),
  quote(trunc(x)), quote(round(x)), quote(round(x, 1)), quote(sinpi(x)), quote(cospi(x / 3)),
  quote(lgamma(abs(x) + 0.25)), quote(gamma(pmin(abs(x), 5) + 0.5)), quote(digamma(x - 0.37)),
  quote(trigamma(abs(x) + 0.75)), quote(cl_pnorm(x)), quote(cl_pnorm(x, log.p = TRUE)),
  quote(cl_inv_logit(x)), quote(cl_log1p_exp(x)), quote(is.na(x)), quote(is.finite(x)),
  quote(less_mean(x)), quote(less_largest(x)), quote(with_total(x)), quote(with_product(x)))

# A tree whose value is m x n: `flip` is whether leaves of the other orientation are meant.
random_tree <- function(depth, m, n, flip = FALSE) {
  pick <- function(...) sample(c(...), 1L)
  full <- function(d = depth - 1L) random_tree(d, m, n, flip)
  if (depth <= 0L || runif(1) < 0.08) {
    names <- if (flip) c("at", "bt") else c("a", "b")
    if (m == n) names <- c(names, "lower", "symmetric")
    return(as.name(pick(names)))
  }
  # An operand that is recycled to m x n, or a number.
  other <- function() {
    if (runif(1) < 0.6) return(full())
    if (runif(1) < 0.4) return(pick(2, -0.5, 0.25, 3))
    if (runif(1) < 0.1) return(pick(2L, NA, TRUE, 0))
    if (flip) full(0L) else as.name(pick("column", "row", "plain", "vector", "whole", "yes"))
  }
  pair <- function() if (runif(1) < 0.5) list(full(), other()) else list(other(), full())
  call_of <- function(name, arguments) as.call(c(as.name(name), arguments))
  kind <- runif(1)
  if (kind < 0.40) return(call_of(pick("+", "-", "*", "+", "-", "*", "quotient"), pair()))
  if (kind < 0.62) {
    unit <- tree_units[[sample(length(tree_units), 1L)]]
    return(do.call(substitute, list(unit, list(x = full()))))
  }
  if (kind < 0.70) {
    return(call_of(pick("<", "<=", ">", ">=", "==", "!="), pair()))
  }
  if (kind < 0.74) return(call_of(pick("&", "|"), pair()))
  if (kind < 0.76) return(call_of("!", list(full())))
  if (kind < 0.81) return(call_of(pick("pmin", "pmax"), list(full(), other())))
  if (kind < 0.86) return(call_of("cl_ifelse", list(full(), other(), other())))
  if (kind < 0.90) return(call_of("t", list(random_tree(depth - 1L, n, m, !flip))))
  if (kind < 0.92 && !flip) return(bquote(block(wide, .(m), .(n))))
  if (kind < 0.94) return(call_of("replaced", list(full(), full())))
  if (kind < 0.96) return(call_of(pick("^"), list(full(0L), pick(2, 3, 0.5))))
  if (kind < 0.97) return(call_of(pick("%%", "%/%"), list(full(0L), pick(2, 0.75, -3))))
  bquote((function(z) z * z + z - .(other()))(.(full())))
}

# The environment in which a tree is a base R expression, a fused one, or (each = 1) one kernel per
# operation; between 0 and 1, `each` is the proportion of operations that are computed at once. Base
# R's inexact functions are multiplied by `nudge`.
tree_home <- function(leaves, base, each = 0, nudge = 1) {
  home <- list2env(c(leaves, tree_functions), parent = asNamespace("statcl"))
  for (name in names(tree_functions)) environment(home[[name]]) <- home
  if (base) {
    home$pmin <- base::pmin
    home$pmax <- base::pmax
    home$rowMeans <- base::rowMeans
  }
  if (nudge != 1) {
    for (name in c(tree_inexact, "rowMeans", "sum", "%*%")) {
      home[[name]] <- times(get(name, envir = asNamespace("statcl")), nudge)
    }
  }
  if (each > 0) {
    for (name in c(tree_inexact, "+", "-", "*", "/", "sqrt", "abs", "sign", "<", "<=", ">", ">=",
                   "==", "!=", "&", "|", "!", "pmin", "pmax", "cl_ifelse", "t", "%%", "%/%",
                   "floor", "ceiling", "trunc", "round", "is.na", "is.finite", "cl_reduce")) {
      home[[name]] <- computed_at_once(get(name, envir = asNamespace("statcl")), each)
    }
  }
  home
}

# Functions for which two libraries may give different bits.
tree_inexact <- c("exp", "log1p", "sin", "cos", "tanh", "atan", "log", "expm1", "sinpi", "cospi",
                  "lgamma", "gamma", "digamma", "trigamma", "cl_pnorm", "cl_inv_logit",
                  "cl_log1p_exp", "^")

times <- function(f, nudge) {
  force(f)
  function(...) f(...) * nudge
}

computed_at_once <- function(f, share) {
  force(f)
  force(share)
  function(...) {
    value <- f(...)
    if (is_cl(value) && (share == 1 || runif(1) < share)) cl_eval(value)
    value
  }
}

# The elements in which two results are equal up to rounding; NaN and NA count as equal.
same_elements <- function(x, y, tol = 1e-9) {
  same <- is.na(x) & is.na(y)
  known <- !is.na(x) & !is.na(y)
  finite <- known & is.finite(x) & is.finite(y)
  same[known] <- x[known] == y[known]
  same[finite] <- abs(x - y)[finite] <= tol * pmax(1, abs(y[finite]))
  same
}

# Whether all elements are equal, relative to the largest number.
same_numbers <- function(x, y, tol = 1e-9) {
  x <- as.double(x)
  y <- as.double(y)
  if (length(x) != length(y) || !identical(is.na(x), is.na(y))) return(FALSE)
  known <- !is.na(x)
  x <- x[known]
  y <- y[known]
  finite <- is.finite(x) & is.finite(y)
  all(x[!finite] == y[!finite]) &&
    max(abs(x - y)[finite], 0) <= tol * max(1, abs(y)[finite])
}

# Evaluates the trees with these numbers: those that are wrong, and how many could not be compared
# everywhere. Fused and unfused results are equal up to the order of sums. Base R uses another
# library: where its own value changes if its functions are off by a few units in the last place, as
# on both sides of `tanh(x) == 1`, no comparison is possible.
check_trees <- function(numbers) {
  shapes <- list(c(5, 4), c(1, 7), c(7, 1), c(1, 1), c(33, 9), c(6, 6), c(70, 3))
  wrong <- character()
  unsettled <- 0L
  for (number in numbers) {
    set.seed(number)
    shape <- shapes[[number %% length(shapes) + 1L]]
    m <- shape[1L]
    n <- shape[2L]
    special <- number %% 3 == 0
    tree <- call("+", as.name("a"), random_tree(3L + number %% 4L, m, n))
    leaves <- tree_leaves(m, n, special, TRUE)
    by_r <- function(nudge) suppressWarnings(eval(tree, tree_home(leaves, TRUE, nudge = nudge)))
    want <- by_r(1)
    device <- tree_leaves(m, n, special, FALSE)
    fused <- eval(tree, tree_home(device, base = FALSE))
    single <- eval(tree, tree_home(device, base = FALSE, each = 1))
    # Kernels for some parts only: too many structures where they have to be compiled.
    mixed <- if (current_device() < 0L) eval(tree, tree_home(device, base = FALSE, each = 0.3))
    for (leaf in device) if (is_cl(leaf)) cl_free(leaf)
    fine <- identical(dim(fused), dim(want)) &&
      same_numbers(as.matrix(single), as.matrix(fused), 1e-12) &&
      (is.null(mixed) || same_numbers(as.matrix(mixed), as.matrix(fused), 1e-12))
    if (fine && !all(same <- same_elements(as.matrix(fused), want))) {
      moves <- !same_elements(by_r(1 + 2^-48), want) | !same_elements(by_r(1 - 2^-48), want)
      fine <- all(same | moves)
      unsettled <- unsettled + 1L
    }
    if (!fine) {
      wrong <- c(wrong, sprintf("tree %d (%d x %d): %s", number, m, n,
                                paste(deparse(tree), collapse = " ")))
    }
  }
  list(wrong = wrong, unsettled = unsettled)
}

expect_trees <- function(numbers) {
  found <- check_trees(numbers)
  wrong <- found$wrong
  expect(length(wrong) == 0L, paste(c(sprintf("%d of %d trees", length(wrong), length(numbers)),
                                      head(wrong, 3L)), collapse = "\n"))
  expect_lte(found$unsettled, 1 + length(numbers) / 50)
}
