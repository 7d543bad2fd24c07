# Formal classes. This file is loaded first, so that methods can stand in any file.

#' @rdname clMatrix
#' @export
setClass("clMatrix", slots = c(handle = "externalptr", Dim = "integer", Dimnames = "list",
                               view = "character"),
         prototype = list(Dim = c(0L, 0L), Dimnames = list(NULL, NULL), view = "general"))

#' @rdname clArray
#' @export
setClass("clArray", slots = c(handle = "externalptr", Dim = "integer", Dimnames = "list"),
         prototype = list(Dim = c(0L, 0L, 0L), Dimnames = list(NULL, NULL, NULL)))

#' @rdname clSparse
#' @export
setClass("clSparse", slots = c(state = "environment", transposed = "logical", Dim = "integer",
                               Dimnames = "list"))

# Classes that can precede a clMatrix in c() and summaries: R dispatches on the first argument.
setClassUnion("clPlain", c("numeric", "logical", "matrix"))

# Possible first arguments of round() and signif(), whose methods for ANY are sealed
# (R/matrix-arith.R).
setClassUnion("clAnything", c("vector", "matrix", "array", "NULL", "function", "environment",
                              "language"))
