# Statistics of traced values: covariances, norms, sums by group.

# Variances and covariances of columns, or of two vectors.
traced_var <- function(x, y = NULL, na.rm = FALSE, use = "everything", method = "pearson") {
  if (isTRUE(na.rm) || !identical(use, "everything") || !identical(method[1L], "pearson")) {
    trace_stop("covariances of traced values have no 'na.rm', 'use' and 'method'")
  }
  if (is.data.frame(x)) x <- as.matrix(x)
  if (is.data.frame(y)) y <- as.matrix(y)
  plain <- is.null(dim(x)) && is.null(dim(y))
  n <- NROW(x)
  if (!is.null(y) && NROW(y) != n) trace_stop("incompatible dimensions")
  if (plain) {
    x <- x - mean(x)
    return(sum(if (is.null(y)) x^2 else x * (y - mean(y))) / (n - 1))
  }
  x <- scale(as.matrix(x), scale = FALSE)
  y <- if (is.null(y)) x else scale(as.matrix(y), scale = FALSE)
  linear("crossprod", drop_attributes(x), drop_attributes(y)) / (n - 1)
}

drop_attributes <- function(x) if (is_traced(x)) x else matrix(x, nrow(x))

traced_cor <- function(x, y = NULL, ...) {
  spread <- function(v) {
    if (is.null(dim(v))) sqrt(traced_var(v)) else sqrt(linear("diag", traced_var(v)))
  }
  covariance <- traced_var(x, y, ...)
  if (is.null(dim(covariance))) return(covariance / (spread(x) * spread(y)))
  covariance / traced_outer(spread(x), if (is.null(y)) spread(x) else spread(y))
}

traced_cov2cor <- function(V) {
  s <- sqrt(linear("diag", V))
  V / traced_outer(s, s)
}

traced_mahalanobis <- function(x, center, cov, inverted = FALSE, ...) {
  x <- if (is.null(dim(x))) matrix_of(x, 1L, length(x)) else as.matrix(x)
  if (!isFALSE(center)) x <- traced_sweep(x, 2L, center)
  if (!isTRUE(inverted)) cov <- linear("solve", cov)
  linear("rowSums", linear("%*%", x, cov) * x)
}

traced_norm <- function(x, type = "O") {
  x <- as.matrix(x)
  switch(EXPR = toupper(substr(type, 1L, 1L)),
         O = , `1` = max(linear("colSums", abs(x))), I = max(linear("rowSums", abs(x))),
         F = , E = sqrt(sum(x^2)), M = max(abs(x)),
         trace_stop("norm() of a traced value has the types \"O\", \"I\", \"F\" and \"M\""))
}

traced_proportions <- function(x, margin = NULL) {
  if (is.null(margin)) return(x / sum(x))
  sums <- traced_apply(x, margin, function(part) sum(part))
  traced_sweep(x, margin, sums, `/`)
}

# Sums by group, one row for each.
traced_rowsum <- function(x, group, reorder = TRUE, na.rm = FALSE, ...) {
  if (is_traced(group)) refuse_index()
  if (length(group) != NROW(x)) trace_stop("incorrect length for 'group'")
  if (anyNA(group)) trace_stop("missing values for 'group'")
  groups <- if (reorder) sort(unique(group)) else unique(group)
  if (isTRUE(na.rm)) x <- left_out(x, 0)$values
  rows <- match(group, groups) - 1
  columns <- NCOL(x)
  count <- length(groups)
  place <- rep(rows, columns) + rep((seq_len(columns) - 1) * count, each = length(rows))
  sums <- record("scatter", "", full_node(x, length(place)),
                 c(tracing$tape$add_data(as.double(place)), count * columns), count * columns,
                 c(count, columns))
  named(sums, list(as.character(groups), if (!is.null(dim(x))) labels_of(x)[[2L]]))
}

# Each group gives one number, or any value, which is returned in a list; NA for groups without
# data.
traced_tapply <- function(X, INDEX, FUN, ..., simplify = TRUE) {
  if (is_traced(INDEX) || is.list(INDEX) && any(vapply(INDEX, is_traced, NA))) refuse_index()
  factors <- lapply(if (is.list(INDEX)) INDEX else list(INDEX), as.factor)
  if (any(lengths(factors) != length(X))) trace_stop("arguments must have same length")
  FUN <- match.fun(FUN)
  shape <- vapply(factors, nlevels, 0L)
  cell <- as.integer(interaction(factors))
  groups <- sort(unique(cell))
  values <- lapply(groups, function(g) FUN(X[which(cell == g)], ...))
  if (!isTRUE(simplify) || any(lengths(values) != 1L)) {
    all <- vector("list", prod(shape))
    all[groups] <- values
    if (length(shape) == 1L) names(all) <- levels(factors[[1L]])
    return(all)
  }
  result <- unnamed(simplified(values))
  if (length(groups) < prod(shape)) result <- traced_assign(rep(NA_real_, prod(shape)), `[<-`,
                                                            result, groups)
  if (length(shape) == 1L) return(named(result, levels(factors[[1L]])))
  dim(result) <- shape
  named(result, lapply(factors, levels))
}

as_square <- function(a) {
  if (is.null(dim(a))) dim(a) <- rep(sqrt(length(a)), 2L)
  a
}

# f(...), in the version for traced values if any argument is one: `%*%`, diag() and triangular
# solves of base R are not generic.
linear <- function(name, ...) {
  f <- if (any_traced(...)) traced_functions()[[name]] else get(name, baseenv())
  f(...)
}

# ---- cumulative sums and others ------------------------------------------------------------------

traced_cumsum <- function(x) {
  x <- trace_operand(x)
  if (x$n < 2L) return(as.vector(x))
  record("cumsum", "", node_of(x), c(x$n, 1, 0), x$n)
}

longest_unrolled <- 100L

# A cumulative product, maximum or minimum. Short ones have a node for each element; in long ones
# each step combines elements that are twice as far apart.
cumulate <- function(op, x) {
  if (x$n < 2L) return(as.vector(x))
  if (x$n > longest_unrolled) {
    n <- x$n
    x <- as.vector(x)
    apart <- 1L
    while (apart < n) {
      later <- traced_binary(op, x[seq.int(apart + 1L, n)], x[seq_len(n - apart)])
      ids <- c(node_of(x[seq_len(apart)]), node_of(later))
      x <- traced(tracing$tape$add("concat", "", ids, numeric(), 0, n), n)
      apart <- 2L * apart
    }
    return(x)
  }
  from <- integer(x$n)
  last <- x[[1L]]
  from[1L] <- node_of(last)
  for (k in seq_len(x$n)[-1L]) {
    last <- traced_binary(op, last, x[[k]])
    from[k] <- last$id
  }
  traced(0L, x$n, NULL, from, rep_len(1L, x$n))
}
