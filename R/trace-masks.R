# The functions that replace those of base R and stats in a traced function, by name. Functions not
# listed here work through methods, or unchanged.

# A replacement: `mine` if any argument is traced, else the original.
mask <- function(name, mine, original = get(name, baseenv())) {
  force(name)
  force(mine)
  force(original)
  function(...) if (any_traced(...)) mine(...) else plain_call(name, original, ...)
}

# Of plain values; packages make generic functions of R's for their S4 objects, such as sparse
# matrices.
plain_call <- function(name, original, ...) {
  for (k in seq_len(...length())) {
    if (!isS4(...elt(k))) next
    generic <- methods::getGeneric(name)
    return(if (is.null(generic)) original(...) else generic(...))
  }
  original(...)
}

# The same for an original that only moves elements of its first argument.
mover <- function(name, original = get(name, baseenv())) {
  force(original)
  function(...) {
    if (!any_traced(...)) return(original(...))
    values <- list(...)
    if (any_traced_but_first(values)) {
      trace_stop(sprintf("%s() needs the value of a traced value for a shape", name),
                 choice = TRUE)
    }
    do.call(move, c(list(original, list(values[[1L]])), values[-1L]), quote = TRUE)
  }
}

any_traced_but_first <- function(values) {
  length(values) > 1L && any(vapply(values[-1L], is_traced, NA))
}

# A function that needs the value of its argument.
deciding <- function(name, original = get(name, baseenv())) {
  force(original)
  force(name)
  function(...) {
    if (any_traced(...)) {
      if (!is.null(tracing$tape$live)) {
        known <- lapply(list(...), function(x) if (is_traced(x)) live_value(x) else x)
        return(do.call(original, known, quote = TRUE))
      }
      trace_stop(sprintf("%s needs the value of a traced value", call_text(name)), choice = TRUE)
    }
    original(...)
  }
}

# Functions whose value is made of elements of x, which are chosen by its numbers: rule(x, these
# numbers, ...).
choosing <- function(name, original, rule) {
  plain_or_refused <- deciding(name, original)
  force(rule)
  function(x, ...) {
    if (!is_traced(x) || any_traced(...) || is.null(tracing$tape$live)) {
      return(plain_or_refused(x, ...))
    }
    rule(as.vector(x), as.vector(live_value(x)), ...)
  }
}

sorted_quantiles <- function(x, known, probs = seq(0, 1, 0.25), na.rm = FALSE, names = TRUE,
                             type = 7, ...) {
  if (type != 7) trace_stop("quantile() of a traced value needs type = 7")
  at <- 1 + (length(known) - 1) * probs
  x <- x[order(known)]
  low <- floor(at)
  x[low] + (at - low) * (x[ceiling(at)] - x[low])
}

shape_text <- "dimensions cannot depend on a traced value"

call_text <- function(name) {
  if (grepl("^[A-Za-z]", name)) paste0(name, "()") else paste0("'", name, "'")
}

# traced: traced_summary() or traced_extremes().
summary_mask <- function(name, traced) {
  original <- get(name, baseenv())
  force(name)
  function(..., na.rm = FALSE) {
    if (any_traced(...)) traced(name, list(...), na.rm) else original(..., na.rm = na.rm)
  }
}

# x[...] <- value where x is plain and value is traced: there is no method for this. For plain
# values the original is avoided where possible, because it would copy x.
assignment_mask <- function(name) {
  original <- get(name, baseenv())
  force(name)
  function(x, ..., value) {
    if (...length() == 1L && !missing(..1)) { # as usual_put(), without another call
      usual <- .Call(r_trace_put, tracing$tape, x, ..1, NULL, value)
      if (!is.null(usual)) return(usual)
    }
    if (is_traced(value)) {
      if (name == "[[<-" && is.environment(x) && !is_traced(x)) check_inside(x, ..1)
      else if (name != "[[<-" || !is.list(x)) return(traced_assign(x, original, value, ...))
    } else if (...length() == 1L && !missing(..1) && is_traced(..1)) {
      return(traced_assign(x, original, value, ...))
    }
    original(x, ..., value = value)
  }
}

matrix_mask <- function(data = NA, nrow, ncol, byrow = FALSE, dimnames = NULL) {
  arguments <- list(byrow = byrow, dimnames = dimnames)
  if (!missing(nrow)) arguments$nrow <- nrow
  if (!missing(ncol)) arguments$ncol <- ncol
  for (name in names(arguments)) {
    if (is_traced(arguments[[name]])) {
      if (is.null(tracing$tape$live)) trace_stop(shape_text, choice = TRUE)
      arguments[[name]] <- live_value(arguments[[name]])
    }
  }
  if (!is_traced(data)) {
    return(do.call(base::matrix, c(list(data), arguments), quote = TRUE))
  }
  do.call(move, c(list(base::matrix, list(as.vector(data))), arguments), quote = TRUE)
}

