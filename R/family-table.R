# The families of this package: one row each, of which fits, mixed models, Gaussian processes,
# blocks, cross-validation, draws and printing ask. The log densities, the checks of responses and
# the names of further parameters are the rows of inst/kernels/include/glm_families.h.
#
# A row has, where the default of new_family_row() is not right:
#   link       name of the link
#   help       c(y, density, response, further): its lines in ?cl_glm_lpdf and ?cl_glm
#   base       function that gives R's family; `like(y, counts)`: whether R's is taken for this one
#   aux        name of the further parameter, as in C; `aux_start(y, eta, w, spread)`: the logarithm
#              of its starting value; spread: the variance of the response
#              mixed_start(dispersion): its logarithm from the deviance of an observation
#              Code takes a `phi` for that of the negative binomial family, whose limit is Poisson
#   irls(aux)  the family of R, with all its parts, by which reweighted least squares fits this one;
#              else it is `base`, or made of the row (irls_family())
#   variance(mu, aux), deviance(y, mu, w, aux)
#              of an observation at the mean mu; without the factor sigma^2 and the weight w
#   draw(n, mu, w, aux), probability(q, mu, aux, w), quantile(p, mu, aux)
#              of responses; w: weights or trials; `whole`: whether responses are whole numbers
#   start(y, trials), start_weight(y, trials)
#              linear predictors near the response and their weights, where fits begin; on a device
#              too. `guess(response)`: those of latent processes
#   traced(y, eta, aux, trials)
#              the log density in terms that cl_gradient() takes, where it is not categorical
#   device     list(mean(eta), weight(y, eta, aux, trials)) in lazy arithmetic; else on the host
#   terms, probability, space, residual
#              of a family that is for Gaussian processes only: as family_terms(); the rows of
#              gp_space() for its parameters; residuals (response - mean) by type
#   space(scale, gaps)
#              the rows of gp_space() for the further parameters; scale: that of y
# and says by these fields where another algorithm is needed:
#   read       how responses are read: "number", "binary", "trials" or "classes" (glm-data.R)
#   fitter     by what cl_glm() fits: "newton", "least_squares", "irls" or "density"
#              (glm_fit_mode(), fit_glm())
#   least_squares, canonical
#              whether it is a normal linear model; whether the link is canonical and the variance
#              has no further parameter (Newton's method in C, Firth's penalty, random effects)
#   ordered, categorical; classes
#              one predictor and cuts; a predictor for each class; either
#   counts     whether responses are counts of events, with a log link
#   two_classes  whether a mean above 1/2 predicts the second class
#   two_columns  the family of a response of two columns of counts
#   concave    FALSE: the log density is not, so that searches of a latent mode take care
#   glm, latent, random
#              whether cl_glm(), cl_gp() and models with random effects have it
#   title  the heading of its cuts or second part in printed fits

new_family_row <- function(...) {
  row <- list(fitter = "newton", read = "number", least_squares = FALSE, canonical = FALSE,
              ordered = FALSE, categorical = FALSE, classes = FALSE, counts = FALSE,
              trials = FALSE, two_classes = FALSE, whole = FALSE, glm = TRUE, latent = FALSE,
              random = FALSE, concave = TRUE, aux = character(),
              like = function(y, counts) FALSE, centre = function(mean) 0, r = NULL, base = NULL,
              density = NULL, terms = NULL, help = NULL)
  given <- list(...)
  row[names(given)] <- given
  if (is.character(row$link) && is.null(row$inverse)) row[names(plain_links[[row$link]])] <-
    plain_links[[row$link]]
  row
}

# Links without the bounds that those of stats::make.link() have.
plain_links <- list(
  logit = list(inverse = stats::plogis, slope = stats::dlogis, link_of = stats::qlogis),
  log = list(inverse = exp, slope = exp, link_of = log),
  identity = list(inverse = function(eta) eta, slope = function(eta) rep(1, length(eta)),
                  link_of = function(mu) mu))

# The row of a further parameter in gp_space().
aux_space <- function(name, low, high, from, to, role = name) {
  data.frame(name = name, role = role, log = TRUE, unit = 1, low = low, high = high, from = from,
             to = to, flat = FALSE, width = NA)
}

