#!/usr/bin/env bash
# The OpenCL implementations that Debian has: each is loaded by itself, its devices are listed and
# chosen, and compute or are refused (.ci/implementations.R). What is not installed is skipped.
# STATCL_VENDORS names another folder of .icd files.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readonly vendors=${STATCL_VENDORS:-/etc/OpenCL/vendors}

# try NAME EXPECTED ICD [VARIABLE=VALUE...]
try() {
  local name=$1 expected=$2 icd=$3
  shift 3
  if [ ! -s "$icd" ]; then
    skipped=$((skipped + 1))
    echo "skipped: $name: $(basename "$icd") is not here"
    return
  fi
  rm -rf "$work/vendors"
  mkdir "$work/vendors"
  cp "$icd" "$work/vendors/"
  if bash .ci/watched.sh "$work/out" env OCL_ICD_VENDORS="$work/vendors" "$@" \
    Rscript .ci/implementations.R "$expected"; then
    passed=$((passed + 1))
    echo "$name: $(tail -n 1 "$work/out")"
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    tail -n 20 "$work/out"
  fi
}

simulator=$(find /usr/lib /usr/local/lib -name liboclgrind-rt-icd.so 2> /dev/null | head -n 1)
echo "$simulator" | grep . > "$work/oclgrind.icd"

try POCL one "$vendors/pocl.icd" POCL_DEVICES=pthread
try "POCL, two devices" two "$vendors/pocl.icd" POCL_DEVICES="basic pthread"
try "POCL, two devices of one name" two "$vendors/pocl.icd" POCL_DEVICES="pthread pthread"
try oclgrind one "$work/oclgrind.icd" OCLGRIND_CHECK_API=1
# Mesa 22.3 has no double precision on llvmpipe; later ones have it with this variable.
try "rusticl over llvmpipe" one "$vendors/rusticl.icd" RUSTICL_ENABLE=llvmpipe \
  RUSTICL_FEATURES=fp64
try "rusticl, no driver enabled" none "$vendors/rusticl.icd" RUSTICL_ENABLE=
if [ ! -e /dev/dri ]; then try "Clover, no GPU" none "$vendors/mesa.icd"; fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
