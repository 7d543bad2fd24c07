# Factors and functions of matrices in Stan programs, of parameters and of data, against base R.

test_that("eigenvalues and eigenvectors of symmetric matrices", {
  each_engine({
    a <- crossprod(matrix(c(2, 0.3, 0.5, 0.2, 1.5, 0.1, 0.4, 0.3, 1), 3)) + diag(3)
    w <- c(0.5, -1, 2)
    check_sum(c("dot_product(w, eigenvalues_sym(s))",
                "sum(eigenvectors_sym(s) * diag_matrix(log(eigenvalues_sym(s)))
                     * eigenvectors_sym(s)' * w)",
                "dot_product(w, square(eigendecompose_sym(s).1)[2]')",
                "sum(sqrt(eigendecompose_sym(s).2))"),
              function(p) {
                f <- eigen((p$m + t(p$m)) / 2, symmetric = TRUE)
                v <- f$vectors[, 3:1]
                c(w * rev(f$values), v %*% diag(log(rev(f$values))) %*% t(v) %*% w, w * v[2, ]^2,
                  sqrt(f$values))
              }, list(m = a), "matrix[3, 3] m;", "vector[3] w; }
              transformed data {", list(w = w), transformed = "matrix[3, 3] s = (m + m') / 2;")
  })
  # many eigenvalues that are almost equal: v' solve(k, v) by the factors
  at <- 1:20 / 10
  v <- sin(1:20)
  b <- cl_stan(code = "data { vector[20] at; vector[20] v; } parameters { real<lower=0> a; }
    model {
      matrix[20, 20] k = add_diag(gp_exp_quad_cov(to_array_1d(at), a, 1.0), 1e-4);
      target += sum(square(eigenvectors_sym(k)' * v) ./ eigenvalues_sym(k)); }")(
        list(at = at, v = v))
  k <- exp(-0.5 * outer(at, at, "-")^2)
  z <- solve(4 * k + diag(1e-4, 20), v)
  expect_equal(attr(b(a = 2), "gradient")$a, -4 * sum(z * k %*% z), tolerance = 1e-6)
  # sizes 0 and 1, and equal eigenvalues
  check_sum(c("sum(eigenvalues_sym(diag_matrix([b, b, 2]')))", "sum(eigenvalues_sym(none))",
              "eigenvalues_sym([[b]])[1] + eigenvectors_sym([[b]])[1, 1]^2"),
            function(p) 3 * p$b + 3, list(b = 1.5), "real b;", "matrix[0, 0] none;",
            list(none = matrix(0, 0, 0)))
  b <- cl_stan(code = "data { matrix[2, 2] x; } transformed data { vector[2] e =
    eigenvalues_sym(x); } parameters { real a; } model { target += a * e[2]; }")
  expect_equal(as.vector(b(list(x = diag(2:3)))(a = 2)), 6)
  expect_error(b(list(x = matrix(1:4, 2))), "not symmetric", class = "statcl_error_stan")
  expect_identical(as.vector(cl_stan(code = "parameters { real a; } model {
    target += eigenvalues_sym([[a, sqrt(a)], [sqrt(a), a]])[1]; }")()(a = Inf)), NaN)
})

test_that("singular values, QR factors and generalized inverses", {
  x <- matrix(c(2, 0.3, 0.5, 0.2, 1.5, 0.1), 3)
  factors <- function(m) {
    f <- qr(m)
    sign <- sign(diag(qr.R(f)))
    full <- qr.Q(f, complete = TRUE)
    full[, seq_along(sign)] <- full[, seq_along(sign)] * rep(sign, each = nrow(m))
    list(q = full, r = qr.R(f, complete = TRUE) * c(sign, rep(1, nrow(m) - length(sign))))
  }
  inverse <- function(m) with(svd(m), v %*% diag(1 / d) %*% t(u))
  programs <- c("sum(log(singular_values(m)))",
                "sum(square(svd_U(m)) * d) + sum(square(svd_V(m))' * e)",
                "sum((svd(m).1 * diag_matrix(square(svd(m).2)) * svd(m).3')' * w)",
                "sum(square(qr_thin_Q(m)) * d) + sum(square(qr_thin_R(m)) * e)",
                "sum(qr_thin(m).1 * d) + sum(qr_thin(m).2 * e)",
                "sum(square(qr_Q(m) * w)) + sum(qr_R(m)[1]) + sum(qr(m).1) + sum(qr(m).2)",
                "sum(square(generalized_inverse(m) * w))")
  density <- function(d, e, w) {
    function(p) {
      s <- svd(p$m)
      f <- factors(p$m)
      k <- seq_along(s$d)
      c(log(s$d), s$u^2 %*% d, t(s$v^2) %*% e, crossprod(s$u %*% diag(s$d^2) %*% t(s$v), w),
        f$q[, k]^2 %*% d, f$r[k, ]^2 %*% e, f$q[, k] %*% d, f$r[k, ] %*% e, (f$q %*% w)^2,
        f$r[1, ], f$q, f$r, (inverse(p$m) %*% w)^2)
    }
  }
  for (m in list(x, t(x))) {
    values <- list(d = c(1, 2), e = seq_len(ncol(m)) / 2, w = seq_len(nrow(m)) - 2.5)
    check_sum(programs, do.call(density, values), list(m = m),
              sprintf("matrix[%d, %d] m;", nrow(m), ncol(m)),
              sprintf("vector[2] d; vector[%d] e; vector[%d] w;", ncol(m), nrow(m)), values)
  }
  # of data: also without full rank
  deficient <- cbind(x, x[, 1] - x[, 2])
  b <- cl_stan(code = "data { matrix[3, 3] x; matrix[2, 0] none; } transformed data {
    matrix[3, 3] g = generalized_inverse(x); matrix[3, 3] r = qr_thin_R(x);
    array[5] int u = append_array(csr_extract_u(x[1:2]), {size(csr_extract_v(x)), 0});
    matrix[3, 3] p = qr_thin_Q(x) * r; vector[0] e = singular_values(none);
    tuple(vector[4], array[4] int, array[3] int) s = csr_extract([[1, 0, 2], [0, 3, 4]]);
    } parameters { real a; } model {
    target += -a^2; } generated quantities { matrix[3, 3] back = x * g * x - p;
    array[5] int u2 = u; vector[4] w = s.1; array[4] int v = s.2; matrix[0, 2] h =
    generalized_inverse(none); real z = r[3, 3]; }")(list(x = deficient, none = matrix(0, 2, 0)))
  first <- as.matrix(cl_sample(b, chains = 1, warmup = 10, iter = 2, seed = 1))[1, -1]
  expect_equal(max(abs(first[1:9])), 0, tolerance = 1e-12)
  expect_equal(unname(first[10:22]), c(1, 4, 7, 9, 0, 1, 2, 3, 4, 1, 3, 2, 3))
  expect_equal(unname(first[23]), 0, tolerance = 1e-12)
})

test_that("exponentials and powers of matrices", {
  m <- matrix(c(-2, 0.3, 0.5, 0.2, 1.5, 0.1, 0.4, 0.3, 1), 3)
  w <- c(0.5, -1, 2)
  by_eigen <- function(m, f) {
    e <- eigen(m)
    Re(e$vectors %*% diag(f(e$values)) %*% solve(e$vectors))
  }
  check_sum(c("sum(matrix_exp(m) * w) + sum(matrix_exp(100 * (m - 3 * I)) * w)",
              "sum(matrix_exp_multiply(m, I) * w) + sum(scale_matrix_exp_multiply(0.5, m, I))",
              "sum(matrix_power(m, 5) * w) + sum(matrix_power(m, 0)) + matrix_power(m, 1)[2, 3]",
              "log_determinant(m) + sum(matrix_exp(none))"),
            function(p) {
              m <- p$m
              c(2 * by_eigen(m, exp) %*% w, by_eigen(100 * (m - 3 * diag(3)), exp) %*% w,
                by_eigen(m / 2, exp), by_eigen(m, function(x) x^5) %*% w, 3, m[2, 3],
                log(abs(det(m))))
            }, list(m = m), "matrix[3, 3] m;", "vector[3] w; matrix[0, 0] none; }
            transformed data { matrix[3, 3] I = identity_matrix(3);",
            list(w = w, none = matrix(0, 0, 0)))
  b <- cl_stan(code = "data { matrix[2, 2] x; int n; } transformed data {
    matrix[2, 2] e = matrix_exp(x); matrix[2, 2] p = matrix_power(x, n); }
    parameters { real a; } model { target += a * (e[1, 2] + p[1, 1]); }")
  x <- matrix(c(0, 300, -300, 0), 2)
  expect_equal(as.vector(b(list(x = x, n = 1))(a = 1)), -sin(300), tolerance = 1e-12)
  expect_error(b(list(x = x, n = -1)), "must not be negative", class = "statcl_error_stan")
})
