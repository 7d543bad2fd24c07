# Expressions and branches of thousands of parts in Stan programs.

test_that("sums of 10,000 terms", {
  n <- 1e4
  weight <- round(sin(seq_len(n)), 3)
  code <- sprintf("parameters { vector[10] a; } model { target += %s; }",
                  paste(sprintf("%.3f * a[%d]", weight, rep(1:10, n / 10)), collapse = " + "))
  found <- cl_stan(code = code)()(a = 1:10 / 7)
  expect_equal(as.vector(found), sum(weight * 1:10 / 7), tolerance = 1e-10)
  expect_equal(attr(found, "gradient")$a, unname(tapply(weight, rep(1:10, n / 10), sum)[1:10]),
               tolerance = 1e-10, ignore_attr = TRUE)
})

test_that("operators of long chains go from left to right", {
  value <- function(p) p$a * (p$b / 1.001)^400 + (p$a - p$b) * 300
  e <- paste0("a", strrep(" * b / 1.001", 400), strrep(" + a - b", 300))
  check_stan_case(stan_case("real a; real b;", sprintf("target += %s;", e),
                            list(a = 0.3, b = 0.995), value), "mixed")
  v <- paste0("x'", strrep(" * M", 60), " * x")
  M <- matrix(c(0.9, 0.1, 0.2, 0.8), 2)
  check_stan_case(stan_case("vector[2] x;", sprintf("target += %s;", v), list(x = c(0.3, 0.7)),
                            function(p) {
                              left <- p$x
                              for (k in 1:60) left <- left %*% M
                              sum(left * p$x)
                            }, "matrix[2, 2] M;", list(M = M)), "matrices")
  # a chain of integers that becomes one of numbers
  whole <- paste0("3", strrep(" * 1", 60), " * 0.5 / 2")
  check_stan_case(stan_case("real a;", sprintf("target += a * (%s);", whole), list(a = 0.3),
                            function(p) 0.75 * p$a), "types")
  # integers: quotients are integers, and short circuits
  small <- paste0("i", strrep(" / 2 * 2", 100), strrep(" + 1", 100))
  code <- "data { int i; array[1] int j; } parameters { real a; } model { target += a * (%s); }"
  data <- list(i = 7, j = array(1))
  value <- function(e) as.vector(cl_stan(code = sprintf(code, e))(data)(a = 1))
  expect_equal(value(small), 106) # 7 / 2 * 2 is 6
  # j[7], which is out of bounds, is not read
  expect_equal(value(paste0("i < 7", strrep(" && i > 0", 60), " && j[i] == 1")), 0)
  expect_equal(value(paste0("i < 7", strrep(" || i > 0", 60), " || j[i] == 1")), 1)
  expect_fault(value(paste0("i > 6", strrep(" && i > 0", 60), " && j[i] == 1")), "stan", line = 1)
})

test_that("choices and branches of thousands of parts", {
  n <- 2000
  choices <- paste(sprintf("k == %d ? %d * a : ", seq_len(n), seq_len(n)), collapse = "")
  branches <- paste(sprintf("if (k == %d) target += %d * a; else ", seq_len(n), seq_len(n)),
                    collapse = "")
  returns <- paste(sprintf("if (k == %d) return %d * a; else ", seq_len(n), seq_len(n)),
                   collapse = "")
  model <- cl_stan(code = sprintf("functions { real f(int k, real a) { %s return -a; } }
    data { int k; } parameters { real a; }
    model { target += %s 0; %s target += 0.5 * a; target += f(k, a); }
    generated quantities { real g = f(k, a) + (%s 0); }", returns, choices, branches, choices))
  for (k in c(1, 1234, n, n + 1)) {
    b <- model(list(k = k))
    found <- b(a = 0.5)
    want <- if (k > n) 0.5 - 1 else 3 * k
    expect_equal(as.vector(found), want * 0.5)
    expect_equal(attr(found, "gradient")$a, want)
    expect_equal(stan_output_function(environment(b)$state)(0.5)$g, if (k > n) -0.5 else k)
  }
  # conditions that depend on parameters
  cut <- 1:100 / 10
  choices <- paste(sprintf("a < %g ? %d * a : ", cut, 1:100), collapse = "")
  branches <- paste(sprintf("if (a < %g) target += %d * a; else ", cut, 1:100), collapse = "")
  b <- cl_stan(code = sprintf("parameters { real a; } model { target += %s 0; }", choices))()
  code <- sprintf("parameters { real a; } model { %s target += 0 * a; }", branches)
  r <- suppressMessages(cl_stan(code = code)())
  for (a in c(-1, 2.05, 9.99, 20)) {
    k <- if (a < 10) findInterval(a, cut) + 1 else 0
    for (f in list(b, r)) {
      found <- suppressMessages(f(a = a))
      expect_equal(as.vector(found), k * a)
      expect_equal(attr(found, "gradient")$a, k)
    }
  }
})

test_that("expressions that are nested that deeply are refused", {
  nested <- function(open, close = "", n = 2000) {
    sprintf("parameters { real a; } model { target += %sa%s; }", strrep(open, n), strrep(close, n))
  }
  for (code in list(nested("(", ")"), nested("-"), nested("a ^ "), nested("(a + ", ")"),
                    nested("a + (", ")"), nested("(1 ? a : ", ")"), nested("1 ? ", " : 0"))) {
    expect_fault(cl_stan(code = code), "stan")
  }
  deep <- paste0(strrep("if (1) {", 2000), strrep("}", 2000))
  expect_fault(cl_stan(code = sprintf("model { %s }", deep)), "stan")
})
