# A Stan program with its data: the functions that are made of its code.

# The code of a checked program in both forms. Functions, blocks and densities that are not
# available are refused here, when the program is read.
stan_code <- function(program, drop = FALSE) {
  definitions <- stan_definitions(program$functions)
  ids <- new.env(parent = emptyenv())
  ids$last <- 0L
  ids$lane_functions <- list(plain = list(), traced = list())
  sizes <- stan_known_sizes(program)
  plain <- list(traced = FALSE, functions = definitions, ids = ids, sizes = sizes)
  traced <- list(traced = TRUE, functions = definitions, ids = ids, drop = drop, sizes = sizes)
  functions <- function(cx, keep) {
    keep <- keep & !vapply(definitions, function(f) is.null(f$body), NA)
    code <- lapply(definitions[keep], stan_function_code, cx)
    stats::setNames(code, vapply(definitions[keep], `[[`, "", "symbol"))
  }
  checked <- function(block, cx) {
    c(stan_statements(block, cx), stan_constraint_checks(block, cx))
  }
  kind <- sub("^.*_", "", vapply(definitions, `[[`, "", "name"))
  moves <- kind %in% c("lp", "jacobian")
  code <- list(
       cx = plain, traced_cx = traced,
       plain_functions = functions(plain, rep(TRUE, length(definitions))),
       traced_functions = functions(traced, !moves & kind != "rng"),
       inner_functions = functions(traced, moves), # those that change the target
       transformed_data = stan_statements(program$transformed_data, plain),
       transformed = checked(program$transformed_parameters, traced),
       model = stan_statements(program$model, traced),
       plain_transformed = checked(program$transformed_parameters, plain),
       outputs = checked(program$generated_quantities, plain))
  code$plain_functions <- c(code$plain_functions, ids$lane_functions$plain)
  code$traced_functions <- c(code$traced_functions, ids$lane_functions$traced)
  code
}

# The sizes of the vectors and arrays of one dimension whose declarations by this name agree.
stan_known_sizes <- function(program) {
  found <- list()
  walk <- function(x) {
    if (!is.list(x)) return()
    if (identical(x$kind, "decl")) {
      old <- found[[x$name]]
      size <- if (length(x$sizes) == 1L && stan_rank(x$type) == 1L) x$sizes[[1L]] else NA
      same <- is.null(old) || is.list(old) && is.list(size) &&
        identical(stan_expr(old, list(traced = FALSE)), stan_expr(size, list(traced = FALSE)))
      found[[x$name]] <<- if (same) size else NA
    }
    if (is.null(x$kind) || x$kind %in% stan_holders) lapply(x, walk)
  }
  walk(unname(program))
  Filter(is.list, found)
}

# Kinds of nodes that contain statements.
stan_holders <- c("block", "profile", "for", "foreach", "while", "if", "else_if", "function")

stan_declared <- function(statements) Filter(function(s) s$kind == "decl", statements)

# ---- binding -------------------------------------------------------------------------------------

# The state of a bound model: an environment.
bind_stan <- function(model, data) {
  program <- model$program
  code <- model$code
  home <- new.env(parent = stan_library())
  state <- new.env(parent = emptyenv())
  state$model <- model
  state$home <- home
  state$data <- stan_data_list(data)
  state$plain <- stan_functions_in(code$plain_functions, home)
  state$traced <- stan_functions_in(code$traced_functions, home)
  list2env(as.list(state$plain), envir = home) # sizes and bounds call functions, too
  bind_stan_data(program$data, state$data, home, code$cx)
  if (length(code$transformed_data) > 0L) {
    run <- as.function(list(stan_watched(stan_braces(c(code$transformed_data, list(stan_values_of(
      stan_declared(program$transformed_data))))))), envir = state$plain)
    list2env(stan_caught(run(), model), envir = home)
    stan_check_transformed(program$transformed_data, home, code$cx)
  }
  state$parameters <- stan_layout(stan_declared(program$parameters), home, code$cx)
  state$dimension <- sum(vapply(state$parameters, function(p) length(p$index), 0L))
  state
}

stan_functions_in <- function(functions, home) {
  place <- new.env(parent = home)
  for (name in names(functions)) assign(name, eval(functions[[name]], place), envir = place)
  place
}

