# Arithmetic in loops. A call of a method for each operation takes most of the time of recording a
# loop. What a loop assigns is recorded by one call (src/r/trace_formula.c) if it is nothing but
# operators, elements, functions of `formula_functions` and densities, applied to variables and
# numbers: R code of f can see no difference. Everything that is not of the usual form R computes as
# it stands.

formula_functions <- c("+", "-", "*", "/", "^", "(", "[", "exp", "log", "sqrt")

# `formula`: an expression with the code, or with the same operations.
recorded_formula <- function(code, formula) {
  usual <- .Call(r_trace_formula, tracing$tape, formula[[1L]], parent.frame())
  if (is.null(usual)) code else usual
}

# A copy of g, where those names count that mean R's functions there. `replaced`: names that mean
# others.
recording_formulas <- function(g, replaced) {
  home <- environment(g)
  own <- c(all.vars(body(g)), names(formals(g)), replaced)
  usual <- usual_functions(home, own)
  of_user <- function(code, name) {
    if (nzchar(name) && !name %in% own) body_of_call(code, name, home, replaced)
  }
  formula_of <- function(code) {
    formula <- as_formula(code, usual, of_user)
    names <- all.names(formula, functions = FALSE)
    if (length(all.names(formula)) - length(names) > 1L) as.expression(list(formula))
  }
  kept <- attributes(g)
  body(g) <- with_formulas(body(g), formula_of)
  attributes(g) <- kept
  g
}

usual_functions <- function(home, own) {
  names <- setdiff(c(formula_functions, tracing$densities), own)
  names[are_original(names, home)]
}

# The code with .statcl_formula() around what loops assign.
with_formulas <- function(code, formula_of, in_loop = FALSE) {
  head <- if (is.call(code) && is.name(code[[1L]])) as.character(code[[1L]]) else ""
  last <- length(code)
  if (head %in% c("for", "while", "repeat")) {
    code[[last]] <- with_formulas(code[[last]], formula_of, TRUE)
  } else if (head == "{" || head == "if") {
    for (k in seq_len(last)[if (head == "if") -(1:2) else -1L]) {
      code[[k]] <- with_formulas(code[[k]], formula_of, in_loop)
    }
  } else if (in_loop && head %in% c("<-", "=")) {
    formula <- formula_of(code[[3L]])
    if (!is.null(formula)) code[[3L]] <- call(".statcl_formula", code[[3L]], formula)
  }
  code
}

# The code, with what users' functions consist of in place of their calls; NULL if there is anything
# but formulas.
as_formula <- function(code, usual, of_user = function(code, name) NULL) {
  if (is.symbol(code)) return(if (!as.character(code) %in% c("", "...")) code)
  if (!is.call(code)) return(if (is.numeric(code)) code)
  head <- if (is.name(code[[1L]])) as.character(code[[1L]]) else ""
  if (!head %in% usual) {
    code <- of_user(code, head)
    return(if (!is.null(code)) as_formula(code, usual))
  }
  operands <- length(code) - 1L
  density <- head %in% tracing$densities
  right <- if (density) operands > 0L
           else if (head %in% c("(", "exp", "log", "sqrt")) operands == 1L
           else if (head == "-") operands %in% 1:2
           else if (head == "[") operands %in% 2:3 else operands == 2L
  if (!right || !density && !is.null(names(code))) return(NULL)
  for (k in seq_len(operands) + 1L) {
    if (density && is.logical(code[[k]])) next
    operand <- as_formula(code[[k]], usual, of_user)
    if (is.null(operand)) return(NULL)
    code[[k]] <- operand
  }
  code
}

# What a call of a user's function consists of, with the arguments in their places: a formula in
# which each of them stands at most once, and nothing else does. NULL for other functions.
body_of_call <- function(code, name, home, replaced) {
  f <- get0(name, envir = home, mode = "function")
  if (!is_followed(f)) return(NULL)
  formula <- body(f)
  while (is.call(formula) && identical(formula[[1L]], quote(`{`)) && length(formula) == 2L) {
    formula <- formula[[2L]]
  }
  formula <- as_formula(formula, usual_functions(environment(f), c(names(formals(f)), replaced)))
  used <- all.names(formula, functions = FALSE)
  args <- base::tryCatch(as.list(match.call(f, code))[-1L], error = function(e) NULL)
  if (is.null(formula) || anyDuplicated(used) > 0L || !all(used %in% names(args))) return(NULL)
  do.call(substitute, list(formula, args))
}
