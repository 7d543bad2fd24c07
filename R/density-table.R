# The densities, distribution functions, quantiles and special functions of functions given to
# cl_gradient(), one row for each. From it are made what replaces R's functions (R/density.R), the
# table of ?cl_densities and its aliases (R/density-help.R), what cl_map() knows to be pure
# (R/trace-map-known.R), and the loops of the tests (helper-density.R) over values, gradients and
# the ends of ranges, against base R.

# `formula` is a function with R's arguments and defaults. `...`: the kind of values of each of
# these but flags, by which tests choose values: real, positive, share (from 0 to 1), count and
# trials and order (data), place, scale and spread (above 0, from 0 on), shape and power (from 0 on,
# above 0), lower and upper. Without any, the function is not elementwise and has tests of its own.
# `instead`: the argument for which another stands, by name of that. `through`: arguments of which
# the formula asks nothing, or those in `signed` no more than not_negative() does. `note`: for the
# help page.
density_row <- function(formula, ..., instead = NULL, through = signed, signed = NULL, note = "") {
  list(formula = formula, kinds = c(...), instead = instead, through = through, signed = signed,
       note = note)
}

density_table <- list(
  dnorm = density_row(dnorm_formula, x = "real", mean = "place", sd = "spread",
                      through = c("x", "mean")),
  pnorm = density_row(pnorm_formula, q = "real", mean = "place", sd = "spread"),
  qnorm = density_row(qnorm_formula, p = "share", mean = "place", sd = "scale",
                      note = "Wichura (1988)"),
  dlnorm = density_row(dlnorm_formula, x = "positive", meanlog = "place", sdlog = "scale",
                       note = "as `dnorm` of `log(x)`"),
  plnorm = density_row(plnorm_formula, q = "positive", meanlog = "place", sdlog = "scale"),
  dexp = density_row(dexp_formula, x = "positive", rate = "scale", signed = "x"),
  pexp = density_row(pexp_formula, q = "positive", rate = "scale"),
  qexp = density_row(qexp_formula, p = "share", rate = "scale"),
  dgamma = density_row(dgamma_formula, x = "positive", shape = "shape", rate = "spread",
                       scale = "scale", instead = c(scale = "rate"), note = "Loader (2000)"),
  pgamma = density_row(pgamma_formula, q = "positive", shape = "shape", rate = "scale",
                       scale = "scale", instead = c(scale = "rate"),
                       note = "series, continued fraction, expansion"),
  dchisq = density_row(dchisq_formula, x = "positive", df = "shape", note = "as gamma"),
  pchisq = density_row(pchisq_formula, q = "positive", df = "shape"),
  dweibull = density_row(dweibull_formula, x = "positive", shape = "shape", scale = "scale"),
  pweibull = density_row(pweibull_formula, q = "positive", shape = "shape", scale = "scale"),
  dbeta = density_row(dbeta_formula, x = "share", shape1 = "shape", shape2 = "shape",
                      note = "Loader (2000)"),
  pbeta = density_row(pbeta_formula, q = "share", shape1 = "power", shape2 = "power",
                      note = "series, quadrature"),
  dt = density_row(dt_formula, x = "real", df = "shape", note = "Loader (2000)"),
  pt = density_row(pt_formula, q = "real", df = "scale", note = "as beta"),
  dcauchy = density_row(dcauchy_formula, x = "real", location = "place", scale = "scale",
                        through = c("x", "location")),
  pcauchy = density_row(pcauchy_formula, q = "real", location = "place", scale = "scale"),
  dlogis = density_row(dlogis_formula, x = "real", location = "place", scale = "scale"),
  plogis = density_row(plogis_formula, q = "real", location = "place", scale = "scale"),
  qlogis = density_row(qlogis_formula, p = "share", location = "place", scale = "scale"),
  dunif = density_row(dunif_formula, x = "real", min = "lower", max = "upper"),
  punif = density_row(punif_formula, q = "real", min = "lower", max = "upper"),
  dbinom = density_row(dbinom_formula, x = "count", size = "trials", prob = "share",
                       note = "Loader (2000) for more than 100 trials"),
  pbinom = density_row(pbinom_formula, q = "count", size = "trials", prob = "share",
                       note = "as beta"),
  dpois = density_row(dpois_formula, x = "count", lambda = "shape",
                      note = "Loader (2000) for counts of more than 100"),
  ppois = density_row(ppois_formula, q = "count", lambda = "shape", note = "as gamma"),
  dnbinom = density_row(dnbinom_formula, x = "count", size = "scale", prob = "share",
                        mu = "shape", instead = c(mu = "prob"), note = "Loader (2000)"),
  pnbinom = density_row(pnbinom_formula, q = "count", size = "power", prob = "share",
                        mu = "power", instead = c(mu = "prob"), note = "as beta"),
  dgeom = density_row(dgeom_formula, x = "count", prob = "share"),
  pgeom = density_row(pgeom_formula, q = "count", prob = "share"),
  dmultinom = density_row(dmultinom_formula),
  lbeta = density_row(function(a, b) density_op("lbeta", a, b), a = "positive", b = "scale"),
  beta = density_row(function(a, b) exp(density_op("lbeta", a, b)), a = "positive", b = "scale"),
  lchoose = density_row(function(n, k) density_op("lchoose", n, k), n = "scale", k = "order"),
  choose = density_row(function(n, k) density_op("choose", n, k), n = "scale", k = "order"),
  dmvnorm = density_row(dmvnorm_formula),
  dlkj = density_row(dlkj_formula),
  dwishart = density_row(dwishart_formula),
  dordlogit = density_row(dordlogit_formula))

# ---- for the help page ---------------------------------------------------------------------------

of_base_r <- function(names) {
  intersect(names, c(getNamespaceExports("stats"), ls(baseenv(), all.names = TRUE)))
}

# The rows of functions of R: those of a distribution in one line, and other functions in one.
density_help_table <- function(table = density_table) {
  names <- of_base_r(names(table))
  of <- ifelse(grepl("^[dpq]", names), substring(names, 2L), "")
  code <- function(x) sprintf("`%s`", x)
  lines <- vapply(unique(of), function(distribution) {
    members <- names[of == distribution]
    row <- table[[members[1L]]]
    own <- setdiff(names(formals(row$formula))[-1L], c("log", "lower.tail", "log.p", "ncp"))
    if (!grepl("^[dpq]", members[1L])) own <- character()
    text <- code(setdiff(own, names(row$instead)))
    for (other in names(row$instead)) {
      at <- text == code(row$instead[[other]])
      text[at] <- paste(text[at], "or", code(other))
    }
    notes <- unique(vapply(table[members], `[[`, "", "note"))
    sprintf("| %s | %s | %s |", toString(code(members)), toString(text),
            paste(notes[nzchar(notes)], collapse = "; "))
  }, "")
  paste(c("| function | arguments | formula |", "|---|---|---|", lines), collapse = "\n")
}

density_aliases <- function() {
  paste("@aliases", paste(setdiff(names(density_table), of_base_r(names(density_table))),
                          collapse = " "))
}
