/* Derivatives of elementwise operations as values of the program, so that they are fused with
 * adjacent operations and can be differentiated again. inst/kernels/include/elementwise.def has the
 * same formulas as text. */
#include "program/tape.h"

/* Formulas below are read from the inside out: TIMES(g, COS(a)) is g cos(a). */
#define N(x) scl_tape_number(t, x)
#define ADD(x, y) scl_tape_binary(t, SCL_OP_ADD, x, y)
#define SUB(x, y) scl_tape_binary(t, SCL_OP_SUB, x, y)
#define MUL(x, y) scl_tape_binary(t, SCL_OP_MUL, x, y)
#define DIV(x, y) scl_tape_binary(t, SCL_OP_DIV, x, y)
#define F(OP, x) scl_tape_unary(t, SCL_OP_##OP, x)
#define G(OP, x, y) scl_tape_binary(t, SCL_OP_##OP, x, y)
#define H(OP, x, y, z) scl_tape_apply(t, SCL_OP_##OP, 3, (const int[]){x, y, z})
#define IF(test, yes, no) scl_tape_ifelse(t, test, yes, no)
/* Of the derivative g: program/reverse_products.c. */
#define TIMES(g, d) scl_tape_times(t, g, d)
#define POLES(g, d) scl_tape_times_poles(t, g, d)
#define OVER(g, d) scl_tape_over(t, g, d)

enum { ZERO = -1 };

static int unknown_slope(scl_tape *t, const char *message) {
  if (t->status == SCL_OK) t->status = scl_fail_argument("f", "%s", message);
  return ZERO;
}

#define SHAPES "derivatives of pgamma() and pbeta() by their shapes are known up to the first"

/* The derivative of a log probability with respect to x: the density, exp(density), divided by the
 * probability, exp(r). */
static int probability_slope(scl_tape *t, int g, int density, int r) {
  return POLES(g, F(EXP, SUB(density, r)));
}

/* Logarithms of the densities of a gamma and a beta variable, as in incomplete_functions.h. */
static int gamma_density(scl_tape *t, int x, int a) {
  return SUB(H(GAMMA_POWER, x, a, N(1.0)), F(LOG, x));
}

static int beta_density(scl_tape *t, int x, int a, int b) {
  const int logs = ADD(F(LOG, x), F(LOG1P, F(NEG, x)));
  return SUB(H(BETA_POWER, x, a, b), logs);
}

/* Of the logarithm r of a gamma variable's tail: incomplete_gamma_quotient(). */
static int gamma_tail_slope(scl_tape *t, int g, int x, int a, int r) {
  const int d = F(ABS, SUB(x, a)), near = F(EXP, SUB(gamma_density(t, x, a), r));
  const int far = ADD(DIV(d, x), DIV(N(1.0), d));
  const int some = IF(G(GT, x, N(0.0)), near, N(0.0));
  return POLES(g, IF(G(LT, r, N(-1e5)), far, some));
}

/* The Stirling remainder's derivative of an order. */
static int stirling_slope(scl_tape *t, int x, double order) {
  return G(STIRLING_SLOPE, x, N(order));
}

/* Of log(m^a exp(-m) / gamma(a)), m = r x. */
static int gamma_power_slope(scl_tape *t, int k, int g, int x, int a, int r) {
  const int m = MUL(r, x);
  if (k != 1) return POLES(g, DIV(SUB(a, m), k == 0 ? x : r));
  return POLES(g, ADD(G(LOG_RATIO, m, a), SUB(DIV(N(0.5), a), stirling_slope(t, a, 1.0))));
}

/* Of log(x^a (1 - x)^b / beta(a, b)). */
static int beta_power_slope(scl_tape *t, int k, int g, int x, int a, int b) {
  const int y = SUB(N(1.0), x);
  if (k == 0) return POLES(g, SUB(DIV(a, x), DIV(b, y)));
  if (k == 1) return POLES(g, ADD(F(LOG, x), G(DIGAMMA_RISE, a, b)));
  return POLES(g, ADD(F(LOG1P, F(NEG, x)), G(DIGAMMA_RISE, b, a)));
}

