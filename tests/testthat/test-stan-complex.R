# Complex numbers of Stan programs, against R's.

# `terms`: expressions of complex y and vector x, which depend on a and b; `want`: the same in R.
check_complex <- function(terms, want, point = list(a = 0.7, b = c(0.4, -1.3)), ...) {
  check_sum(terms, function(p) {
    y <- complex(real = p$a, imaginary = 1.2)
    x <- p$b * c(0.5i, 2 - 1i) + y
    want(y, x, p$b)
  }, point, "real a; vector[2] b;", "complex z; complex_vector[2] v; array[2] complex w;
    complex_matrix[2, 2] M; matrix[2, 2] R;",
  list(z = -1 + 2i, v = c(0.5i, 2 - 1i), w = c(1, 2i), M = matrix(c(1 + 1i, 2, 3i, 4 - 2i), 2),
       R = matrix(c(1, 2, -1, 0.5), 2)),
  transformed = "complex y = to_complex(a, 1.2); complex_vector[2] x = v .* b + y;", ...)
}

z <- -1 + 2i
v <- c(0.5i, 2 - 1i)
M <- matrix(c(1 + 1i, 2, 3i, 4 - 2i), 2)
R <- matrix(c(1, 2, -1, 0.5), 2)
both <- function(x) c(Re(x), 2 * Im(x))

test_that("arithmetic and elementary functions of complex numbers", {
  each_engine({
    check_complex(c("abs(y) + arg(y) + norm(y) + sum(abs(x)) + sum(arg(x)) + get_real(conj(y) * z)",
                    "get_real(y / z) + get_imag(z / y) + get_real(2 / y) + get_imag(y / 2)",
                    "get_real(-y - 3i + z * y) + get_real(y^2) + get_imag(pow(y, 2.5 + 1i))"),
                  function(y, x, b) c(Mod(y), Arg(y), Mod(y)^2, Mod(x), Arg(x), Re(Conj(y) * z),
                                   Re(y / z), Im(z / y), Re(2 / y), Im(y / 2),
                                   Re(-y - 3i + z * y), Re(y^2), Im(y^(2.5 + 1i))))
  })
  for (f in c("exp", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
              "cosh", "tanh", "asinh", "acosh", "atanh")) {
    g <- if (f == "log10") function(z) log(z) / log(10) else get(f)
    terms <- sprintf("get_real(%s(%s)) + 2 * get_imag(%s(%s))", f, c("y", "x[1]", "x[2]"), f,
                     c("y", "x[1]", "x[2]"))
    for (a in c(-2, 0.7)) {
      check_complex(c(terms, sprintf("sum(get_real(%s(v)) + 2 * get_imag(%s(v))) * a", f, f)),
                    function(y, x, b) c(both(g(y)), both(g(x)), both(g(v)) * Re(y)),
                    list(a = a, b = c(0.4, -1.3)))
    }
  }
  check_complex(c("get_real(polar(a, b[1])) + 2 * get_imag(polar(a, b[1])) + (y == y) + (y != z)",
                  "get_imag(proj(y)) + get_imag(pow(to_complex() * y, 2)) + abs(-3 * y)",
                  "get_real(a > 0 ? y : z) + get_imag(a < 0 ? y : 1) + get_real(to_complex(a))",
                  "get_real(1e200 * y / (1e200 * z)) + abs(1e200 * y) * 1e-200",
                  "get_real(plus(y))"),
                function(y, x, b) c(both(complex(modulus = Re(y), argument = b[1])), 2, Im(y), 0,
                                 3 * Mod(y), Re(y), 0, Re(y), Re(y / z), Mod(y), Re(y)))
})

