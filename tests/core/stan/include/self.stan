model {
#include "self.stan"
}
