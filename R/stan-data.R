# Data of Stan programs: lists, environments, and files of JSON or of R's dump() format; values are
# checked against the declarations.

# ---- reading -------------------------------------------------------------------------------------

stan_data_list <- function(data) {
  if (is.null(data)) return(list())
  if (is.environment(data)) return(as.list(data))
  if (is.character(data) && length(data) == 1L) return(stan_data_file(data))
  twice <- names(data)[duplicated(names(data))]
  if (is.list(data) && any(nzchar(twice))) {
    abort_argument("data", sprintf("'data' has '%s' twice", twice[nzchar(twice)][1L]))
  }
  if (!is.list(data) || length(data) > 0L && is.null(names(data))) {
    abort_argument("data", sprintf(paste("'data' must be a named list, an environment or the name",
                                         "of a file, not %s"), describe(data)))
  }
  data
}

stan_data_file <- function(file) {
  if (!file.exists(file)) abort_argument("data", sprintf("there is no file '%s'", file))
  text <- paste(readLines(file, warn = FALSE), collapse = "\n")
  tryCatch(if (grepl("^\\s*\\{", text)) read_json(text) else read_dump(text), error = function(e) {
    abort_argument("data", sprintf("'%s' cannot be read: %s", file, conditionMessage(e)))
  })
}

# A JSON object as a list: arrays of numbers become vectors and arrays. The text becomes R code,
# after a check that it has nothing else than JSON's signs, numbers and strings.
read_json <- function(text) {
  string <- "\"(?:[^\"\\\\]|\\\\.)*\""
  strings <- regmatches(text, gregexpr(string, text, perl = TRUE))[[1L]]
  bare <- gsub(string, " S ", text, perl = TRUE)
  bare <- gsub("[-+]?Infinity|[-+]?Inf|NaN|true|false|null", " ", bare)
  bare <- gsub("-?[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?", " ", bare, perl = TRUE)
  if (grepl("[^][{},:S[:space:]]", bare)) stop("this is not JSON", call. = FALSE)
  mark <- gsub(string, "\001", text, perl = TRUE)
  mark <- gsub("\\[", "list(", gsub("\\]", ")", gsub("\\{", "list(", gsub("\\}", ")", mark))))
  mark <- gsub("true", "TRUE", gsub("false", "FALSE", gsub("null", "NA", mark)))
  mark <- gsub("Infinity", "Inf", mark)
  mark <- gsub("list\\(([^()\001]*)\\)", "c(\\1)", mark)
  mark <- gsub(":", "=", mark)
  pieces <- strsplit(paste0(mark, " "), "\001", fixed = TRUE)[[1L]]
  code <- paste0(pieces, c(strings, "")[seq_along(pieces)], collapse = "")
  allowed <- list2env(list(list = list, c = c, `-` = `-`, `+` = `+`), parent = emptyenv())
  lapply(eval(parse(text = code, keep.source = FALSE)[[1L]], allowed), json_array)
}

json_array <- function(x) {
  if (is.character(x)) {
    known <- c(`NaN` = NaN, `Inf` = Inf, `-Inf` = -Inf, Infinity = Inf, `-Infinity` = -Inf)
    return(if (all(x %in% names(known))) unname(known[x]) else x)
  }
  if (!is.list(x)) return(if (is.null(x)) numeric() else x)
  if (!is.null(names(x))) return(lapply(x, json_array))
  parts <- lapply(x, json_array)
  shape <- lapply(parts, function(p) if (is.null(dim(p))) length(p) else dim(p))
  if (length(parts) == 0L || length(unique(shape)) > 1L || is.list(parts[[1L]])) return(parts)
  if (identical(shape[[1L]], 1L) && all(lengths(x) == 1L) && !any(vapply(x, is.list, NA)) &&
        is.character(x[[1L]])) return(unlist(parts))
  stacked <- array(unlist(parts), c(shape[[1L]], length(parts)))
  aperm(stacked, c(length(dim(stacked)), seq_along(shape[[1L]])))
}

# Assignments of numbers, as dump() and rstan::stan_rdump() write them.
read_dump <- function(text) {
  allowed <- c("c", "(", "structure", "-", "+", ":", "integer", "numeric", "double", "list",
               "as.double", "as.integer", "array", "matrix", "rep")
  home <- new.env(parent = emptyenv())
  for (f in allowed) assign(f, get(f, baseenv()), envir = home)
  values <- list()
  for (e in as.list(parse(text = text, keep.source = FALSE))) {
    head <- if (is.call(e)) as.character(e[[1L]])[1L] else ""
    if (!head %in% c("<-", "=")) stop("it has something else than assignments", call. = FALSE)
    used <- setdiff(all.names(e[[3L]]), c(allowed, ".Dim", "NA", "Inf", "NaN", "NULL"))
    if (length(used) > 0L) stop(sprintf("'%s' is not allowed", used[1L]), call. = FALSE)
    values[[as.character(e[[2L]])]] <- eval(e[[3L]], home)
  }
  values
}