test_that("vectors, matrices and arrays of complex numbers", {
  check_complex(c("get_real(sum(x)) + get_imag(prod(x)) + get_real(dot_product(v, x))",
                  "get_real(x' * v) + sum(get_imag(x * v')) + get_real(dot_self(x))",
                  "sum(get_imag(M * x)) + sum(get_real(M * R)) * a + sum(get_real(R * x))",
                  "sum(get_imag(x' * M)) + get_real(sum(M[1])) * a + get_imag(M[2, 1] * x[2])",
                  "sum(get_real(M \\ x)) + sum(get_imag(x' / M)) + get_real(trace(M)) * a"),
                function(y, x, b) c(Re(sum(x)), Im(prod(x)), Re(sum(Conj(v) * x)), Re(sum(x * v)),
                                 Im(outer(x, v)), Mod(x)^2, Im(M %*% x), Re(M %*% R) * Re(y),
                                 Re(R %*% x), Im(x %*% M), Re(sum(M[1, ])) * Re(y),
                                 Im(M[2, 1] * x[2]), Re(solve(M, x)), Im(solve(t(M), x)),
                                 Re(sum(diag(M))) * Re(y)))
  check_complex(c("get_real(columns_dot_product(M, M)[1] * y) + get_imag(rows_dot_self(x)[1] * y)",
                  "sum(get_imag(diag_pre_multiply(x, M)))",
                  "sum(get_real(diag_post_multiply(M, x)))",
                  "sum(get_imag(append_row(1.0i, x))) + get_real(append_col(M, x)[2, 3])",
                  "get_real(rep_vector(y, 3)[2] + head(x, 1)[1] + tail(x, 1)[1] + M'[1, 2] * y)",
                  "size(x) + rows(M) + cols(M) + num_elements(w) + get_real({y, 1}[1])",
                  "get_imag(to_vector(M)[3] * y) + get_imag([y, 2i, 1][2] * y)",
                  "get_imag(to_matrix(x, 1, 2)[1, 2])"),
                function(y, x, b) c(Re(sum(M[, 1]^2) * y), Mod(x[1])^2 * Im(y), Im(x * M),
                                 Re(t(t(M) * x)), 1, Im(x), Re(x[2]), Re(y + x[1] + x[2]),
                                 Re(M[2, 1] * y), 8,
                                 Re(y), Im(M[1, 2] * y), Im(2i * y), Im(x[2])))
})

test_that("operators of complex numbers have names, too", {
  check_complex(c("get_real(sum(add(x, y)) + sum(subtract(M, y)) * a + sum(add(y, v)))",
                  "get_imag(sum(add(x, v)) + sum(subtract(y, x')) + sum(add(M, R)) * a)",
                  "get_real(multiply(x', v) + sum(multiply(M, x)) + sum(multiply(x', M)))",
                  "get_imag(sum(multiply(M, R) * a) + sum(multiply(y, x)) + sum(multiply(x, v')))",
                  "get_real(sum(elt_multiply(x, v)) + elt_multiply(y, z) + sum(elt_divide(v, x)))",
                  "get_imag(sum(elt_divide(M, y)) + sum(elt_multiply(y, R)) + divide(z, y))",
                  "get_real(sum(divide(x, y)) + sum(divide(2, x')) + sum(elt_multiply(M, M)) * a)",
                  "sum(divide(a, b)) + logical_eq(y, y) + 2 * logical_neq(y, z) + logical_eq(y, a)",
                  "get_real(reverse(x)[1] + cumulative_sum(x')[2] + cumulative_sum(w)[2] * y)"),
                function(y, x, b) {
                  c(Re(c(x + y, (M - y) * Re(y), y + v)), Im(c(x + v, y - x, (M + R) * Re(y))),
                    Re(c(x * v, M %*% x, x %*% M)), Im(c(M %*% R * Re(y), y * x, outer(x, v))),
                    Re(c(x * v, y * z, v / x)), Im(c(M / y, y * R, z / y)),
                    Re(c(x / y, 2 / x, M * M * Re(y))), Re(y) / b, 3,
                    Re(c(x[2], sum(x), (1 + 2i) * y)))
                })
})

