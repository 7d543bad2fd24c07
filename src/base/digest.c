/* Two sums of different kinds over the same bytes: FNV-1a, and multiplication with shifts. */
#include "base/digest.h"

#include <inttypes.h>
#include <stdio.h>

scl_digest scl_digest_begin(void) {
  return (scl_digest){{14695981039346656037u, 0x9e3779b97f4a7c15u}};
}

static void add_bytes(scl_digest *digest, const unsigned char *bytes, size_t count) {
  uint64_t a = digest->word[0], b = digest->word[1];
  for (size_t k = 0; k < count; k++) {
    a = (a ^ bytes[k]) * 1099511628211u;
    b = (b ^ bytes[k]) * 0xff51afd7ed558ccdu;
    b ^= b >> 32;
  }
  *digest = (scl_digest){{a, b}};
}

void scl_digest_add(scl_digest *digest, const void *bytes, size_t count) {
  unsigned char length[8];
  for (int k = 0; k < 8; k++) length[k] = (unsigned char)((uint64_t)count >> (8 * k));
  add_bytes(digest, length, sizeof length);
  add_bytes(digest, bytes, count);
}

void scl_digest_write(const scl_digest *digest, char text[SCL_DIGEST_TEXT]) {
  snprintf(text, SCL_DIGEST_TEXT, "%016" PRIx64 "%016" PRIx64, digest->word[0], digest->word[1]);
}
