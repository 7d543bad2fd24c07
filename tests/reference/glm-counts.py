# Writes glm-counts.csv: log densities of counts from 0 to 4e15 and their derivatives, where the
# means are near the counts and far from them, and phi is tiny, ordinary or all but infinite. By the
# textbook formulas in arithmetic of 800 digits, to 34. Needs mpmath. Run in this folder:
#
#   python3 glm-counts.py
#
# Columns: family, y, datum (trials), eta, own (phi); value, d_eta, d_own (by phi), and curve, minus
# the second derivative by eta.

import csv
import math

from mpmath import exp, log, loggamma, mp, mpf, nstr, psi

mp.dps = 800
rows = []


def digits(x):
    return "NA" if x is None else nstr(x, 34, min_fixed=0, max_fixed=0)


def add(family, y, datum, eta, own, value, d_eta, d_own, curve):
    exact = lambda x: "NA" if x is None else repr(float(x))
    rows.append([family, exact(y), exact(datum), repr(float(eta)), exact(own), digits(value),
                 digits(d_eta), digits(d_own), digits(curve)])


def etas(centre, spread):
    """Around `centre` by parts of `spread`, the standard deviation by eta, and far off."""
    near = [centre + part * spread for part in (-2.7, -0.4, 0.0, 0.031, 1.3)]
    return near + [centre + off for off in (-700, -40, -3, -0.26, -0.24, 0.24, 0.26, 3, 40)]


# ---- poisson_log --------------------------------------------------------------------------------
for y in (1, 30, 255, 256, 1000, 123456, 10**9, 4 * 10**15):
    for eta in etas(math.log(y), 1 / math.sqrt(y)):
        if eta > 700:
            continue
        mean = exp(mpf(eta))
        add("poisson_log", y, None, eta, None, y * mpf(eta) - mean - loggamma(mpf(y) + 1), y - mean,
            None, mean)

# ---- binomial_logit -----------------------------------------------------------------------------
for y, n in ((255, 510), (256, 512), (300, 700), (700, 1000), (200, 10**9), (300, 10**9),
             (5 * 10**8, 10**9), (999999000, 10**9), (123456789, 10**9), (10**15, 4 * 10**15)):
    for eta in etas(math.log(y / (n - y)), math.sqrt(1 / y + 1 / (n - y))):
        p = 1 / (1 + exp(-mpf(eta)))
        choose = loggamma(mpf(n) + 1) - loggamma(mpf(y) + 1) - loggamma(mpf(n - y) + 1)
        value = choose + y * log(p) + (n - y) * log(1 - p)
        add("binomial_logit", y, n, eta, None, value, y - n * p, None, n * p * (1 - p))

# ---- neg_binomial_2_log -------------------------------------------------------------------------
for y in (0, 1, 5, 100, 255, 256, 3000, 10**9, 4 * 10**15):
    for phi in (1e-300, 1e-170, 1e-9, 0.02, 1.0, 7.5, 255.5, 1e5, 1e9, 1e13, 1e25, 1e300):
        centre = math.log(max(y, 1))
        for eta in etas(centre, math.sqrt(1 / max(y, 1) + 1 / max(phi, 1e-3))):
            mean = exp(mpf(eta))
            f = mpf(phi)
            rising = loggamma(y + f) - loggamma(f) - loggamma(mpf(y) + 1)
            add("neg_binomial_2_log", y, None, eta, phi,
                rising + y * (mpf(eta) - log(mean + f)) + f * (log(f) - log(mean + f)),
                (y - mean) * f / (mean + f),
                psi(0, y + f) - psi(0, f) + log(f) - log(mean + f) + (mean - y) / (mean + f),
                (y + f) * f * mean / (mean + f) ** 2)

with open("glm-counts.csv", "w", newline="") as file:
    out = csv.writer(file, lineterminator="\n")
    out.writerow(["family", "y", "datum", "eta", "own", "value", "d_eta", "d_own", "curve"])
    out.writerows(rows)
