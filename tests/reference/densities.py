"""Log densities, logarithms of distribution functions and their gradients far out in all arguments, to 17
digits (mpmath, up to 800 digits):

    python3 tests/reference/densities.py > tests/reference/densities.csv

test-density-ends.R reads the table. A row has the name, up to three arguments, the logarithm of the density,
its derivatives by the arguments ("NA" for counts, which are data), and `unit` of each of these: by how much
one rounding of each argument, 2^-53 of itself, changes it, plus 2^-53 of itself. Values beyond the range of
doubles are infinite.
"""
import itertools
import mpmath as mp

ROUNDING = mp.mpf(2) ** -53
half = mp.mpf(1) / 2


def gamma(x, a, r):
    return a * mp.log(r) + (a - 1) * mp.log(x) - r * x - mp.loggamma(a)


def beta(x, a, b):
    return ((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) + mp.loggamma(a + b) - mp.loggamma(a) -
            mp.loggamma(b))


def student(x, n):
    return (mp.loggamma((n + 1) / 2) - mp.loggamma(n / 2) - mp.log(n * mp.pi) / 2 -
            (n + 1) / 2 * mp.log1p(x * x / n))


def choose(n, k):
    return mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)


def binomial(x, n, p):
    return (choose(n, x) + (x * mp.log(p) if x else 0) +
            ((n - x) * mp.log1p(-p) if n > x else 0))


def binomial_logit(x, n, a):
    return choose(n, x) - x * mp.log1p(mp.exp(-a)) - (n - x) * mp.log1p(mp.exp(a))


def negative(x, n):
    return mp.loggamma(n + x) - mp.loggamma(n) - mp.loggamma(x + 1)


def logistic(x, m, s):
    z = abs(x - m) / s
    return -z + 2 * logistic_tail(z) - mp.log(s)


def complement(log_p):
    if log_p < -5000:
        return -mp.exp(log_p)
    return mp.log1p(-mp.exp(log_p)) if log_p < -1 else mp.log(-mp.expm1(log_p))


def tails(name, lower, upper, arguments):
    return {name: (lower, arguments), name + "_upper": (upper, arguments)}


def logistic_tail(z):
    if abs(z) > 5000:
        return -mp.exp(-z) if z > 0 else z
    return -mp.log1p(mp.exp(-z)) if z > 0 else z - mp.log1p(mp.exp(z))


def cauchy_tail(z):
    return mp.log(mp.atan2(1, -z) / mp.pi)


def normal_tail(z):
    if z > 0:
        return mp.log1p(-mp.erfc(z / mp.sqrt(2)) / 2)
    return mp.log(mp.erfc(-z / mp.sqrt(2)) / 2)


# name: (log density, arguments, whether these are parameters)
sizes = [1e-300, 1e-10, 0.3, 1.0, 2.5, 70.0, 1e5, 1e8, 1e15, 1e300]
few = [1e-300, 1e-8, 0.7, 40.0, 1e7, 1e15, 1e200]
shares = [1e-300, 1e-10, 0.3, 0.999, 1 - 2.0 ** -40]
counts = [0.0, 1.0, 3.0, 150.0, 1e6]
CASES = {
    "dnorm": (lambda x, m, s: -((x - m) / s) ** 2 / 2 - mp.log(s * mp.sqrt(2 * mp.pi)),
              ([-1e150, -3.0, 0.5, 1e15], [-1e100, 0.0, 0.25], [1e-100, 0.7, 1e8, 1e200])),
    "dlnorm": (lambda x, m, s: -((mp.log(x) - m) / s) ** 2 / 2 - mp.log(s * x * mp.sqrt(2 * mp.pi)),
               (few, [-3.0, 1e100], [1e-100, 0.7, 1e8, 1e200])),
    "dexp": (lambda x, r: mp.log(r) - r * x, (few, few)),
    "dgamma": (gamma, (few, sizes[:-1] + [1e12], [1e-5, 2.0, 1e10])),
    "dchisq": (lambda x, n: gamma(x, n / 2, half), (few, sizes)),
    "dweibull": (lambda x, a, s: mp.log(a / s) + (a - 1) * mp.log(x / s) - (x / s) ** a,
                 (few, [0.1, 0.7, 3.0, 1e5], [1e-100, 0.8, 1e15])),
    "dbeta": (beta, (shares, sizes[:-1], sizes[:-1])),
    "dt": (student, ([-1e200, -1e5, -3.0, -0.5, 1e-10, 0.8, 30.0, 1e8], sizes[1:] + [1e-100])),
    "dcauchy": (lambda x, m, s: -mp.log1p(((x - m) / s) ** 2) - mp.log(mp.pi * s),
                ([-1e200, -3.0, 0.5, 1e15], [-1e100, 0.0, 0.25], [1e-100, 0.7, 1e8, 1e200])),
    "dlogis": (logistic,
               ([-1e200, -3.0, 0.5, 1e15], [-1e100, 0.0, 0.25], [1e-100, 0.7, 50.0, 1e200])),
    "dbinom": (binomial, (counts, [1.0, 3.0, 151.0, 1e6, 1e9], shares)),
    "dbinom_logit": (binomial_logit, (counts, [1.0, 3.0, 151.0, 1e6], [-700.0, -40.0, 0.3, 4.0, 40.0])),
    "dpois": (lambda x, m: (x * mp.log(m) if x else 0) - m - mp.loggamma(x + 1), (counts, sizes)),
    "dnbinom": (lambda x, n, m: negative(x, n) - n * mp.log1p(m / n) + (x * mp.log(m / (n + m)) if x else 0),
                (counts, sizes + [1e-305, 1e7], [1e-300, 1e-8, 0.3, 3.0, 149.0, 1e6, 1e12])),
    "dnbinom_prob": (lambda x, n, p: negative(x, n) + n * mp.log(p) + (x * mp.log1p(-p) if x else 0),
                     (counts, sizes, shares)),
    "dgeom": (lambda x, p: mp.log(p) + x * mp.log1p(-p), (counts, shares)),
}
places = ([-1e120, -3.0, 0.5, 1e15], [-1e100, 0.0, 0.25], [1e-30, 0.7, 1e8, 1e200])
CASES.update(tails("plogis", lambda q, m, s: logistic_tail((q - m) / s),
                   lambda q, m, s: logistic_tail((m - q) / s), places))
