# Formal classes. This file comes first in the order of loading, so that methods may be anywhere.

#' @rdname clMatrix
#' @export
setClass("clMatrix", slots = c(handle = "externalptr", Dim = "integer", Dimnames = "list",
                               view = "character"),
         prototype = list(Dim = c(0L, 0L), Dimnames = list(NULL, NULL), view = "general"))

#' @rdname clArray
#' @export
setClass("clArray", slots = c(handle = "externalptr", Dim = "integer", Dimnames = "list"),
         prototype = list(Dim = c(0L, 0L, 0L), Dimnames = list(NULL, NULL, NULL)))

# What functions given to cl_map() and cl_reduce() are called with (R/element.R).
setClass("clElement", slots = c(all = "clMatrix"))

# What c() and summaries may have before a clMatrix: R finds their methods by the first argument.
setClassUnion("clPlain", c("numeric", "logical", "matrix"))

# What functions of both are methods for (R/distributions.R).
setClassUnion("clValue", c("clMatrix", "clElement"))

# What may stand first in round() and signif(), whose methods for ANY are sealed (R/arith.R).
setClassUnion("clAnything", c("vector", "matrix", "array", "NULL", "function", "environment",
                              "language"))