# ---- binding -------------------------------------------------------------------------------------

# Assigns the variables of the data block in `home`, in which sizes and bounds are evaluated.
bind_stan_data <- function(declarations, data, home, cx) {
  for (d in declarations) {
    if (d$kind != "decl") next
    assign(d$name, stan_data_part(data[[d$name]], d, cx, home), envir = home)
  }
}

# The checked value of a variable, or of a part of a tuple.
stan_data_part <- function(given, d, cx, home) {
  size <- stan_size(d, cx, home)
  if (any(size < 0)) {
    stan_data_stop(d, sprintf("has the size %s: sizes must not be negative",
                              paste(size, collapse = " x ")))
  }
  if (is.null(given)) {
    if (prod(size) == 0 && length(size) > 0L) given <- numeric() else
      stan_data_stop(d, "is missing in 'data'")
  }
  if (d$type$base == "tuple") return(stan_data_tuple(given, d, cx, home))
  value <- stan_data_value(given, size, d)
  wrong <- stan_violation(value, stan_spec(d, size), stan_bounds(d, cx, home))
  if (!is.null(wrong)) stan_data_stop(d, wrong)
  value
}

stan_data_stop <- function(d, message) {
  statcl_abort("stan", sprintf("data '%s' %s (declared in line %d)", d$name, message,
                               as.integer(d$line)), line = d$line, variable = d$name)
}

stan_eval <- function(code, home, d) {
  tryCatch(eval(code, home), error = function(e) {
    stan_abort(sprintf("'%s' cannot be declared: %s", d$name, conditionMessage(e)), d$line,
               variable = d$name)
  })
}

# The sizes of a declaration.
stan_size <- function(d, cx, home) {
  vapply(d$sizes, function(s) stan_eval(stan_expr(s, cx), home, d), 0)
}

# The kind of constraint and the dimensions of a declaration with these sizes.
stan_spec <- function(d, size) {
  inner <- utils::tail(size, length(size) - d$type$depth)
  kind <- if (is.null(d$constraint)) "none" else d$constraint$kind
  list(kind = kind, outer = utils::head(size, d$type$depth), inner = inner,
       free = stan_free_size(kind, inner))
}

# The code of a constraint's expressions, and their values.
stan_bound_codes <- function(d, cx) {
  parts <- d$constraint[intersect(names(d$constraint), c("lower", "upper", "offset", "multiplier"))]
  lapply(Filter(Negate(is.null), parts), stan_expr, cx)
}

stan_bounds <- function(d, cx, home) lapply(stan_bound_codes(d, cx), stan_eval, home, d)

# Complex numbers: R's, or pairs along a last dimension as in files of JSON; real ones have no
# imaginary part.
stan_data_complex <- function(x, size, d) {
  d$type <- stan_real_type(d$type)
  if (is.list(x)) x <- json_array(unname(x))
  n <- prod(size)
  if (!is.complex(x) && length(x) == 2 * n && n > 0) {
    x <- stan_data_value(x, c(size, 2), d)
    x <- complex(real = x[seq_len(n)], imaginary = x[n + seq_len(n)])
    if (length(size) > 1L) dim(x) <- size
  }
  stan_complex(stan_data_value(if (is.complex(x)) Re(x) else x, size, d),
               stan_data_value(if (is.complex(x)) Im(x) else 0 * x, size, d))
}

# A value in the declared shape.
stan_data_value <- function(x, size, d) {
  if (is_complex_type(d$type)) return(stan_data_complex(x, size, d))
  if (is.data.frame(x)) x <- as.matrix(x)
  if (is.list(x)) x <- json_array(unname(x))
  if (is.factor(x) || is.list(x) || !(is.numeric(x) || is.logical(x))) {
    stan_data_stop(d, sprintf("must be numeric, not %s", describe(x)))
  }
  have <- if (is.null(dim(x))) length(x) else dim(x)
  want <- if (length(size) == 0L) 1 else size
  fits <- length(x) == prod(want) &&
    (identical(as.double(have), as.double(want)) ||
       identical(as.double(have[have != 1]), as.double(want[want != 1])) || prod(want) == 0)
  if (!fits) {
    stan_data_stop(d, sprintf("has the size %s, but must have %s", paste(have, collapse = " x "),
                              if (length(size) == 0L) "one element" else
                                paste(want, collapse = " x ")))
  }
  x <- as.double(x)
  if (any(is.na(x) & !is.nan(x))) stan_data_stop(d, "has missing values")
  if (d$type$base == "int") {
    wrong <- x[is.nan(x) | x != round(x) | abs(x) > 2^31 - 1]
    if (length(wrong) > 0L) {
      stan_data_stop(d, sprintf("must be of whole numbers of at most 2147483647, but has %s",
                                format(wrong[1L], digits = 10)))
    }
  }
  if (length(size) > 1L) dim(x) <- size
  x
}
