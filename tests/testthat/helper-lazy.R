# Random expression trees: R calls that mean the same to base R and to statcl, for test-lazy.R.
#
# A tree is evaluated in an environment of leaves. Where a clMatrix of one row or one column meets a
# matrix, base R has a full matrix or a vector instead.

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

# What trees call besides functions of base R.
tree_functions <- list(
  quotient = function(x, y) x / (abs(y) + 0.5),
  block = function(x, m, n) x[2:(m + 1), 3:(n + 2), drop = FALSE],
  replaced = function(x, y) {
    rows <- seq_len(max(nrow(x) - 1L, 1L))
    x[rows, 1L] <- y[rows, ncol(x), drop = FALSE]
    x
  })

# A tree whose value is m x n: `flip` is whether leaves of the other orientation are meant.
random_tree <- function(depth, m, n, flip = FALSE) {
  pick <- function(...) sample(c(...), 1L)
  full <- function(d = depth - 1L) random_tree(d, m, n, flip)
  if (depth <= 0L || runif(1) < 0.08) {
    names <- if (flip) c("at", "bt") else c("a", "b")
    if (m == n) names <- c(names, "lower", "symmetric")
    return(as.name(pick(names)))
  }
  # An operand that is spread over m x n, or a number.
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
    x <- full()
    return(switch(pick("exp", "log1p", "sqrt", "plain"),
      exp = bquote(exp(-abs(.(x)))), log1p = bquote(log1p(abs(.(x)))),
      sqrt = bquote(sqrt(abs(.(x)))),
      call_of(pick("sin", "cos", "tanh", "abs", "sign", "atan", "-", "+"), list(x))))
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

# The environment in which a tree is a base R expression, a fused one, or (each = TRUE) one kernel
# an operation.
tree_home <- function(leaves, base, each = FALSE) {
  home <- list2env(c(leaves, tree_functions), parent = asNamespace("statcl"))
  for (name in names(tree_functions)) environment(home[[name]]) <- home
  if (base) {
    home$pmin <- base::pmin
    home$pmax <- base::pmax
  }
  if (each) {
    for (name in c("+", "-", "*", "/", "exp", "log1p", "sqrt", "abs", "sin", "cos", "tanh", "sign",
                   "atan", "<", "<=", ">", ">=", "==", "!=", "&", "|", "!", "pmin", "pmax",
                   "cl_ifelse", "t", "^", "%%", "%/%")) {
      home[[name]] <- computed_at_once(get(name, envir = asNamespace("statcl")))
    }
  }
  home
}

computed_at_once <- function(f) {
  force(f)
  function(...) {
    value <- f(...)
    if (is_cl(value)) cl_eval(value)
    value
  }
}

# Equal up to rounding, with NA, NaN and infinities in the same places; NaN and NA are one.
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
