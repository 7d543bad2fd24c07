# cl_stan(): Stan programs as log densities.

#' Stan programs
#'
#' Reads a Stan program. Calling the result with data gives the log density of its model, with
#' gradient, for [cl_sample()] and everything else that takes a log density. No C++ compiler is
#' needed: the program is recorded as a plain R function is by [cl_gradient()], and runs on the
#' engine in use.
#'
#' `model <- cl_stan("model.stan")` reads and checks a program; an error names the line. `b <-
#' model(data)` binds data, checks them against the declarations, and computes transformed data.
#' `cl_sample(b)` samples, and so does `cl_sample(model, data = data)` at once; [cl_optimise()],
#' [cl_laplace()], [cl_pathfinder()] and [cl_vi()] take both, too. Starts are uniform
#' between -2 and 2 on the unconstrained scale unless `init` names parameters. Draws have Stan's
#' names, such as `theta[1,2]`, and include transformed parameters and generated quantities, which R
#' computes for each draw; [cl_generate()] computes those of another program.
#'
#' A bound model is called with all parameters by name, or with a list of them, on their own scale:
#' `b(mu = 1, tau = 2)` is the log density without the Jacobian determinants of constraints, with
#' the attribute `"gradient"`. Statements `y ~ f(...)` count with their constants; `drop = TRUE`
#' leaves out those that Stan leaves out where the distribution's parameters are data. Where the
#' program rejects the parameters, by `reject()` or because a value violates its constraint, the log
#' density is `-Inf` (or NaN), and its attribute `"rejected"` says why, with the line. Further
#' elements are
#' - `b$unconstrained(u, jacobian = TRUE)`: the same for the unconstrained vector, as samplers use
#'   it;
#' - `b$constrain(u)`: the list of parameters; `b$free(parameters)`: the vector back;
#' - `b$dimension`: its length; `b$data`: the data.
#'
#' @section The language:
#' Blocks, types, constraints, indices on both sides of assignments, loops and branches, functions
#' with overloads and recursion, `~`, `target +=`, truncation, `print`, `reject` and `fatal_error`.
#' Conditions that depend on parameters are evaluated by computing both branches and choosing; where
#' that is impossible (loops that end by such a condition), the program is recorded again in each
#' evaluation, which a message says once. What `print()` in the model shows appears when the density
#' is called, not while it is sampled or optimised, as a message says. Parts of a loop whose
#' iterations do not depend on each other are computed for all of them at once.
#'
#' Differential equations are solved by [cl_ode()], in `ode_bdf`, `integrate_ode_bdf` and their
#' relatives by its method for stiff ones, with the tolerances of the program or smaller ones. The
#' number of steps from one time to the next is limited to 100 (stiff ones: 200; up to 2,000 where
#' few times are asked for), or less if the program says so: where that does not suffice, ask for
#' times in between. `dae` solves differential-algebraic equations of index 1, with tolerances of
#' 1e-8 where smaller ones are asked for. There, and where a solver of equations finds no root, or
#' `integrate_1d()` or an equation no value within its tolerance, the density is NaN and a generated
#' quantity an error.
#'
#' Tuples and complex numbers may be data, parameters and everything else. In `data`, a tuple is a
#' list of its parts, and complex numbers are R's, or pairs along a last dimension. Draws have the
#' names `t.1` and `t.2[1]` for the parts of a tuple `t`; those of a complex number end in `.real`
#' and `.imag`. `dot_product()` conjugates its first argument, as in Stan; `*` does not.
#'
#' For data and generated quantities only there are eigenvalues of matrices that are not symmetric,
#' factors of complex matrices, `csr_extract`, `inv_inc_beta`, hypergeometric functions of more than
#' two arguments, and the Bessel functions `bessel_first_kind`, `bessel_second_kind` and
#' `modified_bessel_first_kind`.
#' @param file The name of a file with a Stan program.
#' @param code The program as text, instead of a file.
#' @param include Folders in which `#include` looks for files.
#' @param x,object A model or a bound model.
#' @param ... For `update()`: new data by name, which replace those of the same name. Otherwise not
#'   used.
#' @return A function of class `"cl_stan"`: `model(data)`, where `data` is a named list, an
#'   environment, or the name of a file of JSON or of R's [dump()] format. Arrays of numbers are
#'   vectors or arrays; arrays of vectors and matrices are arrays whose first dimensions are those
#'   of the array, as for rstan. Its value has class `"cl_stan_density"`.
#' @section Errors:
#' `statcl_error_stan`, with field `line`, for programs that cannot be read, for data that do not
#' fit their declarations (field `variable`), and for errors in evaluations. The warning
#' `statcl_warning_stan` says how many draws the program rejects after sampling, by `reject()`, a
#' violated constraint or an error such as an index out of bounds: their transformed parameters and
#' generated quantities are NaN.
#' @seealso [cl_sample()], [cl_gradient()]
#' @export
#' @examples
#' model <- cl_stan(code = "
#'   data {
#'     int<lower=0> J;
#'     vector[J] y;
#'     vector<lower=0>[J] sigma;
#'   }
#'   parameters {
#'     real mu;
#'     real<lower=0> tau;
#'     vector[J] z;
#'   }
#'   transformed parameters {
#'     vector[J] theta = mu + tau * z;
#'   }
#'   model {
#'     mu ~ normal(0, 5);
#'     tau ~ cauchy(0, 5);
#'     z ~ std_normal();
#'     y ~ normal(theta, sigma);
#'   }")
#' model
#' b <- model(list(J = 8, y = c(28, 8, -3, 7, -1, 1, 18, 12),
#'                 sigma = c(15, 10, 16, 11, 9, 11, 10, 18)))
#' b(mu = 1, tau = 2, z = numeric(8))
#' fit <- cl_sample(b, chains = 2, warmup = 200, iter = 200, seed = 1)
#' summary(fit, parameters = c("mu", "tau", "theta"))
cl_stan <- function(file = NULL, code = NULL, include = NULL) {
  if (is.null(file) == is.null(code)) abort_argument("file", "give 'file' or 'code'")
  if (!is.null(file)) {
    if (!is.character(file) || length(file) != 1L || is.na(file)) {
      abort_argument("file", "'file' must be the name of a file")
    }
    if (grepl("[{\n]", file)) {
      abort_argument("file", "'file' is the text of a program, not a name: give it as 'code'")
    }
    if (!file.exists(file)) abort_argument("file", sprintf("there is no file '%s'", file))
    code <- paste(readLines(file, warn = FALSE), collapse = "\n")
    if (is.null(include)) include <- dirname(file)
  }
  if (!is.character(code) || anyNA(code)) abort_argument("code", "'code' must be text")
  code <- paste(code, collapse = "\n")
  source <- list(code, if (is.null(file)) "code" else file, as.character(include))
  stan_model(do.call(read_stan, source), source)
}