# log(1 + v) - v, by a series where the terms nearly cancel.
log1p_minus <- function(v) .Call(r_log1p_minus, v)

logistic_spread <- function(t) if (is_cl(t)) cl_inv_logit(t) * cl_inv_logit(-t) else
  stats::dlogis(t)

# Student's t, as family_terms() with the names of response_at(), at y - eta = r.
# The curvature w is negative at outliers. In the determinant of Laplace's approximation it is
# replaced by v, that of the normal density which has the same height: as a function of eta both
# have the integral 1. In variances it is replaced by `wide`, which is positive and small at
# outliers: the positive part (df + 1) a / b^2 of w, scaled to the expectation of w.
student_at <- function(r, scale, df, by) {
  a <- df * scale^2
  b <- a + r^2
  ones <- rep(1, length(r))
  v <- 2 * pi * (stats::dt(0, df) / scale)^2
  of_gamma <- digamma((df + 1) / 2) - digamma(df / 2) - 1 / df
  list(l = stats::dt(r / scale, df, log = TRUE) - log(scale), d1 = (df + 1) * r / b,
       w = (df + 1) * (a - r^2) / b^2, v = v * ones, wide = (df + 1)^2 / (df + 2) * a / b^2,
       d3 = 0 * ones,
       by = if (by) list(
         list(l = ((df + 1) * r^2 / b - 1) / scale, d1 = -2 * df * scale * (df + 1) * r / b^2,
              v = -2 * v / scale * ones),
         list(l = 0.5 * (of_gamma - log1p(r^2 / a) + (df + 1) * r^2 / (b * df)),
              d1 = (r - (df + 1) * r * scale^2 / b) / b, v = v * of_gamma * ones)))
}

named_rows <- function(rows) {
  Map(function(row, name) c(row, list(name = name)), rows, names(rows))
}

