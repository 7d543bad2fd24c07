/* Properties of files that the package checks before it changes them. */
#ifndef SCL_BASE_FILES_H
#define SCL_BASE_FILES_H

#include <stdint.h>

typedef enum {
  SCL_PATH_NONE,   /* there is nothing */
  SCL_PATH_FILE,   /* a plain file of this user's */
  SCL_PATH_FOLDER, /* a folder of this user's */
  SCL_PATH_OTHER   /* a link, of another user, or neither file nor folder */
} scl_path_kind;

/* Links are not followed at the path itself. */
scl_path_kind scl_path_kind_of(const char *path);
/* Bytes that this user can still write in a folder; UINT64_MAX if the system does not say. */
uint64_t scl_path_room(const char *folder);

#endif