CASES.update(tails("pcauchy", lambda q, m, s: cauchy_tail((q - m) / s),
                   lambda q, m, s: cauchy_tail((m - q) / s), places))
CASES.update(tails("pnorm", lambda q, m, s: normal_tail((q - m) / s),
                   lambda q, m, s: normal_tail((m - q) / s),
                   ([-1e5, -3.0, 0.5, 20.0], [-40.0, 0.0, 0.25], [0.5, 0.7, 1e8, 1e200])))
CASES.update(tails("pexp", lambda q, r: complement(-r * q), lambda q, r: -r * q, (few, few)))
CASES.update(tails("pweibull", lambda q, a, s: complement(-(q / s) ** a), lambda q, a, s: -(q / s) ** a,
                   (few, [1e-10, 0.7, 3.0], [1e-100, 0.8, 1e15])))
CASES.update(tails("pgeom", lambda q, p: complement((q + 1) * mp.log1p(-p)),
                   lambda q, p: (q + 1) * mp.log1p(-p), (counts, shares)))
DATA = {"pgeom": 1, "pgeom_upper": 1, "dbinom": 2, "dbinom_logit": 2, "dpois": 1, "dnbinom": 1, "dnbinom_prob": 1, "dgeom": 1}


def derivatives(f, at, first):
    """The value, and its derivatives by the arguments from number `first` on."""
    found = [f(*at)]
    for k in range(first, len(at)):
        h = (abs(at[k]) or mp.mpf(1)) * mp.mpf(10) ** (-mp.mp.dps // 7)
        up, down = list(at), list(at)
        up[k] += h
        down[k] -= h
        found.append((f(*up) - f(*down)) / (2 * h))
    return found


def row(name, f, point):
    first = DATA.get(name, 0)
    extreme = any(v and not 1e-20 < abs(v) < 1e20 for v in point)
    mp.mp.dps = 800 if extreme else 100
    at = [mp.mpf(v) for v in point]
    want = derivatives(f, at, first)
    unit = [ROUNDING * abs(w) for w in want]
    for k in range(first, len(at)):
        moved = list(at)
        moved[k] *= 1 + ROUNDING
        unit = [u + abs(v - w) for u, v, w in zip(unit, derivatives(f, moved, first), want)]
    text = lambda v: repr(float(v)) if abs(v) < mp.mpf(10) ** 308 else ("Inf" if v > 0 else "-Inf")
    missing = ["NA"] * first
    cells = [text(v) for v in at] + ["NA"] * (3 - len(at))
    units = ["%.4g" % min(float(mp.log10(u)) if u else -400.0, 400.0) for u in unit]
    values = [text(want[0])] + missing + [text(v) for v in want[1:]] + ["NA"] * (3 - len(at))
    return ",".join([name] + cells + values + [units[0]] + missing + units[1:] + ["NA"] * (3 - len(at)))


class Tail:
    """A tail of a beta variable with shapes a and b, below x = 1 - y: its logarithm, and the derivatives of this
    by log(x / y), a and b, by the integral over the logit."""

    def __init__(self, x, y, a, b):
        share = lambda u: -mp.log(y + x * mp.exp(-u))
        height = lambda u: -a * u + (a + b) * share(u)
        peak = max(mp.log(x) - mp.log(y) - mp.log(a) + mp.log(b), mp.mpf(0))
        step = mp.mpf(1)
        while height(peak) - height(peak + step) < 1:
            step *= 2
        while height(peak) - height(peak + step / 2) > 1:
            step /= 2
        ends, far = [peak], step
        while height(peak) - height(ends[-1]) < 130:
            ends.append(peak + far)
            far *= mp.mpf(1.7)
        if peak > 0:
            far = step
            while far < peak and height(peak) - height(ends[0]) < 130:
                ends.insert(0, peak - far)
                far *= mp.mpf(1.7)
            ends.insert(0, max(peak - far, mp.mpf(0)))
        weight = lambda u: mp.exp(height(u) - height(peak))
        whole = mp.quad(weight, ends)
        mean = lambda f: mp.quad(lambda u: f(u) * weight(u), ends) / whole
        n = a + b
        front = a * mp.log(x) + b * mp.log(y) - mp.loggamma(a) - mp.loggamma(b) + mp.loggamma(n)
        self.value = front + height(peak) + mp.log(whole)
        by_a = mp.log(x) - mp.digamma(a) + mp.digamma(n) + mean(lambda u: share(u) - u)
        by_b = mp.log(y) - mp.digamma(b) + mp.digamma(n) + mean(share)
        self.slopes = [mp.exp(front - self.value), by_a, by_b]

    def other(self, near):
        """This tail from the one on the other side."""
        share = mp.exp(near.value)
        self.value = mp.log1p(-share)
        self.slopes = [-share / (1 - share) * s for s in near.slopes]


def beta_tails(x, a, b, y=None):
    mp.mp.dps = 60 + int(max(abs(mp.log10(v)) for v in (x, a, b)))
    y = 1 - x if y is None else y
    lower, upper = Tail(x, y, a, b), Tail(y, x, b, a)
    upper.slopes = [-upper.slopes[0], upper.slopes[2], upper.slopes[1]]
    if lower.value > upper.value:
        lower.other(upper)
    else:
        upper.other(lower)
    return lower, upper, y


def tail_rows(name, point, tail, slopes, moves):
    """`slopes` by the parameters; `moves` of the value for one relative change of each argument."""
    unit = ROUNDING * (abs(tail.value) + sum(abs(m) for m in moves))
    text = lambda v: repr(float(v))
    level = lambda v: "%.4g" % max(float(mp.log10(v)), -400.0)
    blank = ["NA"] * (3 - len(slopes))
    units = [level(abs(s) * (ROUNDING + unit / abs(tail.value)) + ROUNDING * abs(moves[0]) / sum(point[1:]))
             for s in slopes]
    return ",".join([name] + [text(v) for v in point] + [text(tail.value)] + blank +
                    [text(s) for s in slopes] + [level(unit)] + blank + units)


def tail_table():
    """Shapes from 0.3 to 1e16, at the mean and far out."""
    shapes = [0.3, 4.0, 30.0, 1e3, 1e7, 3e11, 1e15]
    turn = 0
    for a, b, z in itertools.product(shapes, shapes, [-20, -2, 0, 0.7, 6]):
        turn += 1
        if turn % 8:
            continue
        logit = mp.log(a) - mp.log(b) + z * mp.sqrt(1 / mp.mpf(a) + 1 / mp.mpf(b))
        x = mp.mpf(float(1 / (1 + mp.exp(-logit))))
        if not 0 < x < 1:
            continue
        point = [x, mp.mpf(a), mp.mpf(b)]
        lower, upper, y = beta_tails(*point)
        for name, tail in (("pbeta", lower), ("pbeta_upper", upper)):
            by_logit, by_a, by_b = tail.slopes
            slopes = [by_logit / (x * y), by_a, by_b]
            if abs(tail.value) > 1e-290:
                print(tail_rows(name, point, tail, slopes, [p * s for p, s in zip(point, slopes)]), flush=True)
    turn = 0
    for k, size, mean in itertools.product([1.0, 3.0, 150.0, 1e6], [0.3, 2.5, 1e4, 1e9, 1e15], [1e-8, 0.3, 3.0, 149.0, 1e6]):
        size, mean = mp.mpf(size), mp.mpf(mean)
        turn += 1
        if turn % 6:
            continue
        mp.mp.dps = 100
        x, y = mean / (size + mean), size / (size + mean)
        upper, lower, y = beta_tails(x, mp.mpf(k), size, y)
        for name, tail in (("pnbinom", lower), ("pnbinom_upper", upper)):
            by_logit, by_k, by_size = tail.slopes
            slopes = [by_size - by_logit / size, by_logit / mean]
            point = [mp.mpf(k - 1), size, mean]
            if abs(tail.value) > 1e-290:
                print(tail_rows(name, point, tail, slopes, [size * slopes[0], by_logit]), flush=True)


print("name,a,b,c,value,by_a,by_b,by_c,unit,unit_a,unit_b,unit_c")
for case, (density, arguments) in CASES.items():
    turn = 0
    for values in itertools.product(*arguments):
        if case.startswith("dbinom") and values[0] > values[1]:
            continue
        turn += 1
        if turn % 3 and case[0] == "p":
            continue
        if turn % 4 and case in ("dgamma", "dbeta", "dnbinom", "dnbinom_prob"):
            continue
        print(row(case, density, values), flush=True)
tail_table()