/* Of the negative binomial log density of y by y, the mean and the size. */
static int neg_binomial_slope(scl_tape *t, int k, int g, int y, int mean, int size) {
  const int n = ADD(size, y);
  if (k == 1) {
    const int ratio = IF(G(EQ, y, N(0.0)), N(0.0), DIV(y, mean));
    return POLES(g, DIV(SUB(ratio, N(1.0)), ADD(N(1.0), DIV(mean, size))));
  }
  if (k == 2) return POLES(g, H(NEG_BINOMIAL_SLOPE, y, mean, size));
  const int logs = SUB(G(LOG_RATIO, n, ADD(size, mean)), G(LOG_RATIO, y, mean));
  return POLES(g, ADD(SUB(stirling_slope(t, n, 1.0), DIV(N(0.5), n)), logs));
}

/* Of its derivative by the size. */
static int size_slope(scl_tape *t, int k, int g, int y, int mean, int size) {
  const int n = ADD(size, y), m = ADD(size, mean), apart = DIV(SUB(y, mean), m);
  const int own = ADD(stirling_slope(t, n, 2.0), DIV(N(0.5), F(SQUARE, n)));
  if (k == 0) return POLES(g, SUB(own, DIV(apart, n)));
  if (k == 1) return POLES(g, DIV(apart, m));
  const int other = ADD(stirling_slope(t, size, 2.0), DIV(N(0.5), F(SQUARE, size)));
  return POLES(g, ADD(SUB(own, other), DIV(F(SQUARE, apart), n)));
}

/* Of (n + 1) / 2 log(1 + x^2 / n), and of its derivative by n. */
static int t_power_slope(scl_tape *t, scl_op op, int k, int g, int n, int x) {
  const int ratio = DIV(x, n), q = MUL(x, ratio), more = ADD(N(1.0), q);
  const int inverse = DIV(N(1.0), n);
  if (op == SCL_OP_T_POWER && k == 0) return POLES(g, G(T_POWER_SLOPE, n, x));
  if (op == SCL_OP_T_POWER) { /* x / (1 + q), in the tail 1 / (x / n + 1 / x) */
    const int far = G(GT, F(ABS, x), N(1.0)), tail = IF(far, x, N(1.0));
    const int slope = IF(far, DIV(N(1.0), ADD(ratio, DIV(N(1.0), tail))), DIV(x, more));
    return POLES(g, MUL(ADD(N(1.0), inverse), slope));
  }
  const int part = DIV(q, more), less = DIV(inverse, more);
  if (k == 1) return POLES(g, MUL(DIV(ratio, more), SUB(part, less)));
  return POLES(g, MUL(MUL(N(0.5), part), SUB(DIV(ADD(inverse, less), n), DIV(part, n))));
}

static int of_three(scl_tape *t, scl_op op, int k, int g, int value) {
  const int a = scl_tape_operand(t, value, 0), b = scl_tape_operand(t, value, 1);
  const int c = scl_tape_operand(t, value, 2), x[] = {a, b, c};
  if (op == SCL_OP_LOG_PBETA || op == SCL_OP_LOG_QBETA) {
    const bool upper = op == SCL_OP_LOG_QBETA;
    if (k == 0) {
      const int slope = probability_slope(t, g, beta_density(t, a, b, c), value);
      return upper ? F(NEG, slope) : slope;
    }
    op = k == 1 ? (upper ? SCL_OP_LOG_QBETA_SLOPE_A : SCL_OP_LOG_PBETA_SLOPE_A)
                : (upper ? SCL_OP_LOG_QBETA_SLOPE_B : SCL_OP_LOG_PBETA_SLOPE_B);
    return POLES(g, scl_tape_apply(t, op, 3, x));
  }
  if (op == SCL_OP_GAMMA_POWER) return gamma_power_slope(t, k, g, a, b, c);
  if (op == SCL_OP_BETA_POWER) return beta_power_slope(t, k, g, a, b, c);
  if (op == SCL_OP_NEG_BINOMIAL) return neg_binomial_slope(t, k, g, a, b, c);
  if (op == SCL_OP_NEG_BINOMIAL_SLOPE) return size_slope(t, k, g, a, b, c);
  if (op != SCL_OP_IFELSE) return unknown_slope(t, SHAPES);
  if (k == 0) return ZERO;
  return scl_tape_where(t, a, k == 1, g);
}

