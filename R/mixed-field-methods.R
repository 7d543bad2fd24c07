# Methods of fits with fields (R/mixed-field-fit.R).

has_latent <- function(object) !is.null(object$internal)

# The objective at the estimates: as field_objective(), with terms, theta, the mode and `turn`, the
# factor of the covariance matrix of the fixed effects. `first`: number of the fixed effect that
# depends on the first coordinate only.
field_state <- function(object, first = NULL) {
  work <- mixed_work(object)
  terms <- mixed_terms(work, 1)
  internal <- object$internal
  p <- length(work$kept)
  turn <- matrix(0, p, p)
  by <- c(first, setdiff(seq_len(p), first))
  if (p > 0L) {
    root <- chol_or_null(object$vcov[by, by, drop = FALSE])
    if (!all(is.finite(object$vcov)) || is.null(root)) {
      abort_argument("object", "the fixed effects have no covariance matrix")
    }
    turn[by, ] <- t(root)
  }
  base <- as.vector(work$x %*% object$coefficients[work$kept]) +
    if (is.null(work$glm$offset)) 0 else work$glm$offset
  problem <- field_objective(terms, work, base, work$x %*% turn, internal$par, internal$u,
                             internal$aux)
  theta <- as.double(problem$o$par)
  c(problem, list(terms = terms, work = work, theta = theta, turn = turn, p = p,
                  mode = require_mode(problem$o, theta, "object")))
}

# For each field its parts at the rows, or NULL if it is not `used`.
field_rows <- function(object, newdata, used) {
  if (!any(used)) return(vector("list", length(used)))
  terms <- mixed_terms(mixed_work(object), 1)
  own <- terms[length(terms) - length(used) + seq_along(used)]
  Map(function(field, term, used) {
    if (!used) return(NULL)
    if (is.null(newdata)) return(term$parts)
    variables <- terms_within(call_formula(field_variables(field$data),
                                           environment(object$all_terms)), object$all_terms)
    attr(variables, "dataClasses") <- NULL # labels may be factors or not
    term$locate(new_frame(variables, newdata, NULL))
  }, object$fields, own, used)
}

# The part of fields in linear predictors.
field_predictor <- function(object, parts) {
  if (all(vapply(parts, is.null, NA))) return(0)
  terms <- mixed_terms(mixed_work(object), 1)
  before <- length(terms) - length(parts)
  Reduce(`+`, lapply(which(lengths(parts) > 0L), function(k) {
    scale <- terms[[before + k]]$scales(object$internal$par[[before + k]])
    u <- object$internal$u[[before + k]]
    Reduce(`+`, lapply(parts[[k]], function(p) scale[[p$k]] * p$weight * u[p$at]))
  }))
}

# As predict_variance(), by solutions with the sparse factor.
field_variance <- function(object, x, rows) {
  s <- field_state(object)
  o <- s$o
  factor <- s$mode$step$factor
  q <- length(o$random)
  moves <- matrix(0, q, s$p)
  if (s$p > 0L) {
    moves <- -effects_solve(o, factor, tmb_hessian(o, s$mode$z, o$fixed[seq_len(s$p)], o$random))
  }
  fields <- attr(rows, "fields")
  grouped <- length(s$terms) - length(fields)
  parts <- c(lapply(seq_len(grouped), function(t) {
    row <- rows[[t]]
    if (is.null(row$at)) return(NULL)
    known <- !is.na(row$at)
    s$terms[[t]]$place(row$x * known, ifelse(known, row$at, 1L))
  }), fields)
  scales <- Map(function(term, par) term$scales(par), s$terms, object$internal$par)
  x <- x[, rownames(object$vcov), drop = FALSE] %*% s$turn
  n <- nrow(x)
  unlist(lapply(split(seq_len(n), (seq_len(n) - 1L) %/% 256L), function(rows) {
    z <- matrix(0, q, length(rows))
    for (t in which(lengths(parts) > 0L)) for (part in parts[[t]]) {
      at <- cbind(s$before[t] + part$at[rows], seq_along(rows))
      z[at] <- z[at] + scales[[t]][[part$k]] * rep_len(part$weight, n)[rows]
    }
    colSums(z * effects_solve(o, factor, z)) + rowSums((x[rows, , drop = FALSE] +
                                                         crossprod(z, moves))^2)
  }), use.names = FALSE)
}

