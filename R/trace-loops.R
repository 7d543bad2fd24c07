# Arithmetic in loops. A call of a method for each operation takes most of the time of recording a
# loop. What a loop assigns is recorded by one call (src/r/trace_formula.c) if it is nothing but
# operators, elements and functions of `formula_functions`, applied to variables and numbers: R code
# of f can see no difference. Everything that is not of the usual form R computes as it stands.

formula_functions <- c("+", "-", "*", "/", "^", "(", "[", "exp", "log", "sqrt")

recorded_formula <- function(code) {
  usual <- .Call(r_trace_formula, tracing$tape, substitute(code), parent.frame())
  if (is.null(usual)) code else usual
}

# A copy of g, where those names count that mean R's functions there.
recording_formulas <- function(g) {
  usual <- setdiff(formula_functions, c(all.vars(body(g)), names(formals(g))))
  kept <- attributes(g)
  body(g) <- with_formulas(body(g), usual[are_original(usual, environment(g))])
  attributes(g) <- kept
  g
}

# The code with .statcl_formula() around what loops assign.
with_formulas <- function(code, usual, in_loop = FALSE) {
  head <- if (is.call(code) && is.name(code[[1L]])) as.character(code[[1L]]) else ""
  last <- length(code)
  if (head %in% c("for", "while", "repeat")) {
    code[[last]] <- with_formulas(code[[last]], usual, TRUE)
  } else if (head == "{" || head == "if") {
    for (k in seq_len(last)[if (head == "if") -(1:2) else -1L]) {
      code[[k]] <- with_formulas(code[[k]], usual, in_loop)
    }
  } else if (in_loop && head %in% c("<-", "=") && isTRUE(count_formula(code[[3L]], usual) > 1)) {
    code[[3L]] <- call(".statcl_formula", code[[3L]])
  }
  code
}

# The number of operations; NA if there is anything else.
count_formula <- function(code, usual) {
  if (is.symbol(code)) return(if (nzchar(as.character(code))) 0 else NA)
  if (!is.call(code)) return(if (is.numeric(code)) 0 else NA)
  head <- if (is.name(code[[1L]])) as.character(code[[1L]]) else ""
  operands <- length(code) - 1L
  right <- if (head %in% c("(", "exp", "log", "sqrt")) operands == 1L
           else if (head == "-") operands %in% 1:2
           else if (head == "[") operands %in% 2:3 else operands == 2L
  if (!right || !head %in% usual || !is.null(names(code))) return(NA)
  1 + sum(vapply(as.list(code)[-1L], count_formula, 0, usual = usual))
}