/* b a^(b - 1) and a^b log(a); 0 if the power is constant. */
static int power_slope(scl_tape *t, int k, int g, int a, int b, int r) {
  const scl_value *v = &t->value[b];
  if (k == 1) return POLES(g, IF(G(EQ, a, N(0.0)), N(0.0), MUL(r, F(LOG, a))));
  if (v->kind == SCL_VALUE_NUMBER) {
    return v->number == 0.0 ? ZERO : POLES(g, MUL(b, G(POW, a, N(v->number - 1.0))));
  }
  return POLES(g, IF(G(EQ, b, N(0.0)), N(0.0), MUL(b, G(POW, a, SUB(b, N(1.0))))));
}

/* digamma(a + 1) - digamma(a - b + 1), for the logarithm of a binomial coefficient. */
static int choose_slope(scl_tape *t, int a, int b) {
  const int whole = F(ROUND, b);
  return G(DIGAMMA_RISE, ADD(SUB(a, whole), N(1.0)), whole);
}

/* K' = |b| / a K - K of the next order, and exp(a) K has itself more. */
static int bessel_slope(scl_tape *t, int k, int g, int a, int b, int r) {
  if (k == 1) return unknown_slope(t, "the derivative of besselK() by its order is not known");
  const int order = F(ABS, b), next = G(BESSEL_K_SCALED, a, ADD(order, N(1.0)));
  return POLES(g, SUB(MUL(r, ADD(N(1.0), DIV(order, a))), next));
}

/* Of a share a b or a / b that is 0 where a is: by b it is 0 there too, whatever follows. */
static int of_share(scl_tape *t, scl_op op, int k, int g, int a, int b, int r) {
  if (op == SCL_OP_TIMES) return k == 0 ? scl_tape_times_again(t, g, a, b) : TIMES(a, g);
  return k == 0 ? scl_tape_over_again(t, g, a, b) : F(NEG, G(OVER, TIMES(r, g), b));
}

/* Parts of densities. */
static int of_density(scl_tape *t, scl_op op, int k, int g, int a, int b) {
  switch (op) {
  case SCL_OP_DEVIANCE:
    return POLES(g, k == 0 ? G(LOG_RATIO, a, b) : IF(G(EQ, a, N(0.0)), N(1.0), DIV(SUB(b, a), b)));
  case SCL_OP_LOG_RATIO:
    return k == 0 ? OVER(g, a) : F(NEG, OVER(g, b));
  case SCL_OP_T_POWER:
  case SCL_OP_T_POWER_SLOPE:
    return t_power_slope(t, op, k, g, a, b);
  case SCL_OP_DIGAMMA_RISE:
    if (k == 1) return POLES(g, F(TRIGAMMA, ADD(a, b)));
    return POLES(g, SUB(F(TRIGAMMA, ADD(a, b)), F(TRIGAMMA, a)));
  case SCL_OP_STIRLING_SLOPE: {
    const scl_value *order = &t->value[b];
    if (k == 1) return ZERO;
    if (order->kind != SCL_VALUE_NUMBER || !(order->number < 4.0)) {
      return unknown_slope(t, "the derivative of stirling_slope() is known up to order 4");
    }
    return POLES(g, stirling_slope(t, a, order->number + 1.0));
  }
  default:
    return unknown_slope(t, "the derivative of an operation of two operands is not known");
  }
}

