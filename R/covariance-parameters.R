# The parameters of kernels: their names, values and meaning, and how they are passed to C.

# Possible parameters of a leaf in the order of coef(); `par` are those of k_user(), with their own
# names.
leaf_roles <- c("sd", "lengthscale", "alpha", "period", "par")

#' @rdname kernels
#' @export
coef.cl_kernel <- function(object, ...) {
  terms <- object$terms
  values <- lapply(seq_along(terms), function(i) {
    number <- if (length(terms) > 1L) i else ""
    unlist(lapply(leaf_roles, function(role) {
      v <- terms[[i]][[role]]
      if (is.null(v)) return(NULL)
      if (role == "par") {
        if (is.null(terms[[i]]$rank)) return(stats::setNames(v, paste0(names(v), number)))
        return(stats::setNames(v, sub(".", paste0(number, "."), names(v), fixed = TRUE)))
      }
      last <- if (is.null(names(v))) seq_along(v) else names(v)
      stats::setNames(v, paste0(role, number, if (length(v) > 1L) paste0(".", last)))
    }))
  })
  unlist(values)
}

# Values for columns of x are named by the column, if each has a name of its own.
name_values <- function(v, columns, argument) {
  usable <- is.character(columns) && length(columns) == length(v) && length(v) > 1L &&
    !anyNA(columns) && all(nzchar(columns)) && !anyDuplicated(columns)
  if (!usable) return(v)
  if (!is.null(names(v)) && !identical(names(v), columns)) {
    abort_argument(argument, sprintf("'%s' has the names %s, but the columns are %s", argument,
                                     paste(names(v), collapse = ", "),
                                     paste(columns, collapse = ", ")))
  }
  stats::setNames(v, columns)
}

# The kernel with its lengthscales (and the slopes of linear terms) named by the columns of x.
name_columns <- function(kernel, columns) {
  for (i in seq_along(kernel$terms)) {
    term <- kernel$terms[[i]]
    role <- if (term$type == "linear") "sd" else "lengthscale"
    if (length(term[[role]]) < 2L) next
    used <- if (is.null(term$columns)) columns else
      if (is.character(term$columns)) term$columns else columns[term$columns]
    kernel$terms[[i]][[role]] <- name_values(term[[role]], used, role)
  }
  kernel
}

# Names of parameters by column (lengthscale2.temperature) for those by number (lengthscale2.1).
named_by_column <- function(given, names) {
  by_column <- "^(sd|lengthscale)([0-9]*)[.].+$"
  own <- grepl(by_column, names)
  group <- ifelse(own, sub("[.].*$", "", names), NA)
  number <- stats::ave(seq_along(names), group, FUN = seq_along)
  at <- match(given, paste0(group, ".", number))
  old <- !given %in% names & !is.na(at)
  given[old] <- names[at[old]]
  given
}

# coef() without names: making names takes longer than a small covariance matrix.
kernel_values <- function(kernel) {
  unlist(lapply(kernel$terms, function(term) {
    c(term$sd, term$lengthscale, term$alpha, term$period, term$par)
  }), use.names = FALSE)
}

# Which parameters must be positive, in the order of coef().
kernel_positive <- function(kernel) {
  unlist(lapply(kernel$terms, function(term) {
    if (term$type == "user") return(unname(term$positive))
    rep(TRUE, length(unlist(term[leaf_roles])))
  }))
}

has_user <- function(kernel) {
  for (term in kernel$terms) if (term$type == "user") return(TRUE)
  FALSE
}

#' @rdname kernels
#' @export
update.cl_kernel <- function(object, ...) {
  new <- c(...)
  old <- coef(object)
  if (is.null(new)) return(object)
  if (!is.null(names(new))) names(new) <- named_by_column(names(new), names(old))
  if (is.null(names(new)) || !all(names(new) %in% names(old))) {
    abort_argument("...", paste("the parameters of this kernel are",
                                paste(names(old), collapse = ", ")))
  }
  if (!is.numeric(new) || !all(is.finite(new))) {
    abort_argument("...", "the parameters must be finite")
  }
  old[names(new)] <- as.double(new)
  check_positive(c(1, old[kernel_positive(object)]), "...", many = TRUE)
  with_parameters(object, old)
}

