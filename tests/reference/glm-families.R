# Writes glm-families.csv: log densities of single observations and their derivatives, for the
# families other than bernoulli_logit (glm.R), by the textbook formulas with enough bits that
# cancellation does no harm, to 34 digits. Needs the package Rmpfr. Run in this folder:
#
#   Rscript glm-families.R
#
# Columns: family, y, datum (trials or classes), eta, own (sigma or phi), below and above (cuts);
# value, d_eta, d_own (by sigma, phi or the cut above), d_below. Of categorical_logit the predictors
# are eta * ((5 * class) %% 7 - 3) / 4, and d_eta is the derivative by that of class `own`.

library(Rmpfr)

bits <- 6000
number <- function(x) mpfr(x, bits)
digits <- function(x) {
  if (is.null(x)) NA else format(roundMpfr(x, 200), digits = 34, scientific = TRUE)
}
logistic <- function(t) 1 / (1 + exp(-t))

rows <- list()
add <- function(family, y, datum = NA, eta, own = NA, below = NA, above = NA, value, d_eta,
                d_own = NULL, d_below = NULL) {
  exact <- function(x) if (is.na(x)) NA else sprintf("%.17g", x)
  rows[[length(rows) + 1L]] <<- data.frame(
    family = family, y = exact(y), datum = exact(datum), eta = exact(eta), own = exact(own),
    below = exact(below), above = exact(above), value = digits(value), d_eta = digits(d_eta),
    d_own = digits(d_own), d_below = digits(d_below))
}

etas <- c(-800, -300, -40, -20, -3, -0.5, 0, 2^-30, 1, 5, 20, 40, 300, 700, 800)

# ---- binomial_logit ---------------------------------------------------------------------------
for (case in list(c(0, 0), c(0, 1), c(1, 1), c(0, 12), c(5, 12), c(12, 12), c(123456, 1000000))) {
  y <- number(case[1])
  n <- number(case[2])
  choose <- if (case[1] == 0) number(0) else {
    small <- min(case[1], case[2] - case[1])
    j <- mpfr(seq_len(small), 400)
    if (small == 0) number(0) else sum(log(mpfr(case[2], 400) - small + j)) - sum(log(j))
  }
  for (eta in etas) {
    p <- logistic(number(eta))
    add("binomial_logit", case[1], case[2], eta,
        value = choose + y * log(p) + (n - y) * log(1 - p), d_eta = y - n * p)
  }
}

# ---- normal_id --------------------------------------------------------------------------------
for (y in c(-2.5, 0, 1e5)) for (sigma in c(1e-3, 1, 1e6)) for (eta in c(-800, -0.5, 0, 3, 800)) {
  z <- (number(y) - number(eta)) / number(sigma)
  add("normal_id", y, NA, eta, sigma,
      value = -z^2 / 2 - log(number(sigma)) - log(2 * Const("pi", bits)) / 2,
      d_eta = z / number(sigma), d_own = (z^2 - 1) / number(sigma))
}

# ---- poisson_log ------------------------------------------------------------------------------
for (y in c(0, 1, 7, 1000)) for (eta in etas[etas < 705]) {
  factorial <- if (y == 0) number(0) else sum(log(number(seq_len(y))))
  mean <- exp(number(eta))
  add("poisson_log", y, NA, eta, value = y * number(eta) - mean - factorial, d_eta = y - mean)
}

# ---- neg_binomial_2_log -----------------------------------------------------------------------
for (y in c(0, 1, 5, 40, 1000)) for (phi in c(1e-3, 0.25, 3, 50, 1e4, 1e6)) for (eta in etas) {
  precise <- number(phi)
  mean <- exp(number(eta))
  j <- if (y > 0) number(seq_len(y) - 1)
  rising <- if (y > 0) sum(log(precise + j)) - sum(log(j + 1)) else number(0)
  harmonic <- if (y > 0) sum(1 / (precise + j)) else number(0)
  add("neg_binomial_2_log", y, NA, eta, phi,
      value = rising + y * (number(eta) - log(mean + precise)) +
        precise * (log(precise) - log(mean + precise)),
      d_eta = y - (y + precise) * mean / (mean + precise),
      d_own = harmonic + log(precise) + 1 - log(mean + precise) -
        (y + precise) / (mean + precise))
}

# ---- categorical_logit ------------------------------------------------------------------------
for (classes in c(1, 3, 40)) for (y in unique(c(1, 2, classes))) for (eta in etas) {
  if (y > classes) next
  e <- exp(number(eta) * ((5 * seq_len(classes)) %% 7 - 3) / 4)
  for (by in unique(c(1, y, classes))) {
    add("categorical_logit", y, classes, eta, by, value = log(e[y]) - log(sum(e)),
        d_eta = (by == y) - e[by] / sum(e))
  }
}

# ---- ordered_logistic -------------------------------------------------------------------------
cuts <- list(c(-1, 2), c(-1, -1 + 2^-40), c(0.5, 600), c(-Inf, 0.25), c(-0.75, Inf), c(-Inf, Inf))
for (pair in cuts) for (eta in etas) {
  up <- if (is.finite(pair[2])) logistic(number(pair[2]) - number(eta)) else number(1)
  low <- if (is.finite(pair[1])) logistic(number(pair[1]) - number(eta)) else number(0)
  d_up <- up * (1 - up)
  d_low <- low * (1 - low)
  p <- up - low
  add("ordered_logistic", 1 + is.finite(pair[1]), 1 + sum(is.finite(pair)), eta,
      below = pair[1], above = pair[2], value = log(p), d_eta = (d_low - d_up) / p,
      d_own = d_up / p, d_below = -d_low / p)
}

write.csv(do.call(rbind, rows), "glm-families.csv", row.names = FALSE, quote = FALSE)
