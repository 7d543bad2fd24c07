# Vecchia's approximation of a Gaussian process: the likelihood, and the process given the data.

# 'approx', 'neighbours' (NULL: not given) and 'grouped': NULL, or the number of neighbours.
check_approx <- function(approx, neighbours, grouped = FALSE) {
  approx <- check_choice(approx, c("none", "vecchia"), "approx")
  given <- !is.null(neighbours)
  neighbours <- if (given) check_count(neighbours, "neighbours", 1, 400) else 30
  if (check_flag(grouped, "grouped") && approx != "vecchia") {
    abort_argument("grouped", "'grouped' is for approx = \"vecchia\", which is not set")
  }
  if (approx == "vecchia") return(neighbours)
  if (given) {
    abort_argument("neighbours", "'neighbours' is for approx = \"vecchia\", which is not set")
  }
}

refuse_vecchia <- function(argument, what) {
  abort_argument(argument, sprintf("%s is not available with approx = \"vecchia\"", what))
}

# The factor of each column of x for distances: by the lengthscales of the kernel's values.
vecchia_scale <- function(kernel, x) {
  p <- ncol(x)
  names <- colnames(x)
  x <- kernel_points(kernel, x)
  weight <- numeric(ncol(x))
  for (term in kernel$terms) {
    if (term$type %in% c(plain_types, "linear", "periodic")) next
    used <- if (is.null(term$distance)) find_columns(term$columns, p, names) else
      sphere_place(kernel, term, p, names)
    at <- rep_len(term$lengthscale, length(used))
    for (k in seq_along(used)) weight[used[k]] <- weight[used[k]] + at[k]^-2
  }
  rest <- weight == 0 # columns of other terms, by their ranges; angles are no distances
  rest[sphere_pairs(kernel, p, names)] <- FALSE
  for (k in which(rest)) {
    width <- diff(range(x[, k]))
    weight[k] <- if (isTRUE(width > 0)) width^-2 else 0
  }
  sqrt(weight)
}

make_vecchia_likelihood <- function(data, kernel, trend, spread, neighbours, grouped = FALSE,
                                    on_device = FALSE, scale = vecchia_scale(kernel, data$x)) {
  if (has_user(kernel)) refuse_vecchia("kernel", "k_user()")
  layout <- kernel_layout(kernel, ncol(data$x), colnames(data$x))
  names <- c(names(coef(kernel)), "noise")
  positive <- kernel_positive(kernel)
  on_handle <- handle_caller(data, on_device, function(where) {
    .Call(r_vecchia_new, data$y - trend$offset, kernel_points(kernel, data$x), trend$basis, spread,
          scale, neighbours, grouped, where)
  }, share = neighbours^3 / nrow(data$x)^2,
  counts = function(value) !is.null(attr(value, "information")),
  kind = paste(c("vecchia", grouped, trend$count, layout$count, dim(data$x)[2L], dim(data$y)[2L],
                 layout$c[[1L]]), collapse = " "))
  group <- as.integer(layout$index) - 1L # the parameter of each value
  group[layout$inverted] <- -group[layout$inverted]
  one_pass <- trend$count %in% 1:6 # otherwise the coefficients need a pass before the derivatives
  f <- function(par, gradient = TRUE, information = FALSE) {
    check_flag(gradient, "gradient")
    check_flag(information, "information")
    par <- check_gp_parameters(par, names, positive)
    values <- layout_values(layout, par)
    informed <- information || (gradient && one_pass)
    result <- on_handle(function(h) {
      if (informed) {
        .Call(r_vecchia_inform, h, layout$c, values, trend$integrate, group, layout$count)
      } else {
        .Call(r_vecchia_evaluate, h, layout$c, values, trend$integrate, gradient)
      }
    })
    value <- result[1L]
    if (gradient || information) {
      slope <- attr(result, "gradient")
      if (!informed) slope <- layout_gradient(layout, slope)
      attr(value, "gradient") <- stats::setNames(ifelse(par == 0, 0, slope / par), names)
    }
    if (information) {
      each <- ifelse(par == 0, 0, 1 / par)
      attr(value, "information") <- structure(attr(result, "information") * tcrossprod(each),
                                              dimnames = list(names, names))
    }
    with_coefficients(value, result, trend, ncol(data$y), trend$integrate)
  }
  structure(f, class = c("cl_gp_vecchia", "cl_gp_likelihood", "function"))
}

# The order and the neighbours of a likelihood: list(order: rows of x, neighbours: a matrix with a
# column for each position in the order, of earlier positions, nearest first, and NA; blocks: for a
# grouped one a matrix with a column for each block: twice the position from 0, and 1 for members).
vecchia_graph <- function(f) environment(f)$on_handle(function(h) .Call(r_vecchia_graph, h))

# As gp_condition().
vecchia_condition <- function(f, par) {
  e <- environment(f)
  par <- check_gp_parameters(par, e$names, e$positive)
  values <- layout_values(e$layout, par)
  data <- e$data
  trend <- e$trend
  first <- e$on_handle(function(h) {
    .Call(r_vecchia_condition, h, e$layout$c, values, trend$integrate)
  })
  shape <- function(v) if (data$vector) as.vector(v) else unname(v)
  diagonal <- as.vector(first$precisions)
  refuse <- function(what) refuse_vecchia("approx", what)
  points <- function(at, basis) {
    new <- state_points(data, trend, at, basis)
    c(new, list(x = unname(kernel_points(e$kernel, new$at))))
  }
  structure(c(list(likelihood = f), state_parts(data, trend, first), list(
    predict = function(at, what = "mean", basis = NULL) {
      if (what == "covariance") refuse("the covariance of predictions")
      new <- points(at, basis)
      result <- e$on_handle(function(h) {
        .Call(r_vecchia_predict, h, e$layout$c, values, new$x, new$scaled, first$b,
              first$a_inverse)
      })
      list(mean = shape(result$mean + new$known), variance = result$variance)
    },
    # `count` draws of the process; without condition, without the mean
    simulate = function(at, count, basis = NULL, conditional = TRUE) {
      new <- points(at, basis)
      normals <- function(rows) matrix(stats::rnorm(rows * count), rows)
      n <- nrow(data$x)
      b <- noise <- NULL
      if (conditional) {
        b <- as.vector(first$b)
        size <- length(b)
        if (size > 0L) b <- b + crossprod(chol(first$a_inverse), normals(size))
        last <- par[length(par)]^2
        noise <- if (is.null(e$spread)) last else last * e$spread[, 1L] + e$spread[, 2L]
        kernel <- with_parameters(e$kernel, par[-length(par)])
        noise <- sqrt(noise + white_variance(kernel, data$x)) * normals(n)
      }
      normal <- normals(nrow(new$x) + if (conditional) n else 0L)
      drawn <- e$on_handle(function(h) {
        .Call(r_vecchia_simulate, h, e$layout$c, values, new$x, new$scaled, b, noise, normal)
      })
      if (conditional) drawn + new$known else drawn
    },
    loo = function() {
      list(mean = shape(data$y - first$weights / diagonal), variance = 1 / diagonal)
    },
    mean_gradient = function(at, y_column = 1L) refuse("the gradient of predictions"),
    extend = function(...) refuse("adding observations to a fit"))), class = "cl_gp_state")
}