# The kernel with all its parameters, in the order of coef().
with_parameters <- function(kernel, values) {
  at <- 0L
  for (i in seq_along(kernel$terms)) {
    for (role in leaf_roles) {
      count <- length(kernel$terms[[i]][[role]])
      if (count == 0L) next
      kernel$terms[[i]][[role]][] <- unname(values[at + seq_len(count)])
      at <- at + count
    }
  }
  kernel
}

# A data frame with a row for each element of coef(kernel): name, term (number of the leaf), type of
# the leaf, role, column (that of x, if it belongs to exactly one), positive, redundant (a scale
# that duplicates one of another factor of its product), degree (2 if the parameter has the unit of
# y, else 0).
kernel_parameters <- function(kernel, p, column_names = NULL) {
  scales <- kernel_scales(kernel)
  rows <- lapply(seq_along(kernel$terms), function(i) {
    term <- kernel$terms[[i]]
    used <- if (term$type %in% c(plain_types, "user")) integer() else
      find_columns(term$columns, p, column_names)
    do.call(rbind, lapply(leaf_roles, function(role) {
      count <- length(term[[role]])
      if (count == 0L) return(NULL)
      each <- length(used) == count &&
        (role %in% c("lengthscale", "period") || (role == "sd" && term$type == "linear"))
      first <- seq_len(count) == 1L
      data.frame(term = i, type = term$type, role = if (role == "par") "user" else role,
                 column = if (each) used else rep(NA_integer_, count),
                 positive = if (role == "par") unname(term$positive) else TRUE,
                 redundant = role == "sd" & scales$redundant[i] & first,
                 degree = if (role == "sd" && scales$unit[i]) 2 else 0)
    }))
  })
  rows <- do.call(rbind, rows)
  data.frame(name = names(coef(kernel)), rows)
}

plain_types <- c("constant", "white") # types that use no column

# Which leaves have the unit of y, and which have a redundant scale: in a product, the first leaf of
# the right factor.
kernel_scales <- function(kernel) {
  count <- length(kernel$terms)
  unit <- rep(TRUE, count)
  redundant <- rep(FALSE, count)
  run_program(kernel, identity, c, function(a, b) {
    unit[b] <<- FALSE
    redundant[b[1L]] <<- TRUE
    c(a, b)
  })
  list(unit = unit, redundant = redundant)
}

# ---- the kernel's parameters and the columns of x -----------------------------------------------

# How the parameters of coef(kernel) and the noise become the values that C takes: the sd of each
# term, the lengthscale of each entry (a column of a term), the extra parameter of each term, the
# noise. `whole`: the kernel of the points, if `kernel` is a part of it. index: their
# indices in c(1, parameters), the noise last; inverted: those that C takes as inverses (a
# lengthscale instead of the standard deviation of a linear kernel). `c` has the other arguments of
# C.
kernel_layout <- function(kernel, p, column_names = NULL, whole = kernel) {
  asked <- list(kernel, p, column_names, whole)
  if (!identical(asked, last_layout$asked)) {
    last_layout$layout <- find_layout(kernel, p, column_names, whole)
    last_layout$asked <- asked
  }
  last_layout$layout
}

# The most recent layout: covariance matrices of one kernel are often computed repeatedly, and the
# layout takes as long as a small matrix.
last_layout <- new.env(parent = emptyenv())

