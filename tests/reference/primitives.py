"""Writes the rows of src/engine/cl/runtime/primitives.def, the numbers with which a device is tried:

    python3 tests/reference/primitives.py > src/engine/cl/runtime/primitives.def

Values are exact rational numbers, or of 60 digits (exp, log, pow), rounded to double precision
here. Of random numbers those are taken whose exact results lie closest to the middle of two
doubles: whoever computes with a smaller or larger error rounds them to the wrong side."""
import math
import random
import struct
from decimal import Decimal, getcontext
from fractions import Fraction

getcontext().prec = 60
random.seed(20261128)
HARD, EASY = 5, 2
inf, nan = math.inf, math.nan


def ulp(x):
    return Fraction(math.ulp(float(x)))


def number(low=-30, high=30):
    return math.ldexp(random.choice([-1, 1]) * (1 + random.getrandbits(52) / 2**52),
                      random.randint(low, high))


def exact_root(a):
    """The square root of a fraction to about 200 bits."""
    scale = 1 << 400
    return Fraction(math.isqrt(int(a * scale * scale)), scale)


def distance(exact):
    """From the middle of two doubles, in units in the last place."""
    rest = exact / ulp(exact) % 1
    return abs(rest - Fraction(1, 2))


def rows_of(exact, draw, pool=3000):
    drawn = [draw() for _ in range(pool)]
    hard = sorted(drawn, key=lambda x: distance(exact(*map(Fraction, x))))[:HARD]
    return [(x, float(exact(*map(Fraction, x)))) for x in hard + drawn[:EASY]]


def precise(function, *x):
    return float(function(*(Decimal(v) for v in x)))


def bits(x):
    """The double with these bits, which must be no NaN."""
    value = struct.unpack("<d", struct.pack("<Q", x & (2**64 - 1)))[0]
    assert not math.isnan(value)
    return value


def write(name, x, value):
    def text(v):
        if math.isnan(v):
            return "NAN"
        if math.isinf(v):
            return "INFINITY" if v > 0 else "-INFINITY"
        if v == int(v) and abs(v) < 1e6 and (v != 0 or math.copysign(1, v) > 0):
            return f"{int(v)}.0"
        return v.hex().replace("0x1.0000000000000p", "0x1p")
    x = list(x) + [0.0] * (3 - len(x))
    print(f"ROW({name}, {', '.join(map(text, x))},\n    {text(value)})")


def pair():
    return number(), number()


def near_pair():
    a = number(0, 4)
    return a, a * random.uniform(0.3, 3)


print("""/* Numbers with which devices are tried (primitives.c): ROW(primitive, a, b, c, value). Written by
 * tests/reference/primitives.py. */""")
tiny, least, huge = math.ldexp(1, -1022), math.ldexp(1, -1074), math.ldexp(2 - 2**-52, 1023)
for x, v in rows_of(lambda a, b: a + b, near_pair):
    write("add", x, v)
write("add", (1.0, 2.0**-53), 1.0)
write("add", (1.0 + 2**-52, 2.0**-53), 1 + 2**-51)
write("add", (huge, huge), inf)
write("add", (inf, -inf), nan)
for x, v in rows_of(lambda a, b: a - b, near_pair):
    write("subtract", x, v)
write("subtract", (1.0, 2.0**-54), 1.0)
write("subtract", (1.0 + 2**-52, 1.0), 2.0**-52)
for x, v in rows_of(lambda a, b: a * b, pair):
    write("multiply", x, v)
write("multiply", (huge, 2.0), inf)
write("multiply", (0.0, inf), nan)
for x, v in rows_of(lambda a, b: a / b, pair):
    write("divide", x, v)
for x, v in [((1.0, 3.0), 1 / 3), ((1.0, 0.0), inf), ((0.0, 0.0), nan), ((-1.0, inf), -0.0),
             ((1.0, 49.0), float(Fraction(1, 49))), ((1.0, huge), float(1 / Fraction(huge)))]:
    write("divide", x, v)
for x, v in rows_of(exact_root, lambda: (abs(number()),)):
    write("root", x, v)
for a, v in [(2.0, math.sqrt(2)), (0.0, 0.0), (inf, inf), (-1.0, nan), (1 - 2**-53, 1 - 2**-53),
             (math.ldexp(3, -1074), float(exact_root(Fraction(3, 4)) / 2**536))]:
    write("root", (a,), v)