read_stan <- function(code, file, include) .Call(r_stan_read, code, file, include)

# The value of `code`, which recurses as deeply as the program's expressions are nested.
stan_on_stack <- function(code) {
  full <- c("evaluation nested too deeply: infinite recursion / options(expressions=)?",
            "node stack overflow")
  base::tryCatch(code, error = function(e) {
    if (!inherits(e, "stackOverflowError") && !is_message(e, full)) stop(e)
    statcl_abort("stan", paste("the program is nested too deeply for the stack of R: give parts of",
                               "long expressions a name of their own"),
                 line = NA_integer_, column = NA_integer_, text = "", file = "")
  })
}

# The model of a checked program.
stan_model <- function(program, source) {
  known <- new.env(parent = environment(stan_model))
  known$program <- program
  known$source <- source
  known$lines <- strsplit(source[[1L]], "\n", fixed = TRUE)[[1L]]
  known$code <- stan_on_stack(stan_pointed(stan_code(program), source))
  printing <- stan_print_lines(program)
  known$prints <- length(printing) > 0L
  stan_say_silent(printing)
  model <- function(data = list()) new_stan_density(bind_stan(parent.env(environment()), data))
  environment(model) <- known
  structure(model, class = c("cl_stan", "function"))
}

# ---- bound models --------------------------------------------------------------------------------