find_layout <- function(kernel, p, column_names, whole) {
  if (p == 0L) abort_argument("x", "the points have no columns")
  next_at <- 0L
  parts <- lapply(seq_along(kernel$terms), function(i) {
    term <- kernel$terms[[i]]
    used <- if (term$type %in% plain_types) integer() else
      find_columns(term$columns, p, column_names)
    index <- list()
    for (role in leaf_roles) {
      count <- length(term[[role]])
      index[[role]] <- next_at + seq_len(count)
      next_at <<- next_at + count
    }
    sphere <- !is.null(term$distance)
    if (sphere) used <- sphere_place(whole, term, p, column_names)
    linear <- term$type == "linear"
    each <- if (linear) "sd" else "lengthscale"
    if (length(used) > 0L && !length(term[[each]]) %in% c(1L, length(used))) {
      abort_argument("kernel", sprintf("'%s' has %d values, but k_%s() uses %d columns", each,
                                       length(term[[each]]), term$type, length(used)))
    }
    if (!is.null(names(term[[each]]))) name_values(term[[each]], column_names[used], each)
    if (!length(term$center) %in% c(0L, 1L, length(used))) {
      abort_argument("kernel", sprintf("'center' has %d values, but k_linear() uses %d columns",
                                       length(term$center), length(used)))
    }
    extra <- c(index$alpha, index$period)
    if (term$type == "great_circle") {
      extra <- index$lengthscale
      index$lengthscale <- 0L
    }
    if (term$type == "gower") {
      term$center <- as.double(used %in% factor_columns(term, p, column_names))
    }
    list(used = used, sd = if (linear) 0L else index$sd,
         lengths = rep_len(index[[each]], length(used)), linear = rep(linear, length(used)),
         extra = if (length(extra) == 0L) 0L else extra,
         center = rep_len(if (is.null(term$center)) 0 else term$center, length(used)))
  })
  field <- function(name) unlist(lapply(parts, `[[`, name))
  used <- lapply(parts, `[[`, "used")
  at <- c(field("sd"), field("lengths"), field("extra"), next_at + 1L)
  list(c = list(vapply(kernel$terms, `[[`, "", "type"), lengths(used), as.integer(unlist(used)),
                as.double(field("center")), kernel_factors(kernel),
                vapply(kernel$terms, function(term) c(term$nu, NA_real_)[1L], 0)),
       index = at + 1L, inverted = length(parts) + which(field("linear")), count = next_at + 1L)
}

# The products as C takes them; NULL for the sum of all leaves in order.
kernel_factors <- function(kernel) {
  if (!any(kernel$program == -1L)) return(NULL)
  products <- kernel_products(kernel)
  if (max(lengths(products)) > 16L) {
    abort_argument("kernel", sprintf("a product of kernels may have at most 16 factors, not %d",
                                     max(lengths(products))))
  }
  unlist(lapply(products, function(factors) c(length(factors), factors)))
}

find_columns <- function(columns, p, column_names) {
  if (is.null(columns)) return(seq_len(p))
  found <- if (is.character(columns)) match(columns, column_names) else columns
  missing <- columns[is.na(found) | found > p]
  if (length(missing) > 0L) {
    has <- if (is.null(column_names)) sprintf("%d columns without names", p) else
      paste("columns", paste(column_names, collapse = ", "))
    abort_argument("kernel", sprintf("the kernel uses column '%s', but the points have %s",
                                     missing[1L], has))
  }
  as.integer(found)
}

# Values for C from the parameters, in the order of coef(kernel), and the noise.
layout_values <- function(layout, parameters) {
  values <- c(1, parameters)[layout$index]
  inverted <- layout$inverted
  if (length(inverted) > 0L) values[inverted] <- 1 / values[inverted]
  values
}

# Derivatives with respect to the logarithms of the parameters, the noise last, from those with
# respect to the values of C.
layout_gradient <- function(layout, by_values) {
  inverted <- layout$inverted
  if (length(inverted) > 0L) by_values[inverted] <- -by_values[inverted]
  gradient <- numeric(layout$count + 1L)
  for (i in seq_along(by_values)) {
    at <- layout$index[i]
    gradient[at] <- gradient[at] + by_values[i]
  }
  gradient[-1L]
}
