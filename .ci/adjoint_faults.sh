#!/usr/bin/env bash
# Plants faults in copies of the rules of reverse mode (src/program/reverse*.c), which the suites of
# tests/core then use: each fault must be found. A fault is a wrong sign: of the derivative of an
# elementwise operation with respect to one operand, or of one value that a rule makes. A derivative
# that is zero everywhere is replaced by one. tests/core must have been built, with CC and SANITIZE
# as here. Each fault is planted once in six days (turn.sh).
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. .ci/turn.sh
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects=$PWD/${STATCL_CORE_OBJECTS:-build/core}
export STATCL_TEST_SMALL=1 STATCL_TEST_FIRST=1 ASAN_OPTIONS=detect_leaks=0

# All faults are compiled into one program; ADJOINT_FAULT says which one is there.
cat > "$work/fault.h" << 'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "program/tape.h"
static inline int planted(scl_tape *t, const char *name, int right, int zero) {
  const char *fault = getenv("ADJOINT_FAULT");
  if (fault == NULL || strcmp(fault, name) != 0 || t->status != SCL_OK) return right;
  if (right < 0) return zero;
  const scl_value *v = &t->value[right];
  if (v->kind == SCL_VALUE_APPLY && v->op == SCL_OP_EQ) _Exit(77); /* true with either sign */
  return scl_tape_unary(t, SCL_OP_NEG, right);
}
END
cat > "$work/rules.h" << 'END'
#define TEXT_OF(x) #x
#define NAME(x) TEXT_OF(x)
#define FAULT(make, t, ...) planted(t, "rule " NAME(__COUNTER__), (make)(t, __VA_ARGS__), -1)
#define scl_tape_binary(t, ...) FAULT(scl_tape_binary, t, __VA_ARGS__)
#define scl_tape_unary(t, ...) FAULT(scl_tape_unary, t, __VA_ARGS__)
#define scl_tape_ifelse(t, ...) FAULT(scl_tape_ifelse, t, __VA_ARGS__)
#define scl_tape_times(t, ...) FAULT(scl_tape_times, t, __VA_ARGS__)
#define scl_tape_over(t, ...) FAULT(scl_tape_over, t, __VA_ARGS__)
#define scl_tape_broadcast(t, ...) FAULT(scl_tape_broadcast, t, __VA_ARGS__)
#define scl_tape_transpose(t, ...) FAULT(scl_tape_transpose, t, __VA_ARGS__)
#define scl_tape_part(t, ...) FAULT(scl_tape_part, t, __VA_ARGS__)
#define scl_tape_reduce(t, ...) FAULT(scl_tape_reduce, t, __VA_ARGS__)
#define scl_tape_gather(t, ...) FAULT(scl_tape_gather, t, __VA_ARGS__)
#define scl_tape_cumsum(t, ...) FAULT(scl_tape_cumsum, t, __VA_ARGS__)
#define scl_tape_matmul(t, ...) FAULT(scl_tape_matmul, t, __VA_ARGS__)
#define scl_tape_call(t, ...) FAULT(scl_tape_call, t, __VA_ARGS__)
#define scl_share_whole(r, value, ...) \
  (scl_share_whole)(r, value, planted((r)->t, "rule " NAME(__COUNTER__), __VA_ARGS__, -1))
#define scl_share_some(r, value, ...) \
  do { \
    scl_partial p_ = __VA_ARGS__; \
    p_.share = planted((r)->t, "rule " NAME(__COUNTER__), p_.share, -1); \
    (scl_share_some)(r, value, p_); \
  } while (0)
END
sed -e 's|^#include "program/reverse.h"|#include "fault.h"\n&|' -e '/---- rules/r '"$work/rules.h" \
  src/program/reverse.c > "$work/reverse.c"
sed -e 's|^#include "program/tape.h"|#include "fault.h"|' \
  -e 's|^int scl_tape_slope|static int right_slope|' src/program/reverse_elementwise.c \
  > "$work/reverse_elementwise.c"
cat >> "$work/reverse_elementwise.c" << 'END'
int scl_tape_slope(scl_tape *t, int value, int k, int g) {
  char name[60];
  snprintf(name, sizeof name, "%s %d", scl_op_name((scl_op)t->value[value].op), k);
  return planted(t, name, right_slope(t, value, k, g), g);
}
END

readonly sanitize=${SANITIZE--fsanitize=address,undefined -fno-sanitize-recover=undefined}
# shellcheck disable=SC2086 # several words each
${CC:-cc} -std=c11 -O1 -Isrc -Iinst -I"$work" $sanitize -c "$work/reverse.c" -o "$work/reverse.o" &&
  ${CC:-cc} -std=c11 -O1 -Isrc -Iinst -I"$work" $sanitize -c "$work/reverse_elementwise.c" \
    -o "$work/reverse_elementwise.o" &&
  ${CC:-cc} $sanitize -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -o "$work/tests" "$work"/*.o \
    $(find "$objects" -name '*.o' ! -path '*/program/reverse.o' \
      ! -path '*/program/reverse_elementwise.o') \
    ${BLAS_LIBS:--llapack -lblas} -lm -lpthread -ldl || exit 1

suites() {
  (cd tests/core && STATCL_TEST_TURN='' "$work/tests" program program_random scan) \
    > "$work/out" 2>&1
}

if ! suites; then
  echo "the suites fail without a fault"
  tail -n 5 "$work/out"
  exit 1
fi

number=0

# fault NAME
fault() {
  local status=0
  number=$((number + 1))
  in_turn "$number" 6 || return 0
  ADJOINT_FAULT=$1 suites || status=$?
  if [ "$status" = 77 ]; then
    skipped=$((skipped + 1))
  elif [ "$status" != 0 ] && grep -q '^FAILED' "$work/out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "not found: the sign of '$1'"
  fi
}

# Operations whose derivatives are unknown, never asked for or without effect (a shift cancels), and
# operands that are none to differentiate by.
without='^(pentagamma|shift|log_.*_slope(_[ab])?|round_to) |'
readonly without+='^(bessel_k_scaled|stirling_slope) 1$'
operations() {
  perl -0ne 'my %count = (UN => 1, BIN => 2, TERN => 3);
    while (/^SCL_(UN|BIN|TERN)ARY\(\w+,\s*(\w+)/gm) {
      print "$2 $_\n" for 0 .. $count{$1} - 1;
    }' inst/kernels/include/elementwise.def | grep -vE "$without"
}
while read -r name; do fault "$name"; done < <(operations; echo 'log_pnorm_slope 0')
rules=$(${CC:-cc} -std=c11 -E -Isrc -Iinst -I"$work" "$work/reverse.c" |
  grep -o '"rule " "[0-9]*"' | wc -l)
for ((rule = 0; rule < rules; rule++)); do fault "rule $rule"; done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$rules" -gt 50 ]