static int of_two(scl_tape *t, scl_op op, int k, int g, int a, int b, int r) {
  switch (op) {
  case SCL_OP_ADD:
    return g;
  case SCL_OP_SUB:
    return k == 0 ? g : F(NEG, g);
  case SCL_OP_MUL:
    return TIMES(g, k == 0 ? b : a);
  case SCL_OP_DIV:
    return k == 0 ? OVER(g, b) : F(NEG, OVER(TIMES(g, r), b));
  case SCL_OP_TIMES:
  case SCL_OP_OVER:
    return of_share(t, op, k, g, a, b, r);
  case SCL_OP_POW:
    return power_slope(t, k, g, a, b, r);
  case SCL_OP_MOD:
    return k == 0 ? g : F(NEG, POLES(g, F(FLOOR, DIV(a, b))));
  case SCL_OP_PMIN:
  case SCL_OP_PMAX:
    return scl_tape_where(t, op == SCL_OP_PMIN ? G(LE, a, b) : G(GE, a, b), k == 0, g);
  case SCL_OP_ATAN2: {
    const int radius = ADD(F(SQUARE, a), F(SQUARE, b));
    return k == 0 ? POLES(g, DIV(b, radius)) : F(NEG, POLES(g, DIV(a, radius)));
  }
  case SCL_OP_LOG_PGAMMA:
    if (k == 1) return POLES(g, G(LOG_PGAMMA_SLOPE, a, b));
    return gamma_tail_slope(t, g, a, b, r);
  case SCL_OP_LOG_QGAMMA:
    if (k == 1) return POLES(g, G(LOG_QGAMMA_SLOPE, a, b));
    return F(NEG, gamma_tail_slope(t, g, a, b, r));
  case SCL_OP_LOG_PGAMMA_SLOPE:
  case SCL_OP_LOG_QGAMMA_SLOPE:
    return unknown_slope(t, SHAPES);
  case SCL_OP_BESSEL_K_SCALED:
    return bessel_slope(t, k, g, a, b, r);
  case SCL_OP_FILL_NAN:
    return k == 0 ? IF(F(IS_NAN, a), N(0.0), g) : IF(F(IS_NAN, a), g, N(0.0));
  case SCL_OP_LBETA:
    return F(NEG, POLES(g, k == 0 ? G(DIGAMMA_RISE, a, b) : G(DIGAMMA_RISE, b, a)));
  case SCL_OP_CHOOSE:
    return k == 0 ? POLES(g, MUL(r, choose_slope(t, a, b))) : ZERO;
  case SCL_OP_LCHOOSE:
    return k == 0 ? POLES(g, choose_slope(t, a, b)) : ZERO;
  case SCL_OP_EQ:
  case SCL_OP_NE:
  case SCL_OP_LT:
  case SCL_OP_GT:
  case SCL_OP_LE:
  case SCL_OP_GE:
  case SCL_OP_AND:
  case SCL_OP_OR:
  case SCL_OP_INTDIV:
  case SCL_OP_ROUND_TO:
    return ZERO;
  default:
    return of_density(t, op, k, g, a, b);
  }
}

/* 1 + a^2, 1 - a^2 and so on. */
static int with_square(scl_tape *t, double constant, double sign, int a) {
  return ADD(N(constant), MUL(N(sign), F(SQUARE, a)));
}

static int of_trigonometry(scl_tape *t, scl_op op, int g, int a, int r) {
  const double pi = 3.14159265358979323846;
  switch (op) {
  case SCL_OP_SIN:
    return TIMES(g, F(COS, a));
  case SCL_OP_COS:
    return F(NEG, TIMES(g, F(SIN, a)));
  case SCL_OP_TAN:
    return TIMES(g, with_square(t, 1.0, 1.0, r));
  case SCL_OP_SINPI:
    return TIMES(g, MUL(N(pi), F(COSPI, a)));
  case SCL_OP_COSPI:
    return TIMES(g, MUL(N(-pi), F(SINPI, a)));
  case SCL_OP_TANPI:
    return TIMES(g, MUL(N(pi), with_square(t, 1.0, 1.0, r)));
  case SCL_OP_ASIN:
    return OVER(g, F(SQRT, with_square(t, 1.0, -1.0, a)));
  case SCL_OP_ACOS:
    return F(NEG, OVER(g, F(SQRT, with_square(t, 1.0, -1.0, a))));
  case SCL_OP_ATAN:
    return OVER(g, with_square(t, 1.0, 1.0, a));
  case SCL_OP_SINH:
    return TIMES(g, F(COSH, a));
  case SCL_OP_COSH:
    return TIMES(g, F(SINH, a));
  case SCL_OP_TANH: /* 1 - r^2, without cancellation where r is close to 1 */
    return OVER(g, F(SQUARE, F(COSH, a)));
  case SCL_OP_ASINH:
    return OVER(g, F(SQRT, with_square(t, 1.0, 1.0, a)));
  case SCL_OP_ACOSH:
    return OVER(g, F(SQRT, with_square(t, -1.0, 1.0, a)));
  case SCL_OP_ATANH:
    return OVER(g, with_square(t, 1.0, -1.0, a));
  case SCL_OP_NOT:
  case SCL_OP_IS_NAN:
  case SCL_OP_IS_FINITE:
  case SCL_OP_IS_INFINITE:
  case SCL_OP_SIGN:
  case SCL_OP_CEILING:
  case SCL_OP_FLOOR:
  case SCL_OP_TRUNC:
  case SCL_OP_ROUND:
    return ZERO;
  default:
    return unknown_slope(t, "the derivative of an operation of one operand is not known");
  }
}

