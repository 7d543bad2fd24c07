# Formulas with random effects, such as y ~ x + (x | g): their terms, groups and model matrices.

# The calls a | b and a || b in parentheses among the terms of an expression; NULL without them.
random_bars <- function(e) {
  if (!is.call(e) || !as.character(e[[1L]])[1L] %in% c("+", "-", "*", "/", ":", "^", "(")) {
    return(NULL)
  }
  if (is_random(e)) return(list(e[[2L]]))
  unlist(lapply(as.list(e)[-1L], random_bars), recursive = FALSE)
}

# Terms with a field, such as rw1(t), and their arguments.
field_arguments <- list(
  car = function(area, graph, type) NULL, spde = function(coords, mesh) NULL,
  rw1 = function(index, group, values) NULL, rw2 = function(index, group, values) NULL,
  ar1 = function(index, group, values) NULL,
  seasonal = function(index, period, group, values) NULL)
of_data <- c("area", "coords", "index", "group") # those that are variables of the data

is_field <- function(e) {
  is.call(e) && is.name(e[[1L]]) && as.character(e[[1L]]) %in% names(field_arguments)
}

# The calls of fields among the terms of an expression; NULL without them.
field_calls <- function(e) {
  if (is_field(e)) return(list(e))
  if (!is.call(e) || is_random(e) ||
        !as.character(e[[1L]])[1L] %in% c("+", "-", "*", "/", ":", "^", "(")) return(NULL)
  unlist(lapply(as.list(e)[-1L], field_calls), recursive = FALSE)
}

has_effects <- function(e) !is.null(random_bars(e)) || !is.null(field_calls(e))

# The arguments of such a call, by name.
read_field <- function(e) {
  kind <- as.character(e[[1L]])
  found <- tryCatch(as.list(match.call(field_arguments[[kind]], e))[-1L], error = function(err) {
    abort_argument("formula", sprintf("'%s': %s() has the arguments %s", deparse1(e), kind,
                                      paste(names(formals(field_arguments[[kind]])),
                                            collapse = ", ")))
  })
  required <- setdiff(names(formals(field_arguments[[kind]])), c("group", "values", "type"))
  lacking <- setdiff(required, names(found))
  if (length(lacking) > 0L) {
    abort_argument("formula", sprintf("'%s' needs the argument '%s'", deparse1(e), lacking[1L]))
  }
  found
}

is_bar <- function(e) is.call(e) && (identical(e[[1L]], as.name("|")) ||
                                       identical(e[[1L]], as.name("||")))

is_random <- function(e) is.call(e) && identical(e[[1L]], as.name("(")) && is_bar(e[[2L]])

# An expression without its random effects and fields; NULL if nothing is left.
without_bars <- function(e) {
  if (is_random(e) || is_field(e)) return(NULL)
  if (!has_effects(e)) return(e)
  head <- as.character(e[[1L]])[1L]
  if (head == "(") return(without_bars(e[[2L]]))
  if (head != "+") {
    abort_argument("formula", sprintf("random effects can only be added to other terms: '%s'",
                                      deparse1(e)))
  }
  left <- Filter(Negate(is.null), lapply(as.list(e)[-1L], without_bars))
  if (length(left) == 2L) as.call(c(e[[1L]], left)) else if (length(left) == 1L) left[[1L]]
}

# The terms as list(columns: the expression on the left, group: the one on the right), with a / b
# taken as a and a:b, and || as terms of their own.
random_terms <- function(bars) {
  unlist(lapply(bars, function(e) {
    columns <- if (identical(e[[1L]], as.name("||"))) separate_columns(e[[2L]]) else list(e[[2L]])
    groups <- nested_groups(e[[3L]])
    unlist(lapply(groups, function(g) lapply(columns, function(x) list(columns = x, group = g))),
           recursive = FALSE)
  }), recursive = FALSE)
}

