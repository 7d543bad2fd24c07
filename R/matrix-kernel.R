# Kernels written by users in OpenCL C.

#' Run your own OpenCL C
#'
#' For experts. `cl_kernel()` compiles OpenCL C *that you wrote* for the device in use and returns a
#' function that runs it. It is the only function of the package that makes user-supplied text part
#' of a program. **Your code runs unchecked**: a kernel that accesses memory outside its matrices,
#' or never ends, can crash the session or the device, so run only code that you trust. [cl_map()]
#' and [cl_reduce()] make kernels from R functions and have none of these risks.
#'
#' A matrix becomes two parameters of the kernel: `__global const double *x, int x_ld` (without
#' `const` if it is written to). The element in row `i` and column `j`, counted from 0, is `x[i +
#' j * (long)x_ld]`. `"int"` and `"double"` arguments become `int` and `double`. Matrices are
#' immutable in R: a matrix that the kernel writes is new, and the call gives its dimensions.
#'
#' @param source OpenCL C 1.2, a string; several strings are joined by newlines. Double precision is
#'   enabled.
#' @param name The name of the kernel in it.
#' @param arguments The kernel's arguments in order: a named character vector of `"in"` (a matrix
#'   that is read), `"out"` (a matrix that is written), `"int"`, `"double"`.
#' @return A function of these arguments and of `global` and `local`, the sizes of the index space
#'   and of a work-group (up to three numbers each; with `local = NULL` the driver chooses; `global`
#'   is rounded up to multiples of `local`). An `"in"` argument is a [clMatrix]; an `"out"` argument
#'   is two numbers, rows and columns. The function returns the `clMatrix` written, or a named list
#'   if there are several. Elements that the kernel does not write are undefined.
#' @section Errors:
#' `statcl_error_no_device` on the host engine; `statcl_error_build`, with the compiler's log in the
#' field `log`; `statcl_error_argument` for arguments that do not match; `statcl_error_opencl` if
#' the driver rejects the launch.
#' @export
#' @examples
#' source <- "
#' __kernel void axpy(double a, __global const double *x, int x_ld, __global const double *y,
#'                    int y_ld, __global double *out, int out_ld, int rows, int columns) {
#'   const int i = get_global_id(0), j = get_global_id(1);
#'   if (i >= rows || j >= columns) return;
#'   out[i + j * (long)out_ld] = a * x[i + j * (long)x_ld] + y[i + j * (long)y_ld];
#' }"
#' if (cl_available()) {
#'   axpy <- cl_kernel(source, "axpy", c(a = "double", x = "in", y = "in", out = "out",
#'                                       rows = "int", columns = "int"))
#'   x <- as_cl(matrix(1:6, 2))
#'   axpy(2, x, x, out = c(2, 3), rows = 2, columns = 3, global = c(2, 3))
#' }
cl_kernel <- function(source, name, arguments) {
  if (!is.character(source) || length(source) == 0L || anyNA(source)) {
    abort_argument("source", "'source' must be a string of OpenCL C")
  }
  if (!is.character(name) || length(name) != 1L || !grepl("^[A-Za-z_][A-Za-z0-9_]*$", name)) {
    abort_argument("name", "'name' must be the name of a kernel in 'source'")
  }
  check_kernel_arguments(arguments)
  where <- where_resident()
  if (where < 0L) {
    statcl_abort("no_device", paste("cl_kernel() needs an OpenCL device:", no_device_reason()))
  }
  kernel <- .Call(r_kernel_new, paste(source, collapse = "\n"), name, where)
  run <- function(..., global, local = NULL) run_kernel(kernel, arguments, list(...), global, local)
  structure(run, class = c("cl_user_kernel", "function"), name = name, arguments = arguments)
}

check_kernel_arguments <- function(arguments) {
  known <- is.character(arguments) && !anyNA(arguments) &&
    all(arguments %in% c("in", "out", "int", "double"))
  if (!known || is.null(names(arguments)) || anyDuplicated(names(arguments)) ||
      !all(nzchar(names(arguments))) || any(names(arguments) %in% c("global", "local"))) {
    abort_argument("arguments", paste("'arguments' must be a vector of \"in\", \"out\", \"int\" or",
                                      "\"double\", named by argument of the kernel"))
  }
  if (!"out" %in% arguments) abort_argument("arguments",
    "the kernel must have at least one \"out\" argument")
}

run_kernel <- function(kernel, arguments, given, global, local) {
  given <- match_arguments(given, names(arguments))
  values <- lapply(names(arguments), function(name) {
    kernel_argument(given[[name]], arguments[[name]], name)
  })
  local <- if (!is.null(local)) check_sizes(local, "local")
  global <- check_sizes(global, "global")
  if (!is.null(local)) {
    if (length(local) != length(global)) {
      abort_argument("local", "'local' must have the same length as 'global'")
    }
    global <- ceiling(global / local) * local
  }
  outputs <- lapply(.Call(r_kernel_run, kernel, values, global, local), value)
  names(outputs) <- names(arguments)[arguments == "out"]
  if (length(outputs) == 1L) outputs[[1L]] else outputs
}

# An argument as passed to C: an integer, a number, a handle, or two integers for a new matrix.
kernel_argument <- function(x, type, name) {
  if (type == "int") return(as.integer(check_count(x, name, -.Machine$integer.max)))
  if (type == "double") {
    if (!is_constant(x)) abort_argument(name, sprintf("'%s' must be one number", name))
    return(as.double(x))
  }
  if (type == "in") {
    if (!is_cl(x)) {
      abort_argument(name, sprintf("'%s' must be a clMatrix, not %s", name, describe(x)))
    }
    return(x@handle)
  }
  if (!is.numeric(x) || is_cl(x) || length(x) != 2L) {
    abort_argument(name, sprintf("'%s' must be two numbers, of rows and of columns", name))
  }
  as.integer(c(check_count(x[1L], name, 1), check_count(x[2L], name, 1)))
}

# Matches arguments by name, then by position.
match_arguments <- function(given, wanted) {
  names <- names(given)
  if (is.null(names)) names <- rep_len("", length(given))
  names[!nzchar(names)] <- setdiff(wanted, names)[seq_len(sum(!nzchar(names)))]
  names(given) <- names
  wrong <- c(setdiff(names, wanted), names[duplicated(names)], setdiff(wanted, names))
  if (length(wrong) > 0L) {
    abort_argument(if (is.na(wrong[1L])) "..." else wrong[1L],
                   sprintf("the arguments of the kernel are %s", paste(wanted, collapse = ", ")))
  }
  given
}

check_sizes <- function(x, argument) {
  if (!is.numeric(x) || !length(x) %in% 1:3 || !all(is.finite(x)) || any(x < 1 | x != round(x))) {
    abort_argument(argument, sprintf("'%s' must be one to three whole numbers", argument))
  }
  as.double(x)
}

#' @export
print.cl_user_kernel <- function(x, ...) {
  cat(sprintf("<OpenCL kernel '%s' (user code): %s; global, local>\n", attr(x, "name"),
              paste(names(attr(x, "arguments")), attr(x, "arguments"), sep = ": ",
                    collapse = ", ")))
  invisible(x)
}