stan_values_of <- function(declarations) {
  names <- vapply(declarations, `[[`, "", "name")
  as.call(c(list(as.name("list")), stats::setNames(lapply(names, as.name), names)))
}

stan_check_transformed <- function(statements, home, cx) {
  for (d in stan_leaves(stan_declared(statements), cx, home)) {
    if (is.null(d$constraint)) next
    wrong <- stan_violation(stan_leaf(home[[d$root]], d$path), stan_spec(d, stan_size(d, cx, home)),
                            stan_bounds(d, cx, home))
    if (!is.null(wrong)) {
      stan_abort(sprintf("transformed data '%s' %s", d$name, wrong), d$line, variable = d$name)
    }
  }
}

# For each parameter its shape and where its unconstrained numbers are.
stan_layout <- function(declarations, home, cx) {
  last <- 0
  leaves <- stan_leaves(declarations, cx, home)
  roots <- stats::setNames(declarations, vapply(declarations, `[[`, "", "name"))
  ends <- !duplicated(vapply(leaves, `[[`, "", "root"), fromLast = TRUE)
  Map(function(d, end) {
    size <- vapply(d$sizes, function(s) {
      stan_eval(call("stan_sizes", stan_expr(s, cx)), home, d)
    }, 0)
    spec <- stan_spec(d, size)
    n <- prod(spec$outer) * spec$free
    index <- last + seq_len(n)
    last <<- last + n
    list(name = d$name, size = size, spec = spec, index = index, d = d,
         whole = if (end && !is.null(d$path)) {
           call("<-", as.name(d$root), stan_whole(roots[[d$root]], cx, home))
         })
  }, leaves, ends)
}

# ---- functions of the unconstrained vector and of the parameters ---------------------------------

# The statements that make parameters from the vector .u.
stan_parameter_code <- function(parameters, cx) {
  do.call(c, lapply(parameters, function(p) {
    n <- length(p$index)
    part <- if (n == 0L) quote(numeric()) else if (n == 1L) call("[[", quote(.u), p$index) else
      call("[", quote(.u), call(":", p$index[1L], p$index[n]))
    list(call("<-", quote(.line), as.double(p$d$line)),
         call("<-", quote(.part), as.call(c(list(as.name("st_constrain"), part, p$spec),
                                            stan_bound_codes(p$d, cx)))),
         call("<-", as.name(p$name), quote(.part[[1L]])),
         quote(.jacobian <- .jacobian + .part[[2L]]), p$whole)
  }))
}

# Definitions of the functions that change the target; `as`: in which form.
stan_inner_functions <- function(code, as = code$inner_functions) {
  lapply(names(code$inner_functions), function(name) call("<-", as.name(name), as[[name]]))
}

stan_density_body <- function(code, first, result) {
  body <- stan_braces(c(list(quote(.target <- 0), quote(.jacobian <- 0)),
                        stan_inner_functions(code), first, code$transformed, code$model,
                        list(result)))
  call("tryCatch", stan_watched(body), cl_stan_reject = quote(function(e) -Inf))
}

# The log density as a function of the unconstrained vector, or of the parameters, to be traced.
stan_vector_function <- function(state, code, jacobian = TRUE) {
  total <- if (jacobian) quote(.target + .jacobian) else quote(.target)
  body <- stan_density_body(code, stan_parameter_code(state$parameters, code$traced_cx),
                            call("st_bounded", total))
  as.function(c(alist(.u = ), body), envir = state$traced)
}

# Where the density is unbounded, points are rejected, as starts are in Stan. As a term, it leaves
# the gradient without a factor that is known only when all rows have been read.
st_bounded <- function(value) value + cl_ifelse(value < Inf, 0, NaN)

stan_named_function <- function(state, code) {
  names <- vapply(state$parameters, `[[`, "", "name")
  whole <- Filter(Negate(is.null), lapply(state$parameters, `[[`, "whole"))
  as.function(c(stan_formals(names), stan_density_body(code, whole, quote(.target))),
              envir = state$traced)
}