# As effect_covariances().
field_covariances <- function(object) {
  s <- field_state(object)
  factor <- s$mode$step$factor
  scales <- Map(function(term, par) term$scales(par), s$terms, object$internal$par)
  # the parts of each column of effects, over its levels
  columns <- unlist(lapply(seq_along(s$terms), function(t) {
    term <- s$terms[[t]]
    levels <- if (term$kind == "group") length(unique(term$effects$labels)) else
      length(term$effects$labels)
    column <- vapply(term$effects$parts, function(p) (p$i[1L] - 1L) %/% levels, 0)
    lapply(unname(split(term$effects$parts, column)), function(parts) {
      list(label = term$label, levels = levels, parts = lapply(parts, function(p)
        list(at = s$before[t] + p$at, weight = scales[[t]][[p$k]] * p$weight)))
    })
  }), recursive = FALSE)
  covariance <- function(a, b) {
    total <- 0
    for (p in a$parts) for (q in b$parts) {
      total <- total + p$weight * q$weight *
        inverse_elements(s$o, factor, pmax(p$at, q$at) - 1L, pmin(p$at, q$at) - 1L)
    }
    total
  }
  labels <- vapply(columns, `[[`, "", "label")
  lapply(stats::setNames(names(object$random), names(object$random)), function(name) {
    own <- columns[labels == name]
    table <- object$random[[name]]
    v <- array(0, c(ncol(table), ncol(table), nrow(table)),
               list(colnames(table), colnames(table), rownames(table)))
    for (i in seq_along(own)) for (j in seq_len(i)) {
      v[i, j, ] <- v[j, i, ] <- covariance(own[[i]], own[[j]])
    }
    v
  })
}

# ---- simulation ----------------------------------------------------------------------------------

# A function that draws the part of a field in the linear predictors.
field_draw <- function(term, par) {
  if (term$free > 0L) {
    abort_argument("re.form", sprintf(paste("new values of '%s' cannot be drawn, as it has no",
                                            "density in some directions: use re.form = NULL"),
                                      term$label))
  }
  rows <- term$rows
  x <- rows$values(par)
  n <- term$size
  d <- new_sparse(x, rows$i - 1L, rows$j - 1L, c(rows$count, n))
  turned <- new_sparse(x, d$j, d$i, c(n, rows$count))
  q <- sparse_by_sparse(turned, d, TRUE)
  low <- q$i >= q$j
  pins <- vapply(term$held, `[`, 0, 1L)
  f <- numeric_factor(c(q$i[low] + 1L, pins), c(q$j[low] + 1L, pins),
                      c(q$values[low], rep(1, length(pins))), n)
  scale <- term$scales(par)
  function() {
    u <- .Call(r_sparse_solve, f$handle, placed(x * stats::rnorm(rows$count)[rows$i], rows$j, n))
    for (set in term$held) u[set] <- u[set] - mean(u[set])
    Reduce(`+`, lapply(term$parts, function(p) scale[[p$k]] * p$weight * u[p$at]))
  }
}

field_draws <- function(object) {
  if (length(object$fields) == 0L) return(list())
  terms <- mixed_terms(mixed_work(object), 1)
  own <- length(terms) - length(object$fields) + seq_along(object$fields)
  Map(field_draw, terms[own], object$internal$par[own])
}

# ---- profile likelihoods -------------------------------------------------------------------------

# As mixed_profiles(). The parameters are those of the objective: logarithms of standard deviations,
# and so on.
field_profiles <- function(object, chosen, limit) {
  error <- c(spread_errors(object), coefficient_errors(object))
  plain <- field_state(object)
  keep <- function(par, value, gradient) list(par = par, again = FALSE)
  surface_of <- function(s) {
    psi <- s$theta
    list(psi = psi, begin = psi, leave = keep, best = s$fn(psi), value = function(psi) {
      value <- s$fn(psi)
      if (is.nan(value)) Inf else value
    }, slope = function(psi) as.vector(s$gr(psi)),
    lower = c(rep(-Inf, s$p), unlist(lapply(s$terms, `[[`, "lower")),
              rep(-Inf, length(object$internal$aux))))
  }
  ends <- vapply(chosen, function(name) {
    j <- match(name, rownames(object$vcov))
    if (!is.na(j)) {
      s <- field_state(object, first = j)
      return(object$coefficients[[name]] +
               s$turn[j, 1L] * surface_ends(surface_of(s), 1L, 1, limit))
    }
    at <- field_place(object, plain, name)
    surface <- surface_of(plain)
    place <- plain$p + at$place
    slope <- abs(central_slopes(at$shown, surface$psi[place]))
    found <- surface_ends(surface, place, error[[name]] / slope, limit)
    # a standard deviation at its bound
    ifelse(!is.na(found) & found == surface$lower[place], 0, vapply(found, at$shown, 0))
  }, numeric(2L))
  t(ends)
}

# list(place: of a parameter; shown: its value on its natural scale).
field_place <- function(object, s, name) {
  if (name == "sigma") return(list(place = length(s$theta) - s$p, shown = exp))
  before <- 0L
  spread <- spread_names(object)
  for (t in seq_along(s$terms)) {
    term <- s$terms[[t]]
    par <- object$internal$par[[t]]
    names <- if (term$kind == "group") spread$name[spread$term == t] else term$names
    k <- match(name, names)
    if (!is.na(k)) {
      at <- k
      if (term$kind == "group") {
        one <- spread[spread$term == t, ][k, ]
        if (one$row != one$col && one$col > 1L) {
          abort_argument("parm", sprintf("there is no profile of '%s' in fits with fields", name))
        }
        count <- max(spread$row[spread$term == t])
        at <- if (one$row == one$col) one$row else
          count + 1L + sum(seq_len(one$row - 1L) - 1L)
      }
      return(list(place = before + at, shown = function(v) term$shown(replace(par, at, v))[k]))
    }
    before <- before + length(par)
  }
}
