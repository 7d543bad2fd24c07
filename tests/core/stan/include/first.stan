data { real x; }
#include <second.stan>
