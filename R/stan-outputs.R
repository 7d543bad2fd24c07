# The part of a Stan program's transformed parameters and generated quantities that draws no random
# numbers. It comes first, so that it can be compiled and computed for many draws together
# (R/stan-together.R).

# list(known, drawn, declared): the statements of both parts, those of the second as a list for
# transformed parameters and one for generated quantities, and the declarations of the first that
# the second part or a draw needs. `open`: whether statements of blocks { } are taken one by one. A
# statement is in the second part if it draws numbers or has another effect, if it reads what such a
# statement wrote, or writes what one used; and if it is one of the generated quantities that decide
# by values: those are not compiled.
stan_output_parts <- function(program, open = TRUE) {
  outputs <- vapply(stan_outputs(program), `[[`, "", "name")
  statements <- c(program$transformed_parameters, program$generated_quantities)
  generated <- rep(c(FALSE, TRUE), lengths(program[c("transformed_parameters",
                                                     "generated_quantities")]))
  if (open) {
    opened <- stan_opened(statements)
    generated <- rep(generated, lengths(opened))
    statements <- do.call(c, c(list(list()), opened))
  }
  names <- c(outputs, vapply(stan_declared(statements), `[[`, "", "name"))
  acts <- vapply(statements, stan_acts, NA, stan_calling(program$functions, stan_acts))
  inside <- list(program$transformed_parameters, program$model) # these decide as recorded
  own <- Filter(function(f) !stan_any(inside, function(x) identical(x$name, f$name)),
                program$functions)
  deciding <- stan_calling(own, stan_decides)
  acts <- acts | generated & vapply(statements, stan_decides, NA, deciding)
  reads <- lapply(statements, stan_named, names)
  writes <- lapply(statements, function(s) intersect(stan_written(s), names))
  repeat {
    wrote <- unique(unlist(writes[acts]))
    used <- character()
    for (k in seq_along(statements)) {
      acts[k] <- acts[k] || any(reads[[k]] %in% intersect(used, wrote)) ||
        any(writes[[k]] %in% c(used, wrote))
      if (acts[k]) used <- c(used, reads[[k]], writes[[k]])
    }
    if (setequal(wrote, unlist(writes[acts]))) break
  }
  needed <- c(outputs, unlist(reads[acts]))
  list(known = statements[!acts], drawn = list(statements[acts & !generated],
                                               statements[acts & generated]),
       declared = Filter(function(d) d$name %in% needed, stan_declared(statements[!acts])))
}

# Each statement as a list: those of a block, if no other scope has one of its names.
stan_opened <- function(statements) {
  scoped <- character()
  stan_any(statements, function(x) {
    if (x$kind == "decl") scoped <<- c(scoped, x$name)
    if (x$kind %in% c("for", "foreach")) scoped <<- c(scoped, x$var)
    FALSE
  })
  twice <- scoped[duplicated(scoped)]
  lapply(statements, function(s) {
    own <- vapply(stan_declared(s$body), `[[`, "", "name")
    if (s$kind == "block" && !any(own %in% twice)) s$body else list(s)
  })
}

# Whether a statement draws random numbers, prints or rejects. `acting`: functions that do.
stan_acts <- function(x, acting) {
  stan_any(x, function(x) {
    x$kind %in% c("print", "reject", "fatal_error") ||
      x$kind == "call" && !is.null(x$name) && (grepl("_rng$", x$name) || x$name %in% acting)
  })
}

# Whether a statement has a condition that is not one on data.
stan_decides <- function(x, deciding) {
  stan_any(x, function(x) {
    test <- switch(x$kind, `if` = , `while` = x$test, else_if = x$tests, cond = x$args[[1L]])
    x$kind == "call" && !is.null(x$name) && x$name %in% deciding ||
      stan_any(test, function(v) {
        v$kind == "var" && !v$block %in% c("data", "transformed_data", "loop")
      })
  })
}

# The functions of which `test` is true, with those that call them.
stan_calling <- function(functions, test) {
  found <- character()
  repeat {
    more <- unlist(lapply(functions, function(f) if (test(f$body, found)) f$name))
    if (all(more %in% found)) return(found)
    found <- more
  }
}

# Whether `test` is true of a node of a tree.
stan_any <- function(x, test) {
  if (!is.list(x)) return(FALSE)
  !is.null(x$kind) && is.character(x$kind) && isTRUE(test(x)) ||
    any(vapply(unname(x), stan_any, NA, test))
}

# Which of these variables a statement names.
stan_named <- function(x, names) {
  found <- .Call(r_stan_names, x, "var")
  unique(found[found %in% names])
}

# The variables that it declares or assigns.
stan_written <- function(s) {
  found <- if (s$kind == "decl") s$name
  stan_any(s, function(x) {
    if (x$kind == "assign") {
      parts <- if (x$lhs$kind == "tuple") x$lhs$args else list(x$lhs)
      for (lhs in parts) {
        while (lhs$kind %in% c("index", "tuple_get")) lhs <- lhs$base
        found <<- c(found, lhs$name)
      }
    }
    FALSE
  })
  unique(found)
}