nested_groups <- function(e) {
  if (is.call(e) && identical(e[[1L]], as.name("("))) return(nested_groups(e[[2L]]))
  if (!is.call(e) || !identical(e[[1L]], as.name("/"))) return(list(e))
  outer <- nested_groups(e[[2L]])
  c(lapply(nested_groups(e[[3L]]), function(g) call(":", g, outer[[1L]])), outer)
}

# One expression for the intercept and for each variable.
separate_columns <- function(e) {
  terms <- classed(stats::terms(call_formula(e)), "formula")
  labels <- lapply(attr(terms, "term.labels"), function(t) call("+", 0, str2lang(t)))
  c(if (attr(terms, "intercept") == 1L) list(1), labels)
}

call_formula <- function(e, where = baseenv()) {
  stats::as.formula(call("~", e), env = where)
}

# The formula of the model frame: every variable, with + in place of the bars, and the variables of
# fields in place of these.
frame_formula <- function(formula) {
  flat <- function(e) {
    if (!is.call(e)) return(e)
    if (is_random(e)) {
      bar <- e[[2L]]
      return(call("(", call("+", bar[[2L]], bar[[3L]])))
    }
    if (is_field(e)) return(call("(", field_variables(read_field(e))))
    if (!has_effects(e)) e else as.call(c(e[[1L]], lapply(as.list(e)[-1L], flat)))
  }
  formula[[length(formula)]] <- flat(formula[[length(formula)]])
  formula
}

field_variables <- function(arguments) {
  Reduce(function(a, b) call("+", a, b),
         lapply(unname(arguments[names(arguments) %in% of_data]), field_variable))
}

# Such an argument as one variable of a formula, whose operators would otherwise be taken as those
# of formulas.
field_variable <- function(e) {
  operators <- c("+", "-", "*", "/", ":", "^", "(", "%in%")
  if (is.call(e) && as.character(e[[1L]])[1L] %in% operators) call("I", e) else e
}

# Terms of an expression whose variables are in the model frame with `terms`, so that bases such as
# poly() keep their coefficients in new data.
terms_within <- function(formula, terms) {
  own <- stats::terms(formula)
  names <- vapply(as.list(attr(own, "variables"))[-1L], deparse1, "")
  at <- match(names, vapply(as.list(attr(terms, "variables"))[-1L], deparse1, ""))
  attr(own, "predvars") <- as.call(c(quote(list), as.list(attr(terms, "predvars"))[-1L][at]))
  attr(own, "dataClasses") <- attr(terms, "dataClasses")[names]
  own
}

# list(name, factor) of the grouping expression e; `frame` has its variables.
group_factor <- function(e, frame) {
  if (is.call(e) && identical(e[[1L]], as.name("("))) return(group_factor(e[[2L]], frame))
  if (is.call(e) && identical(e[[1L]], as.name(":"))) {
    a <- group_factor(e[[2L]], frame)
    b <- group_factor(e[[3L]], frame)
    return(list(name = paste0(a$name, ":", b$name),
                factor = interaction(a$factor, b$factor, sep = ":", drop = TRUE,
                                     lex.order = TRUE)))
  }
  name <- deparse1(e)
  v <- frame[[name]]
  if (is.null(v) || is.matrix(v)) {
    abort_argument("formula", sprintf("'%s' cannot be a grouping factor of random effects", name))
  }
  list(name = name, factor = droplevels(as.factor(v)))
}

# For each random term list(group, factor, x: its model matrix, terms, contrasts).
random_designs <- function(random, frame) {
  lapply(random, function(term) {
    group <- group_factor(term$group, frame)
    if (nlevels(group$factor) < 2L) {
      abort_argument("formula", sprintf("grouping factor '%s' has only one level", group$name))
    }
    terms <- terms_within(call_formula(term$columns), stats::terms(frame))
    x <- stats::model.matrix(terms, frame)
    if (ncol(x) == 0L) {
      abort_argument("formula", sprintf("the random effects of '%s' have no columns", group$name))
    }
    list(group = group$name, of = term$group, factor = group$factor, x = x, terms = terms,
         contrasts = attr(x, "contrasts"))
  })
}
