# Complex numbers of Stan programs: pairs of real values of one shape, numbers or traced values, of
# class "stan_complex". A real value may stand for a complex one.

stan_complex <- function(re, im) structure(list(re, im), class = "stan_complex")

is_stan_complex <- function(x) inherits(x, "stan_complex")

stan_re <- function(x) if (is_stan_complex(x)) unclass(x)[[1L]] else x

stan_im <- function(x) {
  if (is_stan_complex(x)) return(unclass(x)[[2L]])
  if (is.null(dim(x))) numeric(length(x)) else array(0, dim(x))
}

# f of both parts.
stan_both <- function(x, f) stan_complex(f(stan_re(x)), f(stan_im(x)))

# x with elements replaced: f(x, value) does so for real values.
stan_put_both <- function(x, value, f) {
  stan_complex(f(stan_re(x), stan_re(value)), f(stan_im(x), stan_im(value)))
}

# A complex number: f of the real parts, and f of the imaginary parts, of the arguments that `split`
# names; other arguments are the same for both.
stan_split <- function(f, split, ...) {
  args <- list(...)
  part <- function(of) {
    args[split] <- lapply(args[split], of)
    do.call(f, args)
  }
  stan_complex(part(stan_re), part(stan_im))
}

# {a, b}, [a, b]: of numbers, or of vectors and arrays.
stan_stack_complex <- function(scalar, ...) {
  args <- list(...)
  part <- function(of) {
    parts <- lapply(args, of)
    if (!scalar) return(do.call(stan_stack, parts))
    if (any(vapply(parts, is_traced, NA))) combine_traced(parts) else unlist(parts)
  }
  stan_complex(part(stan_re), part(stan_im))
}

# A value as one of this type: real numbers become complex ones.
stan_typed <- function(value, type) {
  if (grepl("complex", type$base)) return(stan_both(value, identity))
  if (type$base != "tuple") return(value)
  if (type$depth == 0L) value[] <- Map(stan_typed, value, type$parts) else {
    type$depth <- 0L
    value[] <- lapply(value, stan_typed, type)
  }
  value
}

# ---- code ----------------------------------------------------------------------------------------

is_complex_type <- function(type) startsWith(type$base, "complex")

has_complex <- function(type) {
  is_complex_type(type) || any(vapply(type$parts, has_complex, NA))
}

stan_real_type <- function(type) {
  type$base <- sub("^complex_?", "", type$base)
  if (type$base == "") type$base <- "real"
  type
}

# Whether an expression has code of its own for complex numbers.
is_complex_code <- function(e) {
  if (e$kind == "imag") return(TRUE)
  if (e$kind == "index") return(is_complex_type(e$base$type))
  if (e$kind == "call" && (isTRUE(e$user) || e$name %in% names(stan_higher_order)) ||
        !e$kind %in% c("op", "array", "rowvec", "call")) return(FALSE)
  is_complex_type(e$type) || any(vapply(e$args, function(a) is_complex_type(a$type), NA))
}

stan_complex_code <- function(e, cx) {
  switch(e$kind,
    imag = call("stan_complex", 0, as.double(e$value)),
    index = stan_complex_index(e, cx),
    op = stan_complex_operator(e$op, stan_exprs(e$args, cx), lapply(e$args, `[[`, "type")),
    call = stan_complex_call(e, cx),
    as.call(c(list(as.name("stan_stack_complex"),
                   all(vapply(e$args, function(a) is_scalar_type(a$type), NA))),
              stan_exprs(e$args, cx))))
}

# The name of an expression's value in messages.
stan_part_name <- function(e) if (e$kind == "var") e$name else ".z"

stan_complex_index <- function(e, cx) {
  name <- stan_part_name(e$base)
  base <- stan_expr(e$base, cx)
  e$base <- list(kind = "var", name = name, type = stan_real_type(e$base$type))
  call("stan_both", base, call("function", stan_formals(name), stan_index_code(e, cx)))
}