stopifnot_mask <- function(...) {
  if (any_traced(...)) {
    trace_stop("stopifnot() needs the value of a traced value", choice = TRUE)
  }
  call <- sys.call()
  call[[1L]] <- base::stopifnot
  eval.parent(call)
}

predicate <- function(name, answer) {
  original <- get(name, baseenv())
  force(answer)
  function(x, ...) if (is_traced(x)) answer(x) else original(x, ...)
}

base_masks <- function() {
  product <- function(kind) {
    force(kind)
    function(x, y = NULL, ...) traced_product(x, if (is.null(y)) x else y, kind)
  }
  kinds <- c(`%*%` = 0L, crossprod = 1L, tcrossprod = 2L)
  masks <- lapply(names(kinds), function(name) mask(name, product(kinds[[name]])))
  names(masks) <- names(kinds)
  for (name in c("sum", "prod", "min", "max", "range", "any", "all")) {
    masks[[name]] <- summary_mask(name, traced_summary)
  }
  for (name in c("pmin", "pmax")) masks[[name]] <- summary_mask(name, traced_extremes)
  for (name in c("rep", "rep.int", "rep_len", "array", "drop", "aperm", "rev")) {
    masks[[name]] <- mover(name)
  }
  masks$head <- mover("head", utils::head)
  masks$tail <- mover("tail", tail_plain_or_not)
  for (name in c("seq_len", ":", "numeric", "double", "integer", "vector", "logical",
                 "seq.int", "which", "which.max", "which.min", "order", "match", "%in%", "isTRUE",
                 "isFALSE", "duplicated", "table", "cut", "all.equal", "findInterval", "tabulate",
                 "is.element", "identical", "nchar")) {
    masks[[name]] <- deciding(name)
  }
  masks$sort <- choosing("sort", base::sort, function(x, known, decreasing = FALSE, ...) {
    x[order(known, decreasing = decreasing)]
  })
  masks$unique <- choosing("unique", base::unique, function(x, known, ...) x[!duplicated(known)])
  masks$quantile <- choosing("quantile", stats::quantile, sorted_quantiles)
  masks$median <- choosing("median", stats::median, function(x, known, ...) {
    sorted_quantiles(x, known, 0.5)
  })
  masks
}

tail_plain_or_not <- function(x, ...) {
  if (is.matrix(x)) utils::tail(x, ..., keepnums = FALSE) else utils::tail(x, ...)
}