test_that("Fourier transforms", {
  n <- 70
  w <- complex(real = cos(1:n), imaginary = sin((1:n)^2))
  W <- matrix(w, 7)
  terms <- c("sum(get_imag(fft(f)) .* d)", "sum(get_real(inv_fft(f)) .* d)",
             "sum(get_imag(fft2(F))[3])", "sum(get_real(inv_fft2(F))[:, 2])",
             "sum(get_real(fft(head(f, 64))) .* head(d, 64))",
             "get_real(fft(rep_vector(f[1], 1))[1]) + size(fft(rep_vector(f[1], 0)))")
  want <- function(p) {
    p$a * c(Im(fft(w)) * 1:n, Re(fft(w, inverse = TRUE)) / n * 1:n, Im(fft(W))[3, ],
            Re(fft(W, inverse = TRUE))[, 2] / n, Re(fft(w[1:64])) * 1:64, Re(w[1]))
  }
  data <- "complex_vector[70] w; vector[70] d;"
  check_sum(terms, want, list(a = 0.7), "real a;", data, list(w = w, d = 1:n),
            transformed = "complex_vector[70] f = a * w;
              complex_matrix[7, 10] F = to_matrix(f, 7, 10);")
  check_sum(paste0("a * (", terms, ")"), want, list(a = 0.7), "real a;",
            paste(data, "} transformed data { complex_vector[70] f = w;
              complex_matrix[7, 10] F = to_matrix(f, 7, 10);"), list(w = w, d = 1:n))
})

test_that("statements with complex numbers", {
  check <- function(model, density, ...) {
    check_stan_case(stan_case("real a; vector[3] b;", model, list(a = 0.7, b = c(0.4, -1.3, 2)),
                              density, "complex_vector[3] v; int N;",
                              list(v = c(0.5i, 2 - 1i, -1), N = 3), functions = "
      complex f(complex z, complex_vector v) { if (get_imag(z) > 5) return z; return z * v[2]; }
      complex sum_of(array[] complex z) { complex s = 0; for (x in z) s += x; return s; }"), model)
  }
  v <- c(0.5i, 2 - 1i, -1)
  check("complex z = a; z *= v[2]; z -= 1i; z /= 2; z += b[1]; target += get_imag(z) + abs(z);",
        function(p) with(list(z = (p$a * v[2] - 1i) / 2 + p$b[1]), Im(z) + Mod(z)))
  check("complex_vector[N] z; for (n in 1:N) z[n] = b[n] * v[n] + n; z[2:3] = z[{3, 2}]; z[1] = a;
    complex t = 0; for (n in 1:N) t += z[n] * n; target += get_real(t) + get_imag(t);",
        function(p) {
          z <- p$b * v + 1:3
          t <- sum(c(p$a, z[3], z[2]) * 1:3)
          Re(t) + Im(t)
        })
  check("complex_matrix[2, 2] m; m[1] = [a, 2i]; m[2, 1] = v[1]; m[:, 2] = [1i, b[1]]';
    array[2] complex_vector[2] q; q[1] = m[:, 1]; q[2, 2] = a; q[2, 1] = 1;
    target += get_real(sum(m * m)) + get_imag(q[1, 2] * a) + get_real(q[2][2]);",
        function(p) {
          m <- matrix(c(p$a, 0.5i, 1i, p$b[1]), 2)
          Re(sum(m %*% m)) + 0.5 * p$a + p$a
        })
  check("target += get_real(f(to_complex(1, a), v)) + get_imag(f(6i * a^0, b * 1i)) +
    get_imag(sum_of({a, 1i, v[1] * a}));",
        function(p) Re((1 + 1i * p$a) * v[2]) + 6 + 1 + 0.5 * p$a)
  # branches that depend on parameters
  check("complex z = 1; if (a > 0) { z = a * v[2]; z += 2i; } else z = 5; if (a < 0) z *= 2;
    tuple(complex, real) t = (2, a); if (b[1] > 0) t.1 = a * 1i; target += abs(z) + abs(t.1);",
        function(p) Mod(p$a * v[2] + 2i) + p$a)
})

test_that("complex numbers as data, parameters and outputs", {
  m <- cl_stan(code = "data { int n; complex z; array[n] complex w; complex_matrix[n, 2] M; }
    transformed data { complex_vector[2] e = eigenvalues([[0, -1], [1, 0]]);
      complex_matrix[2, 2] V = eigenvectors(M); tuple(complex_matrix[2, 2], complex_vector[2]) D =
      eigendecompose(M); complex_matrix[2, 2] S = complex_schur_decompose_u(M);
      complex_matrix[2, 2] T = complex_schur_decompose_t(M);
      vector[2] d = singular_values(M); complex_matrix[2, 2] H = M + [[conj(M[1, 1]),
      conj(M[2, 1])], [conj(M[1, 2]), conj(M[2, 2])]]; }
    parameters { complex q; complex_vector[n] u; tuple(real, complex) t; }
    model { target += -norm(q - z) - get_real(dot_self(u - to_vector(M[1]))) - square(t.1) -
      norm(t.2); }
    generated quantities { complex g = q * q; complex_vector[n] h = u; h[1] = 2; tuple(complex, int)
      k = (1, 2); real zero = sum(abs(M * V - V * diag_matrix(D.2))) +
      sum(abs(S * T - M * S)) + abs(T[2, 1]) + sum(abs(D.1 - V));
      real unit = sum(abs(svd_U(M))) * 0 + prod(d) - abs(M[1, 1] * M[2, 2] - M[1, 2] * M[2, 1]);
      vector[2] f = eigenvalues_sym(H); complex p = e[1]; }")
  values <- list(n = 2, z = 1 + 2i, w = c(1, 2i), M = M)
  b <- m(values)
  point <- list(q = 0.3 - 0.4i, u = c(1i, 2), t = list(0.5, 1 + 1i))
  value <- do.call(b, point)
  expect_equal(as.vector(value), -Mod(point$q - 1 - 2i)^2 - sum(Mod(point$u - M[1, ])^2) - 2.25)
  expect_equal(attr(value, "gradient")[c("q.real", "q.imag", "u.imag", "t.2.real")],
               list(q.real = 1.4, q.imag = 4.8, u.imag = c(0, 6), t.2.real = -2))
  expect_equal(b$constrain(b$free(point))[["u.real"]], c(0, 2))
  draws <- as.matrix(cl_sample(b, chains = 1, warmup = 20, iter = 2, seed = 1, init = point))
  expect_identical(colnames(draws)[1:16],
                   c("q.real", "q.imag", "u[1].real", "u[2].real", "u[1].imag", "u[2].imag", "t.1",
                     "t.2.real", "t.2.imag", "g.real", "g.imag", "h[1].real", "h[2].real",
                     "h[1].imag", "h[2].imag", "k.1.real"))
  expect_equal(draws[, "g.imag"], 2 * draws[, "q.real"] * draws[, "q.imag"])
  expect_equal(unname(draws[, c("h[1].real", "h[1].imag", "k.1.imag", "zero", "unit", "p.real")]),
               matrix(c(2, 0, 0, 0, 0, 0), 2, 6, byrow = TRUE), tolerance = 1e-12)
  expect_equal(unname(draws[1, c("f[1]", "f[2]")]),
               rev(eigen(M + Conj(t(M)), symmetric = TRUE)$values))
  # other forms of data
  same <- function(...) expect_identical(as.vector(do.call(m(utils::modifyList(values, list(...))),
                                                           point)), as.vector(value))
  same(z = c(1, 2), w = cbind(c(1, 0), c(0, 2)), M = array(c(Re(M), Im(M)), c(2, 2, 2)))
  file <- tempfile(fileext = ".json")
  on.exit(unlink(file))
  writeLines('{"n": 2, "z": [1, 2], "w": [[1, 0], [0, 2]], "M": [[[1, 1], [0, 3]], [[2, 0],
    [4, -2]]]}', file)
  expect_identical(as.vector(do.call(m(file), point)), as.vector(value))
  expect_error(m(utils::modifyList(values, list(w = 1:3))), "data 'w' has the size 3",
               class = "statcl_error_stan")
  expect_output(cl_stan(code = "transformed data { complex z = 3; print(z, \" \", {z, 1i}); }")(),
                "(3,0) [(3,0),(0,1)]", fixed = TRUE)
  for (use in c("abs(eigenvalues(m))", "abs(eigendecompose(m).2)", "abs(svd_U(m * 1i))",
                "bessel_first_kind(0, m)", "csr_extract_w(m)")) {
    code <- "parameters { matrix[2, 2] m; } model { matrix[2, 2] l = 2 * m;
      target += sum(%s); }"
    message <- "line 2, column [0-9]*: the function '.*' is available for data and generated"
    expect_error(cl_stan(code = sprintf(code, use)), message, class = "statcl_error_stan")
    late <- cl_stan(code = sprintf(code, gsub("m)|m ", "l)", sub("m * 1i", "l * 1i", use, fixed =
      TRUE))))()
    expect_error(late(m = diag(2)), message, class = "statcl_error_stan")
  }
})

test_that("functions of complex numbers take real ones", {
  check_sum(c("norm(a) + arg(-a) + get_imag(proj(a)) + get_real(conj(a)) + norm(2)"),
            function(p) p$a^2 + pi + p$a + 4, list(a = 0.7), "real<lower=0> a;")
})