family_table <- named_rows(list(
  bernoulli_logit = new_family_row(
    help = c(y = "0, 1", density = "`y eta - log(1 + exp(eta))`",
             response = "0 and 1, logical, or a factor whose second level counts as 1"),
    link = "logit", base = function() stats::binomial(),
    like = function(y, counts) !counts && nlevels(y) <= 2L,
    read = "binary", canonical = TRUE, two_classes = TRUE, two_columns = "binomial_logit",
    latent = TRUE, random = TRUE,
    variance = function(mu, aux) mu * (1 - mu),
    deviance = function(y, mu, w, aux) stats::binomial()$dev.resids(y, mu, w),
    draw = function(n, mu, w, aux) stats::rbinom(n, 1L, mu),
    start = function(y, trials) (2 * y - 1) * log(3),
    start_weight = function(y, trials) 3 / 16,
    traced = function(y, eta, aux, trials) -log1p_exp((1 - 2 * y) * eta),
    device = list(mean = function(eta) cl_inv_logit(eta),
                  weight = function(y, eta, aux, trials) logistic_spread(eta))),

  binomial_logit = new_family_row(
    help = c(y = "0, ..., N = `trials`",
             density = "`log(choose(N, y)) + y eta - N log(1 + exp(eta))`",
             response = "`cbind(successes, failures)`, counts, or proportions"),
    link = "logit", base = function() stats::binomial(), like = function(y, counts) counts,
    read = "trials", trials = TRUE, canonical = TRUE, whole = TRUE, latent = TRUE, random = TRUE,
    variance = function(mu, aux) mu * (1 - mu),
    deviance = function(y, mu, w, aux) stats::binomial()$dev.resids(y, mu, w),
    draw = function(n, mu, w, aux) stats::rbinom(n, w, mu),
    probability = function(q, mu, aux, w) stats::pbinom(q, w, mu),
    start = function(y, trials) log((y + 0.5) / (trials - y + 0.5)),
    start_weight = function(y, trials) {
      mu <- (y + 0.5) / (trials + 1)
      trials * (mu * (1 - mu))
    },
    traced = function(y, eta, aux, trials) binomial_logit(y, trials, eta, FALSE),
    device = list(mean = function(eta) cl_inv_logit(eta),
                  weight = function(y, eta, aux, trials) trials * logistic_spread(eta))),

  normal_id = new_family_row(
    help = c(y = "real", density = "`-(y - eta)^2 / (2 sigma^2) - log(sigma) - log(2 pi) / 2`",
             response = "numbers", further = "`sigma`"),
    link = "identity", base = function() stats::gaussian(), like = function(y, counts) TRUE,
    fitter = "least_squares", least_squares = TRUE, aux = "sigma", random = TRUE,
    aux_start = function(y, eta, w, spread) {
      log(max(sum((y - eta)^2) / length(y), 1e-4 * spread)) / 2
    },
    mixed_start = function(dispersion) log(dispersion) / 2,
    variance = function(mu, aux) rep(1, length(mu)),
    deviance = function(y, mu, w, aux) w * (y - mu)^2,
    draw = function(n, mu, w, aux) stats::rnorm(n, mu, aux / sqrt(w)),
    probability = function(q, mu, aux, w) stats::pnorm(q, mu, aux),
    quantile = function(p, mu, aux) stats::qnorm(p, mu, aux),
    start = function(y, trials) y, start_weight = function(y, trials) 1,
    centre = function(mean) mean,
    traced = function(y, eta, aux, trials) dnorm_formula(y, eta, aux, log = TRUE)),

  poisson_log = new_family_row(
    help = c(y = "0, 1, ...", density = "`y eta - exp(eta) - log(y!)`", response = "counts"),
    link = "log", base = function() stats::poisson(),
    like = function(y, counts) is.matrix(y) || !is.numeric(y) || all(y == round(y), na.rm = TRUE),
    counts = TRUE, canonical = TRUE, whole = TRUE, latent = TRUE, random = TRUE,
    variance = function(mu, aux) mu,
    deviance = function(y, mu, w, aux) {
      none <- y == 0
      2 * w * (none * mu - y * log1p_minus((mu - y) / (y + none)))
    },
    draw = function(n, mu, w, aux) stats::rpois(n, mu),
    probability = function(q, mu, aux, w) stats::ppois(q, mu),
    quantile = function(p, mu, aux) stats::qpois(p, mu),
    start = function(y, trials) log(y + 0.1), start_weight = function(y, trials) y + 0.1,
    guess = function(response) log(response$y + 0.5), centre = function(mean) log(mean + 0.1),
    traced = function(y, eta, aux, trials) dpois_formula(y, exp(eta), log = TRUE),
    device = list(mean = function(eta) exp(eta),
                  weight = function(y, eta, aux, trials) exp(eta))),

  neg_binomial_2_log = new_family_row(
    help = c(y = "0, 1, ...",
             density = "with mean `mu = exp(eta)` and variance `mu + mu^2 / phi`",
             response = "counts", further = "`phi`: the variance is mu + mu^2 / phi"),
    link = "log", irls = function(aux) if (is.finite(aux)) nb_family(aux) else stats::poisson(),
    counts = TRUE, whole = TRUE, aux = "phi",
    latent = TRUE, random = TRUE,
    aux_start = function(y, eta, w, spread) { # method of moments
      off <- sum(w * (y / pmax(exp(eta), 1e-6) - 1)^2)
      log(min(max(sum(w) / off, 1e-2), 1e4))
    },
    mixed_start = function(dispersion) 0,
    variance = function(mu, aux) mu + mu^2 / aux,
    deviance = function(y, mu, w, aux) { # the smaller one of y and phi comes first
      n <- y + aux
      few <- y <= aux
      less <- log1p_minus(ifelse(few, (mu - y) / n, aux * (y - mu) / (mu * n)))
      first <- ifelse(few, y * log1p_minus((mu - y) / pmax(y, 1)),
                      aux * log1p_minus((y - mu) / mu))
      2 * w * ifelse(y > 0, n * less - first, aux * log1p(mu / aux))
    },
    draw = function(n, mu, w, aux) stats::rnbinom(n, aux, mu = mu),
    probability = function(q, mu, aux, w) stats::pnbinom(q, aux, mu = mu),
    quantile = function(p, mu, aux) stats::qnbinom(p, aux, mu = mu),
    start = function(y, trials) log(y + 0.1), start_weight = function(y, trials) y + 0.1,
    guess = function(response) log(response$y + 0.5), centre = function(mean) log(mean + 0.1),
    traced = function(y, eta, aux, trials) {
      dnbinom_formula(y, size = aux, mu = exp(eta), log = TRUE)
    },
    device = list(
      mean = function(eta) exp(eta),
      weight = function(y, eta, aux, trials) if (aux < 1) {
        (y + aux) * logistic_spread(eta - log(aux))
      } else { # if phi is very large, mu / phi may underflow
        (1 + y / aux) * (exp(eta / 2) * cl_inv_logit(log(aux) - eta))^2
      }),
    space = function(scale, gaps) aux_space("phi", 1e-3, 1e5, 0.5, 10)),

  categorical_logit = new_family_row(
    help = c(y = "1, ..., C",
             density = "`eta[y] - log(sum(exp(eta)))`, one `eta` for each class",
             response = "a factor",
             further = "coefficients of each class relative to the first"),
    link = "logit", read = "classes", classes = TRUE, categorical = TRUE, latent = TRUE,
    guess = function(response) 2 * response$contrasts[response$y, , drop = FALSE]),

  ordered_logistic = new_family_row(
    help = c(y = "1, ..., C", density = "`log(F(cuts[y] - eta) - F(cuts[y - 1] - eta))`",
             response = "a factor, in order", further = "`cuts`, instead of an intercept"),
    link = "logit", read = "classes", classes = TRUE, ordered = TRUE, aux = "cuts", latent = TRUE,
    title = "Cuts", guess = function(response) response$y - mean(response$y),
    traced = function(y, eta, aux, trials) dordlogit_formula(y, eta, aux, log = TRUE),
    device = list(weight = function(y, eta, aux, trials) {
      ends <- c(-Inf, aux, Inf)
      logistic_spread(ends[y + 1L] - eta) + logistic_spread(ends[y] - eta)
    }),
    space = function(scale, gaps) do.call(rbind, lapply(seq_len(gaps), function(i) {
      aux_space(paste0("gap", i), 1e-3, 1e3, 0.5, 2, "gap")
    }))),

  student_t = new_family_row(
    link = "identity", glm = FALSE, latent = TRUE, concave = FALSE, aux = c("scale", "df"),
    base = function() {
      link <- unclass(stats::make.link("identity"))
      structure(c(list(family = "student_t", link = "identity"),
                  link[c("linkfun", "linkinv", "mu.eta")]), class = "family")
    },
    guess = function(response) response$y,
    terms = function(y, eta, aux, by) student_at(y - eta, aux[1L], aux[2L], by),
    draw = function(n, mu, w, aux) mu + aux[[1L]] * stats::rt(n, aux[[2L]]),
    probability = function(q, mu, aux, w) stats::pt((q - mu) / aux[[1L]], aux[[2L]]),
    residual = list(
      pearson = function(rest, w, aux) {
        rest * sqrt(w * max(aux[[2L]] - 2, 0) / max(aux[[2L]], 2)) / aux[[1L]]
      },
      deviance = function(rest, w, aux) {
        sign(rest) * sqrt(w * (aux[[2L]] + 1) * log1p((rest / aux[[1L]])^2 / aux[[2L]]))
      }),
    space = function(scale, gaps) {
      rbind(aux_space("scale", 1e-4 * scale, 10 * scale, 0.03 * scale, 0.7 * scale),
            aux_space("df", 0.5, 1e3, 2, 10))
    })))

# ---- for the help pages --------------------------------------------------------------------------

# A table of the families: their names, and these fields of `help`.
family_help_table <- function(fields, head) {
  lines <- lapply(Filter(function(row) !is.null(row$help), family_table), function(row) {
    text <- ifelse(fields %in% names(row$help), row$help[fields], "")
    sprintf("| %s |", paste(c(sprintf("`\"%s\"`", row$name), text), collapse = " | "))
  })
  paste(c(head, gsub("[^|]+", "---", head), lines), collapse = "\n")
}