stan_complex_operator <- function(op, args, types) {
  rank <- vapply(types, stan_rank, 0L)
  x <- args[[1L]]
  if (op == "plus") return(x)
  if (op == "neg") return(call("st_c_negative", x))
  if (op == "t") return(if (rank == 2L) call("stan_both", x, quote(t)) else x)
  y <- args[[2L]]
  if (op == "==") return(call("st_c_equal", x, y))
  if (op == "!=") return(call("(", call("-", 1, call("st_c_equal", x, y))))
  if (op == "\\") return(call("s.c.mdivide_left", x, y))
  if (op == "/" && rank[2L] == 2L && rank[1L] > 0L) return(call("s.c.mdivide_right", x, y))
  if (op == "*" && min(rank) > 0L) {
    real <- lapply(types, stan_real_type)
    f <- call("function", stan_formals(c("x", "y")), stan_product(quote(x), quote(y), real))
    return(call("st_c_bilinear", f, x, y))
  }
  f <- c(`+` = "st_c_add", `-` = "st_c_subtract", `*` = "st_c_times", `/` = "st_c_divide",
         `^` = "st_c_power", `.*` = "st_c_times", `./` = "st_c_divide", `.^` = "st_c_power")[[op]]
  if (min(rank) > 0L) return(call("stan_each_complex", as.name(f), x, y))
  call(f, x, y)
}

stan_each_complex <- function(f, x, y) {
  stan_same_size(stan_re(x), stan_re(y))
  f(x, y)
}

stan_complex_call <- function(e, cx) {
  args <- stan_exprs(e$args, cx)
  types <- lapply(e$args, `[[`, "type")
  if (e$name %in% names(stan_operator_names)) {
    return(stan_complex_operator(stan_operator_names[[e$name]], args, types))
  }
  name <- stan_variant(e$name, lapply(types, stan_real_type))
  if (!is.null(stan_library_row(paste0("c.", name)))) {
    if (cx$traced) args <- stan_known_args(paste0("c.", name), e, args)
    return(as.call(c(list(as.name(paste0("s.c.", name))), args)))
  }
  # Others move elements.
  if (is.null(stan_library_row(name))) {
    stan_abort(sprintf("the function '%s' is not available for complex numbers", name), e$line)
  }
  symbol <- as.name(paste0("s.", name))
  if (!is_complex_type(e$type)) return(call(as.character(symbol), call("stan_re", args[[1L]])))
  ints <- vapply(types, is_int_type, NA)
  split <- !ints | seq_along(ints) == 1L | startsWith(name, "append_")
  as.call(c(list(as.name("stan_split"), symbol, split), args))
}

# ---- arithmetic ----------------------------------------------------------------------------------

# Whether R's own functions of complex numbers can be used.
st_c_plain <- function(...) {
  !any(vapply(list(...), function(x) is_traced(stan_re(x)) || is_traced(stan_im(x)), NA))
}

st_c_of_r <- function(x) stan_complex(Re(x), Im(x))

st_c_to_r <- function(x) {
  re <- stan_re(x)
  to <- complex(real = re, imaginary = stan_im(x))
  if (!is.null(dim(re))) dim(to) <- dim(re)
  to
}

# R's function of a complex number.
st_c_by_r <- function(f, z) st_c_of_r(f(st_c_to_r(z)))

st_c_negative <- function(x) stan_complex(-stan_re(x), -stan_im(x))

st_c_add <- function(x, y) stan_complex(stan_re(x) + stan_re(y), stan_im(x) + stan_im(y))

st_c_subtract <- function(x, y) stan_complex(stan_re(x) - stan_re(y), stan_im(x) - stan_im(y))

# f(x, y) of a product f of real values.
st_c_bilinear <- function(f, x, y) {
  a <- stan_re(x)
  c <- stan_re(y)
  if (!is_stan_complex(x)) return(stan_complex(f(a, c), f(a, stan_im(y))))
  b <- stan_im(x)
  if (!is_stan_complex(y)) return(stan_complex(f(a, c), f(b, c)))
  d <- stan_im(y)
  stan_complex(f(a, c) - f(b, d), f(a, d) + f(b, c))
}

st_c_times <- function(x, y) st_c_bilinear(function(a, b) a * b, x, y)

st_c_divide <- function(x, y) {
  if (!is_stan_complex(y)) return(stan_complex(stan_re(x) / y, stan_im(x) / y))
  size <- pmax(abs(stan_re(y)), abs(stan_im(y))) # their squares may not be numbers
  re <- stan_re(y) / size
  im <- stan_im(y) / size
  norm <- (re^2 + im^2) * size
  top <- st_c_times(x, stan_complex(re, -im))
  stan_complex(stan_re(top) / norm, stan_im(top) / norm)
}

st_c_equal <- function(x, y) (stan_re(x) == stan_re(y)) * (stan_im(x) == stan_im(y)) + 0

st_c_norm <- function(z) stan_re(z)^2 + stan_im(z)^2

