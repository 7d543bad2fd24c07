# Covariance functions as R objects: sums of terms. What is done with them is in covariance.R.

#' Covariance functions
#'
#' A kernel describes how the values of a Gaussian process at two points hang together. With the
#' scaled distance \eqn{r = \sqrt{\sum_c ((x_c - x'_c) / \ell_c)^2}}{r = sqrt(sum_c ((x_c - x'_c) /
#' lengthscale_c)^2)} the functions are
#'
#' | constructor | covariance | paths |
#' |---|---|---|
#' | `k_exp_quad()` | sd^2 exp(-r^2 / 2) | infinitely smooth |
#' | `k_matern52()` | sd^2 (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r) | twice differentiable |
#' | `k_matern32()` | sd^2 (1 + sqrt(3) r) exp(-sqrt(3) r) | once differentiable |
#'
#' (Rasmussen and Williams, 2006, chapter 4). Kernels are added with `+`: the process is then a sum
#' of independent ones. `columns` lets a term look at some columns of x only. A periodic term is
#' `k_exp_quad()` over two columns that hold the sine and the cosine of the phase.
#'
#' A kernel's parameters have names: `sd` and `lengthscale`, or `lengthscale.1`, `lengthscale.2`,
#' ... with one for each column. In a sum the number of the term follows the name: `sd1`,
#' `lengthscale2.1`. `coef()` gives them, `update()` changes them.
#'
#' @param sd standard deviation of the process, in units of y.
#' @param lengthscale distance over which values stay alike, in units of x: one number for all
#'   columns, or one for each (automatic relevance determination).
#' @param columns the columns of x that the term looks at: names or numbers; `NULL` for all.
#' @param e1,e2 kernels.
#' @param x,object a kernel.
#' @param ... for `update()`: new values of parameters, by name, or one named vector of them.
#' @param column for `plot()`: the column (its name or number) along which points move apart; others
#'   are held equal. `NULL`: the distance over all columns, if every term has one lengthscale.
#' @param to largest distance that is drawn.
#' @param xlab,ylab,col,lwd,las as for [plot.default()].
#' @return A kernel, an object of class `"cl_kernel"`. `coef()`: a named numeric vector. `plot()`:
#'   what it draws, a data frame, invisibly.
#' @section Errors:
#' `statcl_error_argument` for parameters that are not positive and finite, for products (only sums
#' are supported so far), and for unknown names.
#' @references
#' Rasmussen, C. E. and Williams, C. K. I. (2006) *Gaussian Processes for Machine Learning*. MIT
#' Press. <https://gaussianprocess.org/gpml/>
#' @seealso [cl_cov()], [cl_gp()]
#' @name kernels
#' @examples
#' k <- k_exp_quad(sd = 2, lengthscale = 10) + k_matern32(sd = 0.5, lengthscale = 1)
#' k
#' coef(k)
#' k <- update(k, sd1 = 3)
#' cl_cov(c(0, 1, 2), kernel = k)
#' plot(k)
NULL

#' @rdname kernels
#' @export
k_exp_quad <- function(sd = 1, lengthscale = 1, columns = NULL) {
  new_kernel("exp_quad", sd, lengthscale, columns)
}

#' @rdname kernels
#' @export
k_matern32 <- function(sd = 1, lengthscale = 1, columns = NULL) {
  new_kernel("matern32", sd, lengthscale, columns)
}

#' @rdname kernels
#' @export
k_matern52 <- function(sd = 1, lengthscale = 1, columns = NULL) {
  new_kernel("matern52", sd, lengthscale, columns)
}

# A kernel is list(terms); a term is list(type, sd, lengthscale, columns).
new_kernel <- function(type, sd, lengthscale, columns) {
  term <- list(type = type, sd = check_positive(sd, "sd"),
               lengthscale = check_positive(lengthscale, "lengthscale", many = TRUE),
               columns = check_columns(columns))
  if (!is.null(columns) && !length(lengthscale) %in% c(1L, length(columns))) {
    abort_argument("lengthscale", sprintf("'lengthscale' must have 1 or %d values, not %d",
                                          length(columns), length(lengthscale)))
  }
  structure(list(terms = list(term)), class = "cl_kernel")
}

check_positive <- function(x, argument, many = FALSE) {
  if (!is.numeric(x) || is.object(x) || length(x) == 0L || (!many && length(x) != 1L) ||
        !all(is.finite(x)) || any(x <= 0)) {
    abort_argument(argument, sprintf("'%s' must be %spositive and finite", argument,
                                     if (many) "" else "one number, "))
  }
  as.double(x)
}

check_columns <- function(columns) {
  if (is.null(columns)) return(NULL)
  usable <- length(columns) > 0L && !anyNA(columns) && !anyDuplicated(columns) &&
    (is.character(columns) ||
       (is.numeric(columns) && all(columns >= 1) && all(columns == round(columns))))
  if (!usable) {
    abort_argument("columns", "'columns' must be names or numbers of columns, each once")
  }
  if (is.character(columns)) columns else as.integer(columns)
}

check_kernel <- function(kernel, argument = "kernel") {
  if (inherits(kernel, "cl_kernel")) return(kernel)
  abort_argument(argument, sprintf("'%s' must be a kernel such as k_matern52(), not %s", argument,
                                   describe(kernel)))
}

