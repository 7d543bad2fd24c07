# Model frames of formulas: no argument is evaluated twice, and errors of stats::model.frame() have
# a class of this package.

# Evaluates `call`, a call of stats::model.frame() made by match.call(), where the user called.
# `data` has been evaluated; further evaluated arguments replace their expressions.
eval_frame <- function(call, data, where, ...) {
  home <- new.env(parent = where)
  home$`data given` <- data
  if (!is.null(call$data)) call$data <- as.name("data given")
  done <- Filter(Negate(is.null), list(...))
  for (name in names(done)) call[[name]] <- done[[name]]
  call[[1L]] <- quote(stats::model.frame)
  classed(eval(call, home), "formula")
}

# The value of `code`. Errors of other packages become errors of this package that name the
# argument, with the original in `parent`, except for a time limit.
classed <- function(code, argument, call = user_call()) {
  tryCatch(code, error = function(e) {
    if (inherits(e, "statcl_error") || is_time_limit(e)) stop(e)
    statcl_abort("argument", paste0("'", argument, "': ", conditionMessage(e)),
                 argument = argument, parent = e, call = call)
  })
}

is_time_limit <- function(e) {
  limits <- c("reached elapsed time limit", "reached CPU time limit",
              "reached session elapsed time limit", "reached session CPU time limit")
  conditionMessage(e) %in% c(limits, gettext(limits, domain = "R"))
}
