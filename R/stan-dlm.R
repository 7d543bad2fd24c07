# Dynamic linear models of Stan programs.

# The log density of the columns of y by Kalman's filter; v: a matrix, or the variances of
# independent observations.
st_dlm <- function(y, f, g, v, w, m0, c0) {
  r <- nrow(y)
  if (is.null(dim(v))) v <- diag(v, r, r)
  step <- function(s, y) {
    a <- as.vector(g %*% s$m)
    spread <- g %*% s$c %*% t(g) + w
    e <- y - as.vector(crossprod(f, a))
    q <- crossprod(f, spread %*% f) + v
    gain <- spread %*% f %*% solve(q)
    c <- spread - gain %*% t(spread %*% f)
    density <- -0.5 * (r * log(2 * pi) + as.vector(determinant(q)$modulus) +
                         sum(e * as.vector(solve(q, e))))
    list(state = list(m = a + as.vector(gain %*% e), c = 0.5 * (c + t(c))), out = density)
  }
  sum(cl_scan(step, list(m = m0, c = c0), t(y))$out)
}