st_c_abs <- function(z) {
  size <- pmax(abs(stan_re(z)), abs(stan_im(z)))
  size <- cl_ifelse(size == 0, 1, size)
  size * st_root((stan_re(z) / size)^2 + (stan_im(z) / size)^2)
}

st_c_arg <- function(z) cl_atan2(stan_im(z), stan_re(z))

st_c_polar <- function(r, t) stan_complex(r * cos(t), r * sin(t))

# i z
st_c_turned <- function(z) stan_complex(-stan_im(z), stan_re(z))

st_c_exp <- function(z) {
  if (st_c_plain(z)) return(st_c_by_r(exp, z))
  st_c_polar(exp(stan_re(z)), stan_im(z))
}

st_c_log <- function(z) {
  if (st_c_plain(z)) return(st_c_by_r(log, z))
  stan_complex(log(st_c_abs(z)), st_c_arg(z))
}

st_c_sqrt <- function(z) {
  if (st_c_plain(z)) return(st_c_by_r(sqrt, z))
  a <- stan_re(z)
  b <- stan_im(z)
  large <- st_root(0.5 * (st_c_abs(z) + abs(a)))
  small <- abs(b) / (2 * cl_ifelse(large == 0, 1, large))
  right <- a >= 0
  stan_complex(cl_ifelse(right, large, small),
               cl_ifelse(right, small, large) * cl_ifelse(b < 0, -1, 1))
}

# 0^w is 0, and the derivatives there count as 0.
st_c_power <- function(x, y) {
  if (st_c_plain(x, y)) return(st_c_of_r(st_c_to_r(x)^st_c_to_r(y)))
  zero <- st_c_norm(x) == 0
  filled <- stan_complex(cl_ifelse(zero, 1, stan_re(x)), cl_ifelse(zero, 0, stan_im(x)))
  power <- st_c_exp(st_c_times(y, st_c_log(filled)))
  none <- zero * (1 - (stan_re(y) == 0) * (stan_im(y) == 0)) == 1
  stan_complex(cl_ifelse(none, 0, stan_re(power)), cl_ifelse(none, 0, stan_im(power)))
}

st_c_sinh <- function(z) {
  if (st_c_plain(z)) return(st_c_by_r(sinh, z))
  stan_complex(sinh(stan_re(z)) * cos(stan_im(z)), cosh(stan_re(z)) * sin(stan_im(z)))
}

st_c_cosh <- function(z) {
  if (st_c_plain(z)) return(st_c_by_r(cosh, z))
  stan_complex(cosh(stan_re(z)) * cos(stan_im(z)), sinh(stan_re(z)) * sin(stan_im(z)))
}

# By tanh(a) and tan(b), which do not overflow.
st_c_tanh <- function(z) {
  if (st_c_plain(z)) return(st_c_by_r(tanh, z))
  t <- tanh(stan_re(z))
  s <- sin(stan_im(z))
  c <- cos(stan_im(z))
  norm <- c^2 + (t * s)^2
  stan_complex(t / norm, s * c * (1 - t^2) / norm)
}

st_c_asinh <- function(z) {
  if (st_c_plain(z)) return(st_c_by_r(asinh, z))
  left <- stan_re(z) < 0 # of which the sum below would be a difference
  sign <- cl_ifelse(left, -1, 1)
  z <- stan_complex(sign * stan_re(z), sign * stan_im(z))
  value <- st_c_log(st_c_add(z, st_c_sqrt(st_c_add(st_c_times(z, z), 1))))
  stan_complex(sign * stan_re(value), sign * stan_im(value))
}

st_c_acosh <- function(z) {
  if (st_c_plain(z)) return(st_c_by_r(acosh, z))
  root <- st_c_times(st_c_sqrt(st_c_add(z, 1)), st_c_sqrt(st_c_subtract(z, 1)))
  st_c_log(st_c_add(z, root))
}

st_c_atanh <- function(z) {
  if (st_c_plain(z)) return(st_c_by_r(atanh, z))
  value <- st_c_subtract(st_c_log(st_c_add(z, 1)), st_c_log(st_c_subtract(1, z)))
  stan_complex(0.5 * stan_re(value), 0.5 * stan_im(value))
}

# f(z) = -i g(i z)
st_c_by_turns <- function(g, z) st_c_negative(st_c_turned(g(st_c_turned(z))))

# ---- vectors and matrices ------------------------------------------------------------------------

