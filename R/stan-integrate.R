# integrate_1d() of Stan programs, by the double exponential formulas of Takahasi and Mori: sums
# over nodes that are evenly spaced in t, where the ends of the range are approached doubly
# exponentially.

# Nodes with spacing h: `from`, relative to half the length of a finite range, how far they are from
# its nearer end, or for a range from 0 to infinity x itself; `weight`; `even`: those of spacing
# 2 h.
st_nodes <- function(h, finite) {
  k <- if (finite) seq(-floor(5.9 / h), floor(5.9 / h)) else seq(-floor(5.6 / h), floor(5.6 / h))
  t <- k * h
  if (finite) {
    q <- exp(-pi * sinh(abs(t)))
    from <- 2 * q / (1 + q)
    weight <- h * 2 * pi * cosh(t) * q / (1 + q)^2
  } else {
    from <- exp(0.5 * pi * sinh(t))
    weight <- h * 0.5 * pi * cosh(t) * from
  }
  # far out f need not be finite, as where x^4 is infinite in x^4 exp(-x)
  data.frame(right = (k > 0) + 0, from = from, weight = weight, even = (k %% 2 == 0) + 0,
             outer = (abs(t) > 2.5) + 0)
}

# x, xc (NaN if the range is infinite) and weights of the nodes between a and b.
st_points <- function(h, a, b) {
  endless <- function(v) !is_traced(v) && is.infinite(v)
  if (!endless(a) && !endless(b)) {
    nodes <- st_nodes(h, TRUE)
    half <- 0.5 * (b - a)
    gap <- half * nodes$from
    last <- function(v) 2.3e-16 * abs(v) + 1e-300
    x <- either(nodes$right > 0, pmin(b - gap, b - last(b)), pmax(a + gap, a + last(a)))
    return(list(x = x, xc = (2 * nodes$right - 1) * gap, weight = half * nodes$weight,
                even = nodes$even, outer = nodes$outer, inner = 0.5 * (a + b)))
  }
  nodes <- st_nodes(h, FALSE)
  x <- if (endless(b)) a + nodes$from else b - nodes$from
  list(x = x, xc = rep(NaN, length(nodes$from)), weight = nodes$weight, even = nodes$even,
       outer = nodes$outer, inner = if (endless(b)) a + 1 else b - 1)
}

# list(value, coarse: with every second node, norm). `wanted`: 0 if it is not, and takes no time.
st_quadrature <- function(f, p, wanted, traced) {
  step <- function(s, x, p_inner, wanted) {
    idle_without(wanted)
    first <- f(x$x, x$xc)
    finite <- is.finite(first)
    good <- finite * (either(finite, first, 0) != 0)
    # Derivatives at nodes that count as 0 need not be finite.
    v <- f(either(good > 0, x$x, p_inner), either(good > 0, x$xc, 0))
    none <- either(finite + x$outer > 0, 0, NaN)
    v <- either(wanted > 0, x$weight * either(good > 0, v, none), 0)
    list(value = s$value + v, coarse = s$coarse + 2 * x$even * v, norm = s$norm + abs(v))
  }
  zero <- list(value = 0, coarse = 0, norm = 0)
  xs <- p[c("x", "xc", "weight", "even", "outer")]
  if (traced) return(cl_scan(step, zero, xs, p_inner = p$inner, wanted = wanted))
  for (k in seq_along(p$x)) zero <- step(zero, lapply(xs, `[[`, k), p$inner, 1)
  zero
}

# The integral between two limits without a change of sign in between, by two spacings.
st_integral <- function(f, a, b, tolerance, traced) {
  spacings <- c(1 / 32, 1 / 128)
  found <- NaN
  wanted <- 1
  for (h in spacings) {
    q <- st_quadrature(f, st_points(h, a, b), wanted, traced)
    good <- (abs(q$value - q$coarse) <= tolerance * q$norm) * wanted
    good <- either(is.na(good), 0, good)
    found <- either(good > 0, q$value, found)
    wanted <- either(good > 0, 0, wanted)
    if (!traced && good > 0) break
  }
  if (!traced && is.nan(found)) {
    stop(sprintf("the integral is not found: its error is about %.3g, more than %.3g times %.3g",
                 abs(q$value - q$coarse), tolerance, q$norm), call. = FALSE)
  }
  found
}

st_integrate_1d <- function(f, a, b, theta, x_r, x_i, tolerance = 1.4901161193847656e-08) {
  plain <- !is_traced(a) && !is_traced(b)
  if (plain && (is.na(a) || is.na(b) || a > b || a == b && is.infinite(a))) {
    stop(sprintf("the limits of an integral are %s and %s", format(a), format(b)), call. = FALSE)
  }
  if (plain && a == b) return(0)
  limits <- c(list(a), if (plain && a < 0 && b > 0) list(0), list(b))
  traced <- is_traced(theta) || !plain
  g <- function(x, xc) f(x, xc, theta, x_r, x_i)
  total <- 0
  for (k in seq_along(limits)[-1L]) {
    total <- total + st_integral(g, limits[[k - 1L]], limits[[k]], tolerance, traced)
  }
  total
}