def fused_draw():
    a, b = pair()
    return a, b, -a * b * random.choice([1.0, 0.75, 2.0**-30, 2.0**52])


fused = rows_of(lambda a, b, c: a * b + c, fused_draw)
fused += [((a, b, -(a * b)), float(Fraction(a) * Fraction(b) - Fraction(a * b)))
          for a, b in (pair() for _ in range(3))]
for x, v in fused:
    write("fused", x, v)
for x, v in fused:  # of those that differ, both values are right: primitives.c
    write("contracted", x, v)
for _ in range(4):
    a, b = number(0, 10), number(-20, -10)
    write("sum_error", (a, b), float((Fraction(a) - Fraction(a + b)) + Fraction(b)))
for a in [1.0, -1.0, 0.1, 1e-10, 30.3, -30.3, 300.7, -700.1, 709.78, -745.1, 2.0**-60]:
    write("exponential", (a,), precise(Decimal.exp, a))
for a, v in [(710.0, inf), (-800.0, 0.0), (-inf, 0.0), (nan, nan)]:
    write("exponential", (a,), v)
for a in [2.0, 10.0, 0.1, 1 + 2**-52, 1 - 2**-53, 1.0001, 0.7, 1e300, 1e-300, least, 3.7e15]:
    write("logarithm", (a,), precise(Decimal.ln, a))
for a, v in [(1.0, 0.0), (0.0, -inf), (-1.0, nan), (inf, inf)]:
    write("logarithm", (a,), v)
for x in [(2.0, 0.5), (1.0000001, 1e9), (10.0, -300.0), (0.3, 77.7), (1.5, 1500.5), (7.0, 1 / 3)]:
    write("power", x, precise(lambda a, b: (b * a.ln()).exp(), *x))
for x, v in [((0.0, 0.0), 1.0), ((-2.0, 3.0), -8.0), ((-2.0, 0.5), nan), ((0.0, -1.0), inf),
             ((0.5, 1074.0), least)]:
    write("power", x, v)
for x in [(least, 3.0), (tiny, 0.5), (-2.0**-540, 2.0**-530), (tiny * 1.5, 2.0**-20),
          (2.0**-1060, 2.0**300)]:
    write("tiny_product", x, float(Fraction(x[0]) * Fraction(x[1])))
for x in [(tiny * (1 + 2**-52), tiny), (tiny, least), (least, 0.0), (5 * least, 7 * least)]:
    write("tiny_difference", x, float(Fraction(x[0]) - Fraction(x[1])))
for x, v in [((1.0, 1 + 2**-52), 1.0), ((2.0, -3.0), 2.0), ((-0.0, 0.0), 3.0), ((nan, 1.0), 4.0),
             ((nan, nan), 4.0), ((least, 0.0), 2.0), ((-inf, -huge), 1.0)]:
    write("order", x, v)
for a in [1.9999999999999998, -0.9999999999999999, 2147483647.0, -2147483648.0, 1234567.5]:
    write("to_int", (a,), float(int(a)))
for a in [2.0**62 + 2.0**11, -2.0**63, 2.0**53 + 2, 123456789012345.67, -4294967297.5]:
    write("to_long", (a,), float(int(a)))
for a in [0.5, 1.5, 2.5, -0.5, -2.5, 0.49999999999999994, 2.0**51 + 0.5, -7.3]:
    write("whole", (a,), float(round(a)) + 0.25 * math.floor(a))
for x, y, z in [(0x123456789ABCDEF, 0x0000000100000001, 77), (3, 0x15555555FFFFFFFF, 2**63),
                (0x7FE0000000000001, 0x0000000080000001, 0xFFFFFFFF)]:
    write("long_product", list(map(bits, (x, y, z))), bits(x * y + z))
for x, y in [(0x7FE123456789ABCD, 0x100000003), (0xFFE0000000000001, 7), (5, 0x7FE0000000000000)]:
    write("long_quotient", list(map(bits, (x, y))), bits(x // y))
for x, y in [(0x7FE123456789ABCD, 0x0000000FEDCBA987), (0xBFF0000000000001, 0x800000003)]:
    write("long_shift", list(map(bits, (x, y))), bits((x >> 21) ^ (y << 37)))
