// Complex numbers and their containers.
data {
  int n;
  complex z;
  complex_vector[n] a;
  complex_row_vector[n] b;
  complex_matrix[n, n] d;
  vector[n] v;
  real x;
}
transformed data {
  complex i = 1i, sum_of = 1.5e-3i + 2 + x * z - z / 2;
  complex power = z ^ 2 + pow(z, 0.5) + exp(z) + conj(z) + to_complex(1, x) + polar(1, x);
  real parts = get_real(z) + get_imag(z) + abs(z) + arg(z) + norm(z);
  complex promoted = x;
  complex_vector[n] lifted = v;
  complex_vector[n] product = d * a + v - a .* a + 2 * v;
  complex_matrix[n, n] outer = a * b + d' + d * d;
  complex inner = b * a;
  complex_row_vector[n] turned = a';
  int same = z == 1i || z != x;
  complex_vector[n] spectrum = fft(a);
  tuple(complex_matrix[n, n], complex_vector[n]) eigen = eigendecompose(d);
  complex_row_vector[2] literal = [1i, 2];
  array[2] complex list = {z, 1};
  complex element = d[1, 2] + a[1] + list[2];
  complex_row_vector[n] row_of = d[1];
  complex_vector[n] column = d[ : , 1];
}
