#!/usr/bin/env bash
# Our declarations of OpenCL (src/engine/cl/runtime: opencl.h, codes.def, functions.def) against the
# system's headers: each type, constant, error and function, and a planted fault of each kind, which
# must be found. Compiled by $CC, else the compiler of the build. Ends with counts.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
read -ra cc <<< "${CC:-$(R CMD config CC 2> /dev/null || echo cc)}"
readonly from=src/engine/cl/runtime
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! printf '#include <CL/cl.h>\n' | "${cc[@]}" -fsyntax-only -xc - 2> "$work/log"; then
  echo "the OpenCL headers are not here: nothing to compare"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

# A statement for each declaration of the folder $1, over the system's headers.
statements() {
  cat << 'END'
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
END
  local same='_Static_assert(_Generic((\2 *)0, \1*: 1, default: 0), "\2");'
  sed -nE -e "s/^typedef (.*[ *])(cl_\w+);/$same/p" \
    -e 's/^#define (CL_\w+) ([0-9(].*)/_Static_assert(\1 == (\2), "\1");/p' \
    -e 's/^SCL_CL_CODE\((\w+), (.+)\)/_Static_assert(\1 == (\2), "\1");/p' \
    "$1/opencl.h" "$1/codes.def"
  cat << 'END'
_Static_assert(sizeof(cl_buffer_region) == 2 * sizeof(size_t), "cl_buffer_region");
_Static_assert(offsetof(cl_buffer_region, size) == sizeof(size_t), "cl_buffer_region");
#define SCL_CL_FN(result, name, parameters) \
  static result(CL_API_CALL *const our_##name) parameters = name;
END
  cat "$1/functions.def"
}

compiles() {
  statements "$1" > "$work/all.c"
  "${cc[@]}" -std=c11 -Wall -Wno-unused -Werror -include stddef.h -fsyntax-only "$work/all.c" \
    2> "$work/log"
}

passed=0 failed=0
if compiles "$from"; then
  passed=$(grep -c '^_Static_assert\|^SCL_CL_FN' "$work/all.c")
else
  failed=$(grep -c 'error:' "$work/log")
  cat "$work/log"
fi

# plant FILE FROM TO: one declaration is wrong.
plant() {
  mkdir -p "$work/wrong"
  cp "$from"/{opencl.h,codes.def,functions.def} "$work/wrong"
  sed -i "s/$2/$3/" "$work/wrong/$1"
  if cmp -s "$from/$1" "$work/wrong/$1" || compiles "$work/wrong"; then
    failed=$((failed + 1))
    echo "not found: $2 as $3 in $1"
  else
    passed=$((passed + 1))
  fi
}
plant opencl.h 'int64_t cl_long' 'int32_t cl_long'
plant opencl.h '\*cl_mem;' '*cl_event;'
plant opencl.h 'CL_MAP_WRITE (1 << 1)' 'CL_MAP_WRITE (1 << 2)'
plant codes.def '-54' '-55'
plant functions.def 'clFlush, (cl_command_queue)' 'clFlush, (cl_context)'

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
