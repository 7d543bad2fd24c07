functions {
#include double.stan
}
model { target += double_it(1); }
