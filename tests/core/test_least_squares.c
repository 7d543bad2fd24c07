/* Residuals of least squares with twice the digits. */
#include <math.h>

#include "ops/least_squares.h"
#include "test.h"

/* Products and sums that a double rounds away: (1 + t)(1 - t) is 1 - t^2. */
void test_least_squares(scl_context *ctx) {
  (void)ctx;
  const double t = 0x1p-30, square = 0x1p-60;
  double x[6] = {1 + t, 1 - t, 1, 0, 1e300, -1e300}, gap[3], slope[2];
  double y[3] = {1, 1, 2}, beta[2] = {1 - t, 0}, rest[3] = {0, t, 1};
  CHECK_OK(scl_least_squares_gaps(x, 3, 2, y, beta, rest, gap, slope));
  CHECK(gap[0] == square);
  CHECK(gap[1] == t - square); /* 1 - t - (1 - t)^2 */
  CHECK(gap[2] == t);
  CHECK(slope[0] == 1 + t - square);
  CHECK(slope[1] == t * 1e300 - 1e300);
  double big[3] = {1e16, 1, -1e16};
  CHECK_OK(scl_least_squares_gaps(x, 3, 0, y, beta, big, gap, slope));
  CHECK(gap[1] == 0);
  double ones[3] = {1, 1, 1}, none = 0;
  CHECK_OK(scl_least_squares_gaps(ones, 3, 1, y, &none, big, gap, slope));
  CHECK(slope[0] == 1);
  CHECK_OK(scl_least_squares_gaps(x, 0, 0, y, beta, rest, gap, slope));
  /* y - x beta = 2^-60, added to 1e16 and its negative; the squares are 2^-120 */
  double sum[2] = {1e16, 0}, lost[2] = {0, 0}, minus[1] = {-1e16}, unit[1] = {1};
  CHECK_OK(scl_least_squares_slope(x, 1, 1, y, beta, sum, lost));
  CHECK(sum[1] + lost[1] == square * square);
  CHECK_OK(scl_least_squares_slope(minus, 1, 1, unit, &none, sum, lost));
  CHECK(sum[0] == 0 && lost[0] == (1 + t) * square);
  CHECK_OK(scl_least_squares_slope(x, 0, 1, y, beta, sum, lost));
  CHECK(sum[0] == 0 && sum[1] == 1);
  double of[4] = {2, 4, 7, 8}, root[4] = {2, 5, 3, 4}; /* the 5 below the diagonal is not read */
  scl_solve_right(of, 2, 2, root);
  CHECK(of[0] == 1 && of[1] == 2 && of[2] == 1 && of[3] == 0.5);
  /* x = (3, 4)' and y = (1, 2)': one reflection, R = -5, b = 11/25 */
  double line[2] = {3, 4}, qr[2] = {-5, 0.8}, aux = 1.6, r = -5, two[2] = {1, 2}, b, left[2];
  CHECK_OK(scl_least_squares(&(scl_reflections){2, 1, line, qr, &aux, &r}, two, &b, left));
  CHECK(b == 0.44 && left[0] == -0.32 && fabs(left[1] - 0.24) < 1e-16);
}
