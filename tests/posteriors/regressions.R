# Linear regressions with flat priors, or with `spread`, a half Cauchy one of the standard
# deviation: response and predictors, by the posterior's name.
regressions <- list(
  # earnings and height
  "earnings-earn_height" = earn ~ height,
  "earnings-log10earn_height" = log10(earn) ~ height,
  "earnings-logearn_height" = log(earn) ~ height,
  "earnings-logearn_height_male" = log(earn) ~ height + male,
  "earnings-logearn_interaction_z" = log(earn) ~ normed(height) + male + normed(height):male,
  "earnings-logearn_logheight_male" = log(earn) ~ log(height) + male,
  # test scores of children: whether the mother finished high school, and her score
  "kidiq-kidscore_interaction" = kid_score ~ mom_hs + mom_iq + mom_hs:mom_iq + spread,
  "kidiq-kidscore_momhs" = kid_score ~ mom_hs + spread,
  "kidiq-kidscore_momhsiq" = kid_score ~ mom_hs + mom_iq + spread,
  "kidiq-kidscore_momiq" = kid_score ~ mom_iq + spread,
  "kidiq_with_mom_work-kidscore_interaction_c" = kid_score ~ I(mom_hs - mean(mom_hs)) +
    I(mom_iq - mean(mom_iq)) + I(mom_hs - mean(mom_hs)):I(mom_iq - mean(mom_iq)),
  "kidiq_with_mom_work-kidscore_interaction_c2" = kid_score ~ I(mom_hs - 0.5) + I(mom_iq - 100) +
    I(mom_hs - 0.5):I(mom_iq - 100),
  "kidiq_with_mom_work-kidscore_mom_work" = kid_score ~ factor(mom_work),
  # yield of mesquite bushes
  "mesquite-logmesquite" = log(weight) ~ log(diam1) + log(diam2) + log(canopy_height) +
    log(total_height) + log(density) + group,
  "mesquite-logmesquite_logva" = log(weight) ~ log(diam1 * diam2 * canopy_height) +
    log(diam1 * diam2) + group,
  "mesquite-logmesquite_logvas" = log(weight) ~ log(diam1 * diam2 * canopy_height) +
    log(diam1 * diam2) + log(diam1 / diam2) + log(total_height) + log(density) + group,
  "mesquite-logmesquite_logvolume" = log(weight) ~ log(diam1 * diam2 * canopy_height),
  "mesquite-mesquite" = weight ~ diam1 + diam2 + canopy_height + total_height + density + group)
# party identification in the election studies of these years
for (year in c(1972, 1976, 1980, 1984, 1992, 1996, 2000)) {
  regressions[[sprintf("nes%d-nes", year)]] <- partyid7 ~ real_ideo + race_adj +
    I(age_discrete == 2) + I(age_discrete == 3) + I(age_discrete == 4) + educ1 + gender + income
}

normed <- function(v) (v - mean(v)) / sd(v)

function(name, data) {
  formula <- regressions[[name]]
  spread <- "spread" %in% all.vars(formula)
  if (spread) formula <- update(formula, . ~ . - spread)
  data <- as.data.frame(data[lengths(data) == max(lengths(data))])
  x <- unname(model.matrix(formula, data))
  y <- as.vector(model.response(model.frame(formula, data)))
  flat <- function(beta, sigma) sum(dnorm(y, x %*% beta, sigma, log = TRUE))
  list(
    log_density = if (!spread) flat else function(beta, sigma) {
      sum(dnorm(y, x %*% beta, sigma, log = TRUE)) + dcauchy(sigma, 0, 2.5, log = TRUE)
    },
    init = list(beta = unname(qr.coef(qr(x), y)), sigma = sd(y)),
    transform = list(sigma = cl_lower(0)))
}
