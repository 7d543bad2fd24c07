#define _POSIX_C_SOURCE 200809L

#include "base/files.h"

#include <sys/stat.h>

#ifdef _WIN32
#include <windows.h>

scl_path_kind scl_path_kind_of(const char *path) {
  const DWORD found = GetFileAttributesA(path);
  if (found == INVALID_FILE_ATTRIBUTES) return SCL_PATH_NONE;
  if (found & (FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DEVICE)) return SCL_PATH_OTHER;
  return found & FILE_ATTRIBUTE_DIRECTORY ? SCL_PATH_FOLDER : SCL_PATH_FILE;
}

uint64_t scl_path_room(const char *folder) {
  ULARGE_INTEGER bytes;
  return GetDiskFreeSpaceExA(folder, &bytes, NULL, NULL) ? bytes.QuadPart : UINT64_MAX;
}

#else
#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

scl_path_kind scl_path_kind_of(const char *path) {
  struct stat found;
  if (lstat(path, &found) != 0) return errno == ENOENT ? SCL_PATH_NONE : SCL_PATH_OTHER;
  if (found.st_uid != geteuid()) return SCL_PATH_OTHER;
  if (S_ISREG(found.st_mode)) return SCL_PATH_FILE;
  return S_ISDIR(found.st_mode) ? SCL_PATH_FOLDER : SCL_PATH_OTHER;
}

uint64_t scl_path_room(const char *folder) {
  struct statvfs found;
  if (statvfs(folder, &found) != 0) return UINT64_MAX;
  return (uint64_t)found.f_bavail * found.f_frsize;
}

#endif
