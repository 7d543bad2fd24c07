# The class clElement, the argument of functions given to cl_map() and cl_reduce(). It represents
# one element and holds the lazy matrix of all elements; operations on it create graph nodes for
# that matrix. The text of a function is never read.

clElement_prototype <- new("clElement")

element <- function(matrix) {
  x <- clElement_prototype
  attr(x, "all") <- matrix
  x
}

#' Elements
#'
#' The class of the values with which functions passed to [cl_map()] and [cl_reduce()] are called.
#' Each stands for one element of a matrix. The operations on it are listed there.
#'
#' @name clElement
#' @aliases clElement-class
#' @eval element_aliases()
#' @keywords internal
NULL

element_aliases <- function() {
  methods <- c("!", "Math", "Summary", "[", "[[", "is.finite", "is.infinite", "is.na", "is.nan",
               "anyNA", "length", "log", "round", "show", "trunc", "+,clElement,missing",
               "-,clElement,missing")
  two <- grepl(",", methods, fixed = TRUE)
  paste0("@aliases ", methods, ifelse(two, "", ",clElement"), "-method")
}

is_element <- function(x) isS4(x) && inherits(x, "clElement")

# Whether x is a number that a traced function can use.
is_constant <- function(x) {
  !is.object(x) && (is.numeric(x) || is.logical(x)) && length(x) == 1L && length(dim(x)) == 0L
}

# op(operands), a name of elementwise.def, on elements and numbers.
element_apply <- function(op, operands, arguments) {
  plain <- lapply(seq_along(operands), function(k) element_operand(operands[[k]], arguments[k]))
  element(apply_op(op, plain, arguments))
}

element_operand <- function(x, argument) {
  if (is_element(x)) return(x@all)
  if (is_constant(x)) return(as.double(x))
  what <- if (is_cl(x)) sprintf("a clMatrix of %d x %d", x@Dim[1L], x@Dim[2L]) else describe(x)
  abort_argument(argument, sprintf(paste("'%s' is %s, but a function of elements can use only",
                                         "elements and numbers: pass matrices as further",
                                         "arguments"),
                                   argument, what))
}

refuse_operation <- function(name) {
  abort_argument("f", sprintf("'%s' is not available for elements (?cl_map lists the operations)",
                              name))
}

element_operator <- function(name) {
  op <- operators[[name]]
  eval(substitute(function(e1, e2) {
    element(.Call(r_lazy_apply, op, element_operand(e1, "e1"), element_operand(e2, "e2")))
  }, list(op = op)))
}

# Methods with a clMatrix raise an argument error.
for (classes in list(c("clElement", "ANY"), c("ANY", "clElement"), c("clElement", "clElement"),
                     c("clElement", "clMatrix"), c("clMatrix", "clElement"))) {
  for (name in names(operators)) setMethod(name, classes, element_operator(name))
}
rm(classes, name)

setMethod("-", signature("clElement", "missing"), function(e1, e2) element(-e1@all))

setMethod("+", signature("clElement", "missing"), function(e1, e2) e1)

setMethod("!", "clElement", function(x) element(!x@all))

#' @export
Math.clElement <- function(x, ...) {
  if (!.Generic %in% device_functions) refuse_operation(.Generic)
  element(unary(.Generic, x@all))
}

setMethod("trunc", "clElement", function(x, ...) element(unary("trunc", x@all)))

setMethod("log", "clElement", function(x, ...) {
  if (...length() == 0L) return(element(log(x@all)))
  pair <- log_arguments(sys.call(), x, ..1, is_element)
  element(log_to_base(element_operand(pair$x, "x"), element_operand(pair$base, "base")))
})

setMethod("round", "clElement", function(x, digits = 0) {
  element(round(x@all, digits))
})

for (name in c("round", "signif")) {
  for (class in c("clAnything", "clElement", "clMatrix")) {
    setMethod(name, c(class, "clElement"), refuse_digits)
  }
  setMethod(name, c("clElement", "clMatrix"), refuse_digits)
}
rm(name, class)

setMethod("is.na", "clElement", function(x) element(is.na(x@all)))

setMethod("is.nan", "clElement", function(x) element(is.nan(x@all)))

setMethod("is.finite", "clElement", function(x) element(is.finite(x@all)))

setMethod("is.infinite", "clElement", function(x) element(is.infinite(x@all)))

# An element is one number: the maximum of two elements is elementwise.
setMethod("Summary", "clElement", function(x, ..., na.rm = FALSE) {
  summarize_elements(.Generic, list(x, ...), na.rm)
})

summarize_elements <- function(name, operands, na.rm) {
  op <- c(sum = "add", prod = "mul", min = "pmin", max = "pmax", any = "or", all = "and")[name]
  if (is.na(op)) refuse_operation(name)
  if (check_flag(na.rm, "na.rm")) refuse_operation(paste0(name, "(na.rm = TRUE)"))
  if (op %in% c("or", "and") && length(operands) == 1L) return(operands[[1L]] != 0)
  Reduce(function(a, b) element_apply(op, list(a, b), c("...", "...")), operands)
}

# ---- what an element is not ---------------------------------------------------------------------

needs_choice <- function(what) {
  abort_argument("f", paste(what, "needs a value, and an element has none: use cl_ifelse(test,",
                            "yes, no) where the choice depends on the data"))
}

coercion_method <- function(name) {
  force(name)
  function(x, ...) needs_choice(paste0(name, "()"))
}

for (name in c("as.logical", "as.numeric", "as.integer", "as.character")) {
  setMethod(name, "clElement", coercion_method(name))
}
rm(name)

# Predicates that base R would answer for the object, not for the number that it represents; the
# others are in R/trace-guard.R.
question_method <- function(name) {
  force(name)
  function(x, ...) needs_choice(paste0(name, "()"))
}

#' @export
is.numeric.clElement <- question_method("is.numeric")

#' @method all.equal clElement
#' @export
all.equal.clElement <- function(target, current, ...) needs_choice("all.equal()")

#' @export
c.clElement <- function(...) needs_choice("c()")

#' @export
mean.clElement <- function(x, ...) refuse_operation("mean")

setMethod("anyNA", "clElement", function(x, recursive = FALSE) needs_choice("anyNA()"))

setAs("clElement", "logical", function(from) needs_choice("ifelse()"))

setMethod("[", "clElement", function(x, i, j, ..., drop = TRUE) refuse_operation("["))

setMethod("[[", "clElement", function(x, i, j, ...) refuse_operation("[["))

setMethod("length", "clElement", function(x) 1L)

setMethod("show", "clElement", function(object) {
  cat("<an element of ", format(object@all), ">\n", sep = "")
})