other_masks <- function() {
  list(
    c = function(...) if (any_traced(...)) combine_traced(list(...)) else base::c(...),
    cbind = function(..., deparse.level = 1) {
      if (!any_traced(...)) return(base::cbind(..., deparse.level = deparse.level))
      bind_traced(base::cbind, list(...), if (deparse.level == 1) substitute(list(...)))
    },
    rbind = function(..., deparse.level = 1) {
      if (!any_traced(...)) return(base::rbind(..., deparse.level = deparse.level))
      bind_traced(base::rbind, list(...), if (deparse.level == 1) substitute(list(...)))
    },
    append = function(x, values, after = length(x)) {
      if (!any_traced(x, values) || is.list(x) || is.list(values)) {
        return(base::append(x, values, after))
      }
      move(base::append, list(x, values), after)
    },
    matrix = matrix_mask,
    `$` = dollar_mask,
    `[<-` = assignment_mask("[<-"), `[[<-` = assignment_mask("[[<-"),
    `diag<-` = function(x, value) {
      if (is_traced_sparse(x)) return(sparse_set_diagonal(x, value))
      if (!any_traced(x, value)) return(plain_call("diag<-", base::`diag<-`, x, value))
      if (is_sparse(x)) return(sparse_set_diagonal(as_traced_sparse(x), value))
      move(base::`diag<-`, list(x, value))
    },
    `attr<-` = function(x, which, value) {
      if (!is_traced(x)) return(base::`attr<-`(x, which, value))
      switch(which, dim = dim(x) <- value, names = names(x) <- value,
             dimnames = dimnames(x) <- value)
      x
    },
    outer = mask("outer", traced_outer), `%o%` = mask("%o%", traced_outer),
    diag = mask("diag", traced_diag), det = mask("det", traced_det),
    chol = mask("chol", function(x, ...) chol.cl_traced(x)),
    solve = mask("solve", function(a, b, ...) traced_solve(a, if (!missing(b)) b)),
    qr.solve = mask("qr.solve", function(a, b, ...) traced_solve(a, if (!missing(b)) b)),
    proportions = mask("proportions", traced_proportions),
    prop.table = mask("prop.table", traced_proportions),
    backsolve = mask("backsolve", traced_backsolve),
    forwardsolve = mask("forwardsolve", traced_forwardsolve),
    chol2inv = mask("chol2inv", traced_chol2inv),
    ifelse = mask("ifelse", traced_ifelse),
    log = function(x, base = exp(1)) {
      if (missing(base)) return(base::log(x))
      if (any_traced(x, base)) traced_log(x, base) else base::log(x, base)
    },
    atan2 = mask("atan2", function(y, x) traced_binary("atan2", y, x)),
    rowSums = mask("rowSums", function(x, na.rm = FALSE, dims = 1L) {
      traced_margin(x, 1L, FALSE, na.rm, dims)
    }),
    colSums = mask("colSums", function(x, na.rm = FALSE, dims = 1L) {
      traced_margin(x, 2L, FALSE, na.rm, dims)
    }),
    rowMeans = mask("rowMeans", function(x, na.rm = FALSE, dims = 1L) {
      traced_margin(x, 1L, TRUE, na.rm, dims)
    }),
    colMeans = mask("colMeans", function(x, na.rm = FALSE, dims = 1L) {
      traced_margin(x, 2L, TRUE, na.rm, dims)
    }),
    sweep = mask("sweep", traced_sweep),
    rowsum = mask("rowsum", traced_rowsum),
    tapply = mask("tapply", traced_tapply),
    var = mask("var", traced_var, stats::var),
    cov = mask("cov", traced_var, stats::cov),
    cor = mask("cor", traced_cor, stats::cor),
    cov2cor = mask("cov2cor", traced_cov2cor, stats::cov2cor),
    mahalanobis = mask("mahalanobis", traced_mahalanobis, stats::mahalanobis),
    norm = mask("norm", traced_norm),
    besselK = mask("besselK", traced_bessel_k),
    psigamma = mask("psigamma", traced_psigamma),
    xor = mask("xor", function(x, y) {
      traced_binary("ne", traced_binary("ne", x, 0), traced_binary("ne", y, 0))
    }),
    pmin.int = summary_mask("pmin", traced_extremes),
    pmax.int = summary_mask("pmax", traced_extremes),
    mean.default = mask("mean.default", function(x, ...) mean(x, ...)),
    simplify2array = function(x, higher = TRUE, ...) {
      if (contains_traced(x)) simplified(x) else base::simplify2array(x, higher, ...)
    },
    sd = mask("sd", function(x, ...) safe_root(traced_var(as.vector(x), ...)), stats::sd),
    sapply = mapped_sapply, vapply = mapped_vapply, mapply = mapped_mapply, Map = mapped_Map,
    Reduce = mapped_Reduce, apply = mapped_apply,
    replicate = function(n, expr, simplify = "array") {
      mapped_sapply(integer(n), eval.parent(substitute(function(...) expr)), simplify = simplify)
    },
    kronecker = mask("kronecker", traced_kronecker), `%x%` = mask("%x%", traced_kronecker),
    unlist = function(x, recursive = TRUE, use.names = TRUE) {
      if (contains_traced(x)) traced_unlist(x, use.names) else base::unlist(x, recursive, use.names)
    },
    is.atomic = predicate("is.atomic", function(x) TRUE),
    is.environment = predicate("is.environment", function(x) FALSE),
    replace = function(x, list, values) {
      if (!any_traced(x, list, values)) return(base::replace(x, list, values))
      traced_assign(x, `[<-`, values, list)
    },
    seq = traced_seq, embed = mover("embed", stats::embed),
    toeplitz = mover("toeplitz", stats::toeplitz),
    stopifnot = stopifnot_mask)
}

