/* A digest of bytes, to name and to check files: it detects damage and different contents, but is
 * no protection against forgery. */
#ifndef SCL_BASE_DIGEST_H
#define SCL_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint64_t word[2];
} scl_digest;

enum { SCL_DIGEST_TEXT = 33 }; /* hexadecimal digits and the end */

scl_digest scl_digest_begin(void);
/* Adds the bytes and their number. */
void scl_digest_add(scl_digest *digest, const void *bytes, size_t count);
void scl_digest_write(const scl_digest *digest, char text[SCL_DIGEST_TEXT]);

#endif