# The matrix of real numbers that multiplies a pair of parts as `a` does.
st_c_real_matrix <- function(a) {
  rbind(cbind(stan_re(a), -stan_im(a)), cbind(stan_im(a), stan_re(a)))
}

st_c_solve <- function(a, b) {
  n <- nrow(stan_re(a))
  x <- solve(st_c_real_matrix(a), if (is.null(dim(stan_re(b)))) c(stan_re(b), stan_im(b)) else
    rbind(stan_re(b), stan_im(b)))
  if (is.null(dim(x))) return(stan_complex(x[seq_len(n)], x[n + seq_len(n)]))
  stan_complex(x[seq_len(n), , drop = FALSE], x[n + seq_len(n), , drop = FALSE])
}

st_c_transposed <- function(a) if (is.null(dim(stan_re(a)))) a else stan_both(a, function(x) t(x))

# The discrete Fourier transform of each column: by halves as long as they have even sizes.
st_c_fft_columns <- function(x, sign) {
  n <- nrow(stan_re(x))
  if (n < 2L) return(x)
  turns <- function(rows, columns, of) {
    angle <- sign * 2 * pi * (outer(rows, columns) %% of) / of
    stan_complex(cos(angle), sin(angle))
  }
  if (n %% 2L == 1L || n <= 32L) {
    k <- seq_len(n) - 1
    return(st_c_bilinear(function(a, b) a %*% b, turns(k, k, n), x))
  }
  part <- function(first) {
    st_c_fft_columns(stan_both(x, function(v) v[seq(first, n, 2L), , drop = FALSE]), sign)
  }
  even <- part(1L)
  odd <- st_c_times(turns(seq_len(n / 2L) - 1, rep(1, ncol(stan_re(x))), n), part(2L))
  stan_put_both(st_c_add(even, odd), st_c_subtract(even, odd), function(a, b) rbind(a, b))
}

st_c_fft <- function(x, sign) {
  if (length(stan_re(x)) == 0L) return(x)
  scale <- if (sign > 0) length(stan_re(x)) else 1
  if (st_c_plain(x)) return(st_c_of_r(stats::fft(st_c_to_r(x), inverse = sign > 0) / scale))
  if (is.null(dim(stan_re(x)))) {
    x <- stan_both(x, function(v) matrix(v, ncol = 1L))
    return(stan_both(st_c_fft_columns(x, sign), function(v) as.vector(v) / scale))
  }
  x <- st_c_transposed(st_c_fft_columns(x, sign))
  stan_both(st_c_fft_columns(x, sign), function(v) t(v) / scale)
}

# Of data: list(vectors, values) in R's order.
st_c_eigen <- function(a) {
  a <- st_c_to_r(a)
  if (length(a) == 0L) return(list(stan_complex(Re(a), Im(a)), stan_complex(numeric(), numeric())))
  f <- eigen(a, symmetric = FALSE)
  list(st_c_of_r(f$vectors), st_c_of_r(f$values))
}

# list(u, t): a = u t u^H, by QR of the eigenvectors.
st_c_schur <- function(a) {
  r <- st_c_to_r(a)
  if (length(r) == 0L) return(list(st_c_of_r(r), st_c_of_r(r)))
  u <- qr.Q(qr(eigen(r, symmetric = FALSE)$vectors))
  t <- Conj(t(u)) %*% r %*% u
  t[row(t) > col(t)] <- 0
  list(st_c_of_r(u), st_c_of_r(t))
}

st_c_svd <- function(a) {
  f <- svd(st_c_to_r(a))
  list(st_c_of_r(f$u), f$d, st_c_of_r(f$v))
}

st_c_eigen_sym <- function(a) {
  f <- eigen(st_c_to_r(a), symmetric = TRUE)
  n <- rev(seq_along(f$values))
  list(st_c_of_r(f$vectors[, n, drop = FALSE]), f$values[n])
}