# The same for functions of this package: cl_<name>() for operations of one operand, and others.
own_masks <- function() {
  tables <- .Call(r_expr_ops)
  table <- tables$operations
  plain <- intersect(table$name[table$arity == 1L], sub("^cl_", "", ls(topenv(), pattern = "^cl_")))
  names(plain) <- paste0("cl_", plain)
  masks <- lapply(plain, function(op) {
    name <- paste0("cl_", op)
    mask(name, function(x) trace_apply(op, x), get(name, topenv()))
  })
  others <- list(
    cl_ifelse = mask("cl_ifelse", traced_choice, cl_ifelse),
    cl_atan2 = mask("cl_atan2", function(y, x) traced_binary("atan2", y, x), cl_atan2),
    cl_pnorm = mask("cl_pnorm", function(x, lower.tail = TRUE, log.p = FALSE) {
      trace_apply(if (isTRUE(log.p)) "log_pnorm" else "pnorm", if (isTRUE(lower.tail)) x else -x)
    }, cl_pnorm),
    cl_matmul = mask("cl_matmul", function(x, y, ...) traced_product(x, y, 0L), cl_matmul),
    cl_crossprod = mask("cl_crossprod", function(x, y = x, ...) traced_product(x, y, 1L),
                        cl_crossprod),
    cl_tcrossprod = mask("cl_tcrossprod", function(x, y = x, ...) traced_product(x, y, 2L),
                         cl_tcrossprod))
  calls <- Map(function(op, names) call_mask(op, names[[1L]], names[[2L]]), names(tables$calls),
               tables$calls)
  names(calls) <- paste0("cl_", names(calls))
  utils::modifyList(c(masks, calls), others)
}

# cl_<op>(), whose arguments have the names of operands and attributes in the core's table.
call_mask <- function(op, operands, attributes) {
  name <- paste0("cl_", op)
  original <- get(name, topenv())
  home <- list2env(list(op = op, operands = operands, attributes = attributes), parent = topenv())
  mine <- original
  body(mine) <- quote(traced_call(op, mget(operands), mget(attributes)))
  environment(mine) <- home
  mask(name, mine, original)
}

# An operation of the core's table: its rule has the shape of the result.
traced_call <- function(op, operands, attributes) {
  operands <- lapply(operands, trace_operand)
  dims <- lapply(operands, function(x) if (length(x$dim) == 2L) x$dim else c(x$n, 1L))
  attributes <- as.double(unlist(attributes))
  shape <- .Call(r_op_shape, op, dims, attributes)
  if (prod(shape) == 0) return(no_elements(shape))
  record(op, "", vapply(operands, node_of, 1L, USE.NAMES = FALSE),
         c(as.double(unlist(dims)), attributes), prod(shape), shape)
}

# R finds no method if both operands have different ones. Here both have the same one, that of
# traced values, which calls R's own function if neither is traced. R looks for `+.cl_traced` before
# Ops.cl_traced, in all packages if there is none.
class_masks <- function() {
  names <- c(paste0(c("+", "-", "*", "/", "^", "Ops"), ".cl_traced"), "Ops.ts", "Ops.factor",
             "Ops.data.frame", "Ops.Date", "Ops.POSIXt", "Ops.difftime", "+.Date", "-.Date",
             "+.POSIXt", "-.POSIXt", "*.difftime", "/.difftime")
  c(stats::setNames(rep(list(Ops.cl_traced), length(names)), names),
    list(`[.cl_traced` = `[.cl_traced`, log.cl_traced = traced_log,
         exp.cl_traced = direct_unary("exp"), sqrt.cl_traced = direct_unary("sqrt")))
}

# Methods of frequent functions: traced_unary(), whose usual case takes no further call.
direct_unary <- function(op) {
  force(op)
  function(x) {
    usual <- .Call(r_trace_apply, tracing$tape, op, list(x))
    if (is.null(usual)) traced_unary(op, x) else usual
  }
}

# `x$name`, which would access the internals of a traced value.
dollar_mask <- function(x, name) {
  if (is_traced(x)) {
    trace_stop("a parameter that is a vector has no '$': call the model with a named list")
  }
  name <- as.character(substitute(name))
  link <- if (name == "linkinv" && inherits(x, c("family", "link-glm"))) {
    traced_link(if (is.null(x$link)) x$name else x$link)
  }
  if (is.null(link)) return(eval(call("$", quote(x), as.name(name))))
  function(eta) if (is_traced(eta)) link(eta) else x$linkinv(eta)
}

# All replacements by name, created once.
traced_functions <- function() {
  if (is.null(tracing$functions)) {
    of_rooms <- do.call(c, lapply(tracing$rooms, function(masks) masks()))
    tracing$functions <- c(base_masks(), other_masks(), own_masks(), of_rooms, class_masks(),
                           inspection_masks(), refused_masks(), sparse_masks())
    tracing$assigning <- grep("<-$", names(tracing$functions), value = TRUE) # as `[<-`
  }
  tracing$functions
}
