# Covariance matrices of this package in traced functions: kernels whose parameters, or points, are
# traced.

# The constructors of kernels: unchanged unless a parameter is traced; traced parameters are not
# checked.
kernel_masks <- function() {
  leaf <- function(name, original) {
    force(name)
    force(original)
    function(...) {
      if (!any_traced(...)) return(original(...))
      given <- as.list(match.call(original, as.call(c(list(quote(f)), list(...)))))[-1L]
      defaults <- lapply(formals(original), eval, baseenv())
      fields <- c(given, defaults[setdiff(names(defaults), names(given))])
      if (is_traced(fields$columns) || is_traced(fields$center)) refuse_index()
      fields["columns"] <- list(check_columns(fields$columns))
      new_kernel(c(list(type = name), fields[lengths(fields) > 0L | names(fields) == "columns"]))
    }
  }
  names <- c(names(distance_formulas), "periodic", "linear", "constant", "white")
  masks <- lapply(names, function(name) leaf(name, get(paste0("k_", name))))
  names(masks) <- paste0("k_", names)
  masks$k_user <- function(f, par, ...) {
    if (!is_traced(par)) return(k_user(f, par, ...))
    new_kernel(list(type = "user", f = f, par = par))
  }
  c(masks, list(cl_cov = covariance_mask, cl_distance = distance_mask))
}

covariance_mask <- function(x1, x2 = NULL, kernel) {
  if (!any_traced(x1, x2) && !(inherits(kernel, "cl_kernel") && contains_traced(kernel$terms))) {
    return(cl_cov(x1, x2, kernel))
  }
  kernel <- check_kernel(kernel)
  points <- list(a = traced_points(x1), b = if (!is.null(x2)) traced_points(x2))
  if (!is.null(x2) && ncol(points$a) != ncol(points$b)) {
    trace_stop(sprintf("'x2' has %d columns, but the other points have %d", ncol(points$b),
                       ncol(points$a)))
  }
  run_program(kernel, function(i) traced_leaf(kernel$terms[[i]], points), `+`, `*`)
}

distance_mask <- function(x1, x2 = NULL, lengthscale = 1, squared = FALSE) {
  if (!any_traced(x1, x2, lengthscale)) return(cl_distance(x1, x2, lengthscale, squared))
  points <- list(a = traced_points(x1), b = if (!is.null(x2)) traced_points(x2))
  d2 <- scaled_distance(points, seq_len(ncol(points$a)), lengthscale)$squared
  if (isTRUE(squared)) d2 else safe_root(d2)
}

traced_points <- function(x) {
  if (is_traced(x)) return(as.matrix(x))
  x <- as.matrix(x)
  if (!is.numeric(x)) trace_stop("points must be numeric")
  x
}

# The covariance matrix of a leaf; plain if nothing in it is traced.
traced_leaf <- function(term, points) {
  a <- points$a
  b <- if (is.null(points$b)) a else points$b
  m <- nrow(a)
  n <- nrow(b)
  if (!any_traced(a, b) && !contains_traced(term)) {
    return(unname(as.matrix(cl_cov(a, points$b, new_kernel(term)))))
  }
  if (term$type == "user") {
    f <- term$f
    if (!exists(".statcl_lookup", envir = environment(f))) f <- looking_up(f)
    k <- f(a, b, term$par)
    if (!identical(as.integer(dim(k)), c(m, n))) {
      trace_stop(sprintf("the function of k_user() must return a %d x %d matrix", m, n))
    }
    return(k)
  }
  flat <- function(x) matrix(x, m, n)
  if (term$type == "white") return(term$sd^2 * (if (is.null(points$b)) diag(n) else flat(0)))
  if (term$type == "constant") return(term$sd^2 * flat(1))
  used <- find_columns(term$columns, ncol(a), if (is_traced(a)) NULL else colnames(a))
  if (term$type == "linear") {
    scaled <- function(x) {
      x <- x[, used, drop = FALSE]
      if (!identical(term$center, 0)) x <- traced_sweep(x, 2L, rep_len(term$center, length(used)))
      if (length(term$sd) == 1L) x * term$sd else traced_sweep(x, 2L, term$sd, `*`)
    }
    return(traced_product(scaled(a), scaled(b), 2L))
  }
  if (term$type == "periodic") return(term$sd^2 * periodic_part(points, used, term))
  d <- scaled_distance(points, used, term$lengthscale)
  root <- function() if (is.null(d$root)) safe_root(d$squared) else d$root
  term$sd^2 * distance_formulas[[term$type]](d$squared, root, term)
}

# Differences in column k, m x n; their squares are data if the points are.
differences_of <- function(points, k) {
  b <- if (is.null(points$b)) points$a else points$b
  traced_difference <- function(x, y) {
    d <- spread_by(x, length(x), length(y), 0) - spread_by(y, length(x), length(y), 1)
    dim(d) <- c(length(x), length(y))
    d
  }
  traced_difference(points$a[, k], b[, k])
}

# list(squared: squared scaled distances; root: the distances, if they are data apart from one
# lengthscale).
scaled_distance <- function(points, used, lengthscale) {
  total <- function(parts) Reduce(`+`, parts)
  plain <- !any_traced(points$a, points$b)
  if (length(lengthscale) == 1L) {
    squares <- total(lapply(used, function(k) differences_of(points, k)^2))
    return(list(squared = squares / lengthscale^2,
                root = if (plain) sqrt(squares) / lengthscale))
  }
  if (length(lengthscale) != length(used)) {
    trace_stop(sprintf("'lengthscale' has %d values, but the kernel uses %d columns",
                       length(lengthscale), length(used)))
  }
  list(squared = total(lapply(seq_along(used), function(i) {
    differences_of(points, used[i])^2 / lengthscale[i]^2
  })))
}

periodic_part <- function(points, used, term) {
  lengths <- term$lengthscale
  if (!length(lengths) %in% c(1L, length(used))) {
    trace_stop(sprintf("'lengthscale' has %d values, but the kernel uses %d columns",
                       length(lengths), length(used)))
  }
  parts <- lapply(seq_along(used), function(i) {
    l <- if (length(lengths) == 1L) lengths else lengths[i]
    (sin(pi * differences_of(points, used[i]) / term$period) / l)^2
  })
  exp(-2 * Reduce(`+`, parts))
}