new_stan_density <- function(state) {
  state$density <- NULL
  state$unconstrained <- function(u, jacobian = TRUE, drop = FALSE) {
    if (!is.numeric(u) || length(u) != state$dimension) {
      abort_argument("u", sprintf("'u' must be a vector of length %d", as.integer(state$dimension)))
    }
    u <- as.double(u)
    density <- stan_vector_density(state, jacobian, drop)
    # A compiled program runs no statement of the model, so no error of it has a line.
    value <- run_plain(environment(density), list(.u = u))
    if (is.null(value)) value <- stan_caught(density(u), state$model)
    attr(value, "gradient") <- unlist(attr(value, "gradient"), use.names = FALSE)
    stan_judged(state, function() stan_plain_parameters(state)(u), value)
  }
  state$constrain <- function(u) {
    stan_check_vector(u, state)
    stan_caught(stan_plain_parameters(state)(as.double(u)), state$model)
  }
  state$free <- function(parameters) stan_unconstrained_start(state, parameters)
  b <- function(..., drop = FALSE) stan_value(state, list(...), drop)
  environment(b) <- list2env(list(state = state, stan_value = stan_value), parent = topenv())
  structure(b, class = c("cl_stan_density", "function"))
}

stan_check_vector <- function(u, state) {
  if (!is.numeric(u) || length(u) != state$dimension) {
    abort_argument("u", sprintf("'u' must be a vector of length %d", as.integer(state$dimension)))
  }
}

#' @export
`$.cl_stan_density` <- function(x, name) environment(x)$state[[name]]

# The compiled density of the unconstrained vector, one for each choice.
stan_vector_density <- function(state, jacobian = TRUE, drop = FALSE) {
  key <- paste0("vector", jacobian, drop)
  if (is.null(state[[key]])) {
    if (state$dimension == 0) stan_abort("the program has no parameters", NA)
    f <- stan_vector_function(state, stan_code_of(state$model, drop), jacobian)
    state[[key]] <- stan_compiled(f, list(.u = rep(0.1, state$dimension)), state$model)
  }
  state[[key]]
}

stan_code_of <- function(model, drop) if (drop) stan_code(model$program, TRUE) else model$code

stan_value <- function(state, given, drop) {
  names <- vapply(state$parameters, `[[`, "", "name")
  roots <- vapply(state$parameters, function(p) c(p$d$root, p$name)[1L], "")
  if (length(given) == 1L && is.list(given[[1L]]) && !any(base::names(given) %in% roots)) {
    given <- given[[1L]]
  }
  named <- base::names(given)
  if (length(given) > 0L && (is.null(named) || !all(nzchar(named)))) {
    abort_argument("...", sprintf("parameters are given by name, such as %s = 0", names[1L]))
  }
  given <- stan_given(state, given)
  missing <- setdiff(names, base::names(given))
  if (length(missing) > 0L) {
    abort_argument(missing[1L], sprintf("the parameter '%s' is missing", missing[1L]))
  }
  refuse_other_parameters(state, setdiff(base::names(given), names))
  if (length(names) == 0L) stan_abort("the program has no parameters", NA)
  point <- lapply(state$parameters, function(p) stan_shaped(given[[p$name]], p))
  names(point) <- names
  wrong <- stan_outside_constraint(state, point)
  if (!is.null(wrong)) {
    return(structure(-Inf, gradient = lapply(point, `*`, 0), rejected = wrong))
  }
  key <- paste0("named", drop)
  if (is.null(state[[key]])) {
    f <- stan_named_function(state, stan_code_of(state$model, drop))
    state[[key]] <- stan_compiled(f, point, state$model)
  }
  value <- stan_caught(do.call(state[[key]], point), state$model)
  stan_judged(state, function() point, value)
}

refuse_other_parameters <- function(state, other, argument = other[1L]) {
  if (length(other) == 0L) return(invisible())
  names <- vapply(state$parameters, `[[`, "", "name")
  abort_argument(argument, sprintf("the model has no parameter '%s': its parameters are %s",
                                   other[1L], paste(names, collapse = ", ")))
}

# A parameter's value in its shape.
stan_shaped <- function(x, p) {
  n <- prod(p$size)
  if (!is.numeric(x) || length(x) != n) {
    abort_argument(p$name, sprintf("'%s' must have %s, not %s", p$name,
                                   count_of(n, "element"), describe(x)))
  }
  x <- as.double(x)
  if (length(p$size) > 1L) dim(x) <- p$size
  x
}

