  // included in functions
  real double_it(real x) { return 2 * x; }