stan_complex_functions <- list(
  c.exp = st_c_exp, c.log = st_c_log, c.sqrt = st_c_sqrt,
  c.log10 = function(z) st_c_divide(st_c_log(z), log(10)),
  c.sinh = st_c_sinh, c.cosh = st_c_cosh, c.tanh = st_c_tanh,
  c.asinh = st_c_asinh, c.acosh = st_c_acosh, c.atanh = st_c_atanh,
  c.sin = function(z) if (st_c_plain(z)) st_c_by_r(sin, z) else st_c_by_turns(st_c_sinh, z),
  c.cos = function(z) if (st_c_plain(z)) st_c_by_r(cos, z) else st_c_cosh(st_c_turned(z)),
  c.tan = function(z) if (st_c_plain(z)) st_c_by_r(tan, z) else st_c_by_turns(st_c_tanh, z),
  c.asin = function(z) if (st_c_plain(z)) st_c_by_r(asin, z) else st_c_by_turns(st_c_asinh, z),
  c.acos = function(z) {
    if (st_c_plain(z)) return(st_c_by_r(acos, z))
    st_c_subtract(pi / 2, st_c_by_turns(st_c_asinh, z))
  },
  c.atan = function(z) if (st_c_plain(z)) st_c_by_r(atan, z) else st_c_by_turns(st_c_atanh, z),
  c.pow = function(x, y) st_c_power(x, y),
  c.minus = st_c_negative, c.plus = function(z) z,
  c.logical_eq = st_c_equal, c.logical_neq = function(x, y) 1 - st_c_equal(x, y),
  c.abs = st_c_abs, c.arg = st_c_arg, c.norm = st_c_norm,
  c.conj = function(z) stan_complex(stan_re(z), -stan_im(z)),
  c.proj = function(z) {
    infinite <- is.infinite(stan_re(z)) | is.infinite(stan_im(z))
    stan_complex(cl_ifelse(infinite, Inf, stan_re(z)), cl_ifelse(infinite, 0, stan_im(z)))
  },
  c.polar = st_c_polar,
  c.get_real = function(z) stan_re(z), c.get_imag = function(z) stan_im(z),
  c.to_complex = function(re, im) {
    if (missing(re)) return(stan_complex(0, 0))
    if (missing(im)) return(stan_complex(re, stan_im(re)))
    stan_complex(re + stan_im(im), im + stan_im(re))
  },
  c.prod = function(z) {
    total <- stan_complex(1, 0)
    for (i in seq_along(stan_re(z))) {
      total <- st_c_times(total, stan_complex(stan_re(z)[i], stan_im(z)[i]))
    }
    total
  },
  # Conjugates of the first argument only here, as in Stan.
  c.dot_product = function(x, y) {
    stan_each_complex(function(x, y) {
      stan_both(st_c_times(stan_complex(stan_re(x), -stan_im(x)), y), function(v) sum(v))
    }, x, y)
  },
  c.dot_self = function(x) stan_complex(sum(st_c_norm(x)), 0),
  c.rows_dot_product = function(x, y) stan_both(st_c_times(x, y), function(v) rowSums(st_rows(v))),
  c.columns_dot_product = function(x, y) {
    stan_both(st_c_times(x, y), function(v) colSums(st_rows(v)))
  },
  c.rows_dot_self = function(x) stan_both(rowSums(st_rows(st_c_norm(x))), function(v) v),
  c.columns_dot_self = function(x) stan_both(colSums(st_rows(st_c_norm(x))), function(v) v),
  c.diag_pre_multiply = function(v, x) st_c_times(v, x),
  c.diag_post_multiply = function(x, v) st_c_transposed(st_c_times(v, st_c_transposed(x))),
  c.mdivide_left = st_c_solve,
  c.mdivide_right = function(b, a) {
    st_c_transposed(st_c_solve(st_c_transposed(a), st_c_transposed(b)))
  },
  c.fft = function(x) st_c_fft(x, -1), c.inv_fft = function(x) st_c_fft(x, 1),
  c.fft2 = function(x) st_c_fft(x, -1), c.inv_fft2 = function(x) st_c_fft(x, 1),
  c.eigenvalues = function(a) st_c_eigen(a)[[2L]],
  c.eigenvectors = function(a) st_c_eigen(a)[[1L]],
  c.eigendecompose = st_c_eigen, eigendecompose = st_c_eigen,
  c.complex_schur_decompose = st_c_schur, complex_schur_decompose = st_c_schur,
  c.complex_schur_decompose_u = function(a) st_c_schur(a)[[1L]],
  c.complex_schur_decompose_t = function(a) st_c_schur(a)[[2L]],
  c.eigenvalues_sym = function(a) st_c_eigen_sym(a)[[2L]],
  c.eigenvectors_sym = function(a) st_c_eigen_sym(a)[[1L]],
  c.eigendecompose_sym = st_c_eigen_sym,
  c.singular_values = function(a) st_c_svd(a)[[2L]],
  c.svd_U = function(a) st_c_svd(a)[[1L]], c.svd_V = function(a) st_c_svd(a)[[3L]],
  c.svd = st_c_svd)
