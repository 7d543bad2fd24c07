/* Steps of a recursion that have the same inputs. */
#ifndef SCL_ENGINE_HOST_SCAN_SAME_H
#define SCL_ENGINE_HOST_SCAN_SAME_H
#include "engine/plan/scan.h"

/* How many steps after step t, counted in the order of computing, have its inputs, to the bit, in
 * `lanes` sequences from `first` on. */
size_t scl_scan_same(const scl_scan_pass *pass, size_t t, size_t first, size_t lanes);

#endif