# The parameters of the vector .u, with transformed parameters and generated quantities.
stan_output_function <- function(state, all = TRUE) {
  code <- state$model$code
  declared <- lapply(state$parameters, `[[`, "d")
  if (all) declared <- c(declared, stan_outputs(state$model$program))
  body <- stan_braces(c(list(quote(.target <- 0), quote(.jacobian <- 0)),
                        stan_parameter_code(state$parameters, code$cx),
                        if (all) c(code$plain_transformed, code$outputs),
                        list(stan_values_of(declared))))
  as.function(c(alist(.u = ), stan_watched(body)), envir = state$plain)
}

stan_outputs <- function(program) {
  c(stan_declared(program$transformed_parameters), stan_declared(program$generated_quantities))
}

# A compiled function of this package, for `f`; if that makes a decision that depends on parameters,
# it is recorded again in each evaluation.
stan_compiled <- function(f, point, model) {
  g <- cl_gradient(f)
  needs_values <- FALSE
  tryCatch(stan_quietly(do.call(g, point)), statcl_error_argument = function(e) {
    if (!grepl("retrace", conditionMessage(e), fixed = TRUE)) {
      stan_caught(stan_quietly(do.call(g, point)), model)
    }
    needs_values <<- TRUE
  }, error = function(e) stan_caught(stan_quietly(do.call(g, point)), model))
  if (!needs_values) return(g)
  stan_say_retraced()
  body(f) <- call("stan_rejecting", body(f))
  g <- cl_gradient(f, retrace = TRUE)
  environment(g)$warned <- names(point) # a program may use parameters under a condition
  g
}

# Records without messages. Copies of functions would be compiled by R again and again.
stan_quietly <- function(code) {
  if (requireNamespace("compiler", quietly = TRUE)) {
    level <- compiler::enableJIT(0L)
    on.exit(compiler::enableJIT(level))
  }
  withCallingHandlers(code, statcl_message = function(m) invokeRestart("muffleMessage"),
                      statcl_warning_unused = function(w) invokeRestart("muffleWarning"))
}

# Which statements run depends on the parameters, and so whether one fails: that rejects, as in
# Stan.
stan_rejecting <- function(code) {
  ours <- c("statcl_error", "cl_trace_stop", "cl_stan_fatal")
  tryCatch(code, error = function(e) if (inherits(e, ours)) stop(e) else -Inf)
}

stan_say_retraced <- function() {
  if (!is.null(stan_known$said)) return(invisible())
  stan_known$said <- TRUE
  stan_tell(paste("a condition of the program depends on parameters: the program is recorded in",
                  "each evaluation, which is slow (this message appears once per session)"))
}

stan_tell <- function(text) {
  message(structure(list(message = paste0(text, "\n"), call = NULL),
                    class = c("statcl_message_stan", "statcl_message", "message", "condition")))
}

# ---- errors --------------------------------------------------------------------------------------

# The value of `code`, which runs code of the program; an error names the line that it was in.
stan_caught <- function(code, model) {
  stan_known$line <- NA
  withCallingHandlers(stan_pointed(code, model$source), error = function(e) {
    line <- stan_known$line
    if (inherits(e, "statcl_error_stan") || is_foreign(e) || is.na(line)) return()
    message <- stan_message(conditionMessage(e), conditionCall(e))
    text <- if (line <= length(model$lines)) trimws(model$lines[line])
    stan_abort(paste0(message, if (!is.null(text)) sprintf("\n  %s", text)), line, text = text,
               parent = e)
  })
}

# The body of a function that notes the line of an error.
stan_watched <- function(body) {
  call("withCallingHandlers", body, error = quote(function(e) stan_note_line()))
}

stan_note_line <- function() {
  for (k in rev(seq_len(sys.nframe()))) {
    found <- get0(".line", envir = sys.frame(k), inherits = FALSE)
    if (is.numeric(found)) {
      stan_known$line <- found
      return(invisible())
    }
  }
}

# R's messages of subscripts in words of Stan.
stan_message <- function(message, call) {
  if (grepl("subscript", message) && is.call(call)) {
    while (is.call(call) && length(call) > 1L) call <- call[[2L]]
    return(if (is.name(call)) sprintf("an index of '%s' is out of bounds", as.character(call)) else
      "an index is out of bounds")
  }
  sub("^'f' cannot be traced( at '[^']*')?: ", "", message)
}
