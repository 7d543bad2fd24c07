# Problems whose likelihoods tests/reference/gp-likelihood.c computes to 34 digits. All numbers are
# multiples of powers of two, so that they are exact there and here.
gp_reference_cases <- function() {
  i <- seq_len(11)
  x <- cbind(((i * 7) %% 11) / 8, ((i * i) %% 13) / 16)
  y <- ((i * 5) %% 7 - 3) / 4
  exp_quad <- k_exp_quad(1.25, c(0.5, 0.75))
  composed <- k_periodic(1.5, 0.75, 0.625, columns = 1) * k_exponential(0.75, 1.25) +
    k_linear(0.5, center = 0.25) * k_matern52(1.25, 0.375)
  case <- function(kernel, noise, ...) {
    list(f = cl_gp_likelihood(y, x, kernel, ...), par = c(coef(kernel), noise = noise))
  }
  list(exp_quad = case(exp_quad, 0.25),
       smooth = case(k_exp_quad(1.25, c(4, 0.75)), 2^-10),
       matern32 = case(k_matern32(1.5, 0.375), 0.125, "constant"),
       rational_quadratic = case(k_rational_quadratic(0.75, 0.5, 1.5), 0.25, "linear", "integrate"),
       composed = case(composed, 0.125),
       loo = case(composed, 0.125, "constant", objective = "loo"))
}