static int of_special(scl_tape *t, scl_op op, int g, int a, int r) {
  switch (op) {
  case SCL_OP_GAMMA:
    return POLES(g, MUL(r, F(DIGAMMA, a)));
  case SCL_OP_LGAMMA:
    return POLES(g, F(DIGAMMA, a));
  case SCL_OP_DIGAMMA:
    return POLES(g, F(TRIGAMMA, a));
  case SCL_OP_TRIGAMMA:
    return POLES(g, F(TETRAGAMMA, a));
  case SCL_OP_TETRAGAMMA:
    return POLES(g, F(PENTAGAMMA, a));
  case SCL_OP_PENTAGAMMA:
    return unknown_slope(t, "derivatives of trigamma() are known up to the second");
  case SCL_OP_STIRLING:
    return POLES(g, stirling_slope(t, a, 1.0));
  case SCL_OP_ERF:
    return TIMES(g, MUL(N(1.1283791670955126), F(EXP, F(NEG, F(SQUARE, a)))));
  case SCL_OP_ERFC:
    return TIMES(g, MUL(N(-1.1283791670955126), F(EXP, F(NEG, F(SQUARE, a)))));
  case SCL_OP_PNORM:
    return TIMES(g, F(DNORM, a));
  case SCL_OP_LOG_PNORM:
    return TIMES(g, F(LOG_PNORM_SLOPE, a));
  case SCL_OP_LOG_PNORM_SLOPE:
    return F(NEG, TIMES(g, MUL(r, ADD(a, r))));
  case SCL_OP_DNORM:
    return F(NEG, TIMES(g, MUL(a, r)));
  case SCL_OP_QNORM:
    return OVER(g, F(DNORM, r));
  case SCL_OP_LOG_QNORM:
    return OVER(g, F(LOG_PNORM_SLOPE, r));
  default:
    return of_trigonometry(t, op, g, a, r);
  }
}

static int of_one(scl_tape *t, scl_op op, int g, int a, int r) {
  switch (op) {
  case SCL_OP_NEG:
    return F(NEG, g);
  case SCL_OP_ABS:
    return TIMES(g, F(SIGN, a));
  case SCL_OP_SQUARE:
    return TIMES(g, MUL(N(2.0), a));
  case SCL_OP_SQRT:
    return OVER(MUL(N(0.5), g), r);
  case SCL_OP_EXP:
    return TIMES(g, r);
  case SCL_OP_EXPM1:
    return TIMES(g, ADD(r, N(1.0)));
  case SCL_OP_LOG:
    return OVER(g, a);
  case SCL_OP_LOG1P:
    return OVER(g, ADD(N(1.0), a));
  case SCL_OP_LOG2:
    return POLES(g, DIV(N(1.4426950408889634), a));
  case SCL_OP_LOG10:
    return POLES(g, DIV(N(0.4342944819032518), a));
  case SCL_OP_INV_LOGIT: /* r (1 - r), without cancellation in the upper tail */
    return TIMES(g, MUL(r, F(INV_LOGIT, F(NEG, a))));
  case SCL_OP_LOG1M_EXP:
    return F(NEG, OVER(g, F(EXPM1, F(NEG, a))));
  case SCL_OP_LOG1P_EXP:
    return TIMES(g, F(INV_LOGIT, a));
  default:
    return of_special(t, op, g, a, r);
  }
}

int scl_tape_slope(scl_tape *t, int value, int k, int g) {
  const scl_value v = t->value[value];
  const scl_op op = (scl_op)v.op;
  const int a = scl_tape_operand(t, value, 0);
  if (v.operands == 1) return of_one(t, op, g, a, value);
  if (v.operands == 2) return of_two(t, op, k, g, a, scl_tape_operand(t, value, 1), value);
  return of_three(t, op, k, g, value);
}