# The unconstrained vector of a list of parameters; those that it has not are at zero there.
stan_unconstrained_start <- function(state, parameters, argument = "init") {
  if (is.numeric(parameters) && length(parameters) == state$dimension) {
    return(as.double(parameters))
  }
  if (!is.list(parameters)) {
    abort_argument(argument, paste("'init' must be a named list of parameters, or a vector on the",
                                 "unconstrained scale"))
  }
  parameters <- stan_given(state, parameters)
  program <- state$model$program
  known <- vapply(c(stan_declared(program$parameters), stan_outputs(program)), `[[`, "", "name")
  known <- c(known, vapply(state$parameters, `[[`, "", "name"))
  refuse_other_parameters(state, setdiff(names(parameters), known), argument)
  u <- numeric(state$dimension)
  frame <- new.env(parent = state$plain)
  for (p in state$parameters) {
    bounds <- stan_bounds(p$d, state$model$code$cx, frame)
    x <- parameters[[p$name]]
    if (!is.null(x)) {
      x <- stan_shaped(x, p)
      free <- suppressWarnings(do.call(stan_free, c(list(x, p$spec), bounds)))
      if (length(free) != length(p$index) || !all(is.finite(free))) {
        abort_argument(argument, sprintf("'%s' has a value of '%s' outside of its constraint",
                                         argument, p$name))
      }
      u[p$index] <- free
    }
    assign(p$name, do.call(st_constrain, c(list(u[p$index], p$spec), bounds))[[1L]], envir = frame)
    eval(p$whole, frame)
  }
  u
}

stan_plain_parameters <- function(state) {
  if (is.null(state$inside)) state$inside <- stan_output_function(state, FALSE)
  state$inside
}

# ---- methods -------------------------------------------------------------------------------------

# A declaration as in the program: array[2] vector[3] x.
stan_declaration_text <- function(d, size = NULL) {
  text <- function(s) paste(deparse(stan_expr(s, list(traced = FALSE))), collapse = "")
  sizes <- if (is.null(size)) vapply(d$sizes, text, "") else format(size, trim = TRUE)
  base <- d$type$base
  if (base == "tuple") {
    parts <- vapply(d$parts, function(p) trimws(stan_declaration_text(c(p, name = ""))), "")
    base <- sprintf("tuple(%s)", paste(parts, collapse = ", "))
  }
  if (!is.null(d$constraint) && !d$constraint$kind %in% c("none", "range", "offset")) {
    base <- paste0(d$constraint$kind, if (grepl("stochastic", d$constraint$kind)) "_matrix",
                   if (d$constraint$kind == "sum_to_zero") paste0("_", base))
  }
  bracket <- function(sizes) {
    if (length(sizes) == 0L) "" else sprintf("[%s]", paste(sizes, collapse = ", "))
  }
  outer <- utils::head(sizes, d$type$depth)
  inner <- utils::tail(sizes, length(sizes) - d$type$depth)
  if (grepl("^(corr|cov|cholesky)", base) && length(unique(inner)) == 1L) inner <- inner[1L]
  paste0(if (length(outer) > 0L) paste0("array", bracket(outer), " "), base, bracket(inner), " ",
         d$name)
}

#' @rdname cl_stan
#' @export
print.cl_stan <- function(x, ...) {
  program <- environment(x)$program
  show <- function(title, statements) {
    text <- vapply(stan_declared(statements), stan_declaration_text, "")
    if (length(text) > 0L) writeLines(strwrap(paste0(title, ": ", paste(text, collapse = "; ")),
                                              exdent = 2L))
  }
  cat("<cl_stan> Stan program\n")
  show("data", program$data)
  show("parameters", program$parameters)
  show("transformed parameters", program$transformed_parameters)
  show("generated quantities", program$generated_quantities)
  invisible(x)
}

#' @rdname cl_stan
#' @export
print.cl_stan_density <- function(x, ...) {
  state <- environment(x)$state
  cat(sprintf("<cl_stan_density> log density of a Stan program, %s on the unconstrained scale\n",
              count_of(state$dimension, "number")))
  text <- vapply(state$parameters, function(p) stan_declaration_text(p$d, p$size), "")
  if (length(text) > 0L) writeLines(strwrap(paste0("parameters: ", paste(text, collapse = "; ")),
                                            exdent = 2L))
  invisible(x)
}

#' @rdname cl_stan
#' @export
update.cl_stan_density <- function(object, ...) {
  state <- environment(object)$state
  known <- vapply(stan_declared(state$model$program$data), `[[`, "", "name")
  other <- setdiff(names(list(...)), known)
  if (length(other) > 0L) {
    abort_argument(other[1L], sprintf("the program has no data '%s': its data are %s", other[1L],
                                      paste(known, collapse = ", ")))
  }
  new_stan_density(bind_stan(state$model, utils::modifyList(state$data, list(...))))
}