#' @rdname kernels
#' @export
Ops.cl_kernel <- function(e1, e2) {
  if (.Generic == "*") {
    abort_argument("e2", "products of kernels are not supported yet, only sums")
  }
  if (.Generic != "+") {
    abort_argument("e1", sprintf("'%s' means nothing for kernels: they are added with '+'",
                                 .Generic))
  }
  if (nargs() == 1L) return(e1)
  check_kernel(e1, "e1")
  check_kernel(e2, "e2")
  structure(list(terms = c(e1$terms, e2$terms)), class = "cl_kernel")
}

# ---- parameters ---------------------------------------------------------------------------------

#' @rdname kernels
#' @export
coef.cl_kernel <- function(object, ...) {
  terms <- object$terms
  values <- lapply(seq_along(terms), function(i) {
    number <- if (length(terms) > 1L) i else ""
    l <- terms[[i]]$lengthscale
    names <- paste0("lengthscale", number, if (length(l) > 1L) paste0(".", seq_along(l)))
    c(stats::setNames(terms[[i]]$sd, paste0("sd", number)), stats::setNames(l, names))
  })
  unlist(values)
}

# coef() without names, which take longer to make than a covariance matrix.
kernel_values <- function(kernel) {
  unlist(lapply(kernel$terms, function(term) c(term$sd, term$lengthscale)))
}

#' @rdname kernels
#' @export
update.cl_kernel <- function(object, ...) {
  new <- c(...)
  old <- coef(object)
  if (is.null(new)) return(object)
  if (is.null(names(new)) || !all(names(new) %in% names(old))) {
    abort_argument("...", paste("parameters of this kernel are",
                                paste(names(old), collapse = ", ")))
  }
  old[names(new)] <- check_positive(new, "...", many = TRUE)
  with_parameters(object, old)
}

# The kernel with all its parameters, in the order of coef().
with_parameters <- function(kernel, values) {
  at <- 0L
  for (i in seq_along(kernel$terms)) {
    count <- length(kernel$terms[[i]]$lengthscale)
    kernel$terms[[i]]$sd <- values[[at + 1L]]
    kernel$terms[[i]]$lengthscale <- unname(values[at + 1L + seq_len(count)])
    at <- at + 1L + count
  }
  kernel
}

# ---- for people ---------------------------------------------------------------------------------

#' @export
format.cl_kernel <- function(x, digits = 4L, ...) {
  show <- function(v) {
    text <- if (is.character(v)) encodeString(v, quote = "\"") else format_each(v, digits)
    if (length(v) > 1L) sprintf("c(%s)", paste(text, collapse = ", ")) else text
  }
  vapply(x$terms, function(term) {
    sprintf("k_%s(sd = %s, lengthscale = %s%s)", term$type, show(term$sd), show(term$lengthscale),
            if (is.null(term$columns)) "" else paste0(", columns = ", show(term$columns)))
  }, "")
}

format_each <- function(v, digits = 4L) vapply(v, function(u) format(u, digits = digits), "")

#' @export
print.cl_kernel <- function(x, digits = 4L, ...) {
  cat(paste(format(x, digits = digits), collapse = " +\n  "), "\n", sep = "")
  invisible(x)
}

#' @rdname kernels
#' @export
plot.cl_kernel <- function(x, column = NULL, to = NULL, xlab = NULL, ylab = "covariance",
                           col = "#0072B2", lwd = 2, las = 1, ...) {
  reach <- vapply(x$terms, term_lengthscale, 0, column = column)
  if (all(is.infinite(reach))) {
    abort_argument("column", "no term of the kernel looks at this column")
  }
  if (is.null(to)) to <- 3 * max(reach[is.finite(reach)])
  distance <- seq(0, check_positive(to, "to"), length.out = 201L)
  if (is.null(xlab)) xlab <- if (is.null(column)) "distance" else paste("distance in", column)
  parts <- mapply(function(term, l) {
    leaf <- new_kernel(term$type, term$sd, if (is.finite(l)) l else .Machine$double.xmax, NULL)
    with_cl(drop(cl_cov(distance, 0, leaf)), engine = "host")
  }, x$terms, reach)
  total <- rowSums(parts)
  graphics::plot(distance, total, type = "l", xlab = xlab, ylab = ylab, col = col, lwd = lwd,
                 las = las, ylim = c(0, max(total)), ...)
  if (length(x$terms) > 1L) {
    graphics::matlines(distance, parts, lty = 2L, lwd = 1, col = "grey40")
    graphics::legend("topright", c("sum", "terms"), col = c(col, "grey40"), lty = 1:2,
                     lwd = c(lwd, 1), bty = "n")
  }
  invisible(data.frame(distance = distance, covariance = total))
}

# A term's lengthscale along one column; Inf if it does not look at it.
term_lengthscale <- function(term, column) {
  l <- term$lengthscale
  if (is.null(column)) {
    if (length(l) == 1L) return(l)
    abort_argument("column", "a term has one lengthscale for each column: 'column' must name one")
  }
  at <- if (is.null(term$columns)) column else match(column, term$columns)
  if (is.na(at)) return(Inf)
  if (length(l) == 1L) return(l)
  if (!is.numeric(at) || at > length(l)) {
    abort_argument("column", sprintf("column '%s' is not one that the kernel names", column))
  }
  l[at]
}
