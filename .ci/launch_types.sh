#!/usr/bin/env bash
# Launches of kernels are typed: arguments of different kind cannot be exchanged. Each case is a
# call that must not compile, and the first a call that must. Compiled by $CC, else the compiler of
# the build, with the warnings of the core's tests. Ends with counts.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
read -ra cc <<< "${CC:-$(R CMD config CC 2> /dev/null || echo cc)}"
flags=(-std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Werror -Isrc -Iinst
  -fsyntax-only -xc)
passed=0 failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# compiles STATEMENT...: in a function that has an operation and arguments of several kinds.
compiles() {
  "${cc[@]}" "${flags[@]}" - 2> "$log" << END
#include "engine/cl/runtime/launch.h"
scl_status launch_of(scl_cl_op *op, scl_cl_range r, scl_block a, scl_block b, scl_buffer *buffer,
                     cl_mem memory, size_t big, int n, long long l, double x, glm_task *task,
                     glm_few *few, gemm_task *tiles, gemm_thin_task *product);
scl_status launch_of(scl_cl_op *op, scl_cl_range r, scl_block a, scl_block b, scl_buffer *buffer,
                     cl_mem memory, size_t big, int n, long long l, double x, glm_task *task,
                     glm_few *few, gemm_task *tiles, gemm_thin_task *product) {
  (void)op, (void)r, (void)a, (void)b, (void)buffer, (void)memory;
  (void)big, (void)n, (void)l, (void)x, (void)task, (void)few, (void)tiles, (void)product;
  return $*;
}
END
}
accepts() {
  if compiles "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'does not compile: %s\n%s\n' "$*" "$(sed 's/^/  /' "$log" | head -n 20)"
  fi
}
# refuses WHY STATEMENT...
refuses() {
  local why=$1
  shift
  if compiles "$@"; then
    failed=$((failed + 1))
    printf 'compiles, but %s: %s\n' "$why" "$*"
  else
    passed=$((passed + 1))
  fi
}

copy=scl_launch_elementwise_copy
accepts "$copy(op, r, 2, n, n, scl_in(a), scl_out(b))"
refuses "in and out are exchanged" "$copy(op, r, 2, n, n, scl_out(b), scl_in(a))"
refuses "inout stands for in" "$copy(op, r, 2, n, n, scl_inout(a), scl_out(b))"
refuses "a block says no direction" "$copy(op, r, 2, n, n, a, scl_out(b))"
refuses "one argument is missing" "$copy(op, r, 2, n, scl_in(a), scl_out(b))"
refuses "one argument is too many" "$copy(op, r, 2, n, n, n, scl_in(a), scl_out(b))"
refuses "a real stands for an int" "$copy(op, r, 2, n, x, scl_in(a), scl_out(b))"
refuses "a long stands for an int" "$copy(op, r, 2, n, l, scl_in(a), scl_out(b))"
refuses "a size stands for an int" "$copy(op, r, 2, n, big, scl_in(a), scl_out(b))"

fill=scl_launch_elementwise_fill
accepts "$fill(op, r, n, n, x, scl_out(a))"
refuses "an int and a real are exchanged" "$fill(op, r, n, x, n, scl_out(a))"
refuses "a real and a block are exchanged" "$fill(op, r, n, n, scl_out(a), x)"

outer="scl_launch_glm_outer(op, r"
rest="n, n, scl_out(a))"
accepts "$outer, scl_in_buffer(buffer), l, big, n, $rest"
refuses "a long and an int are exchanged" "$outer, scl_in_buffer(buffer), l, n, l, $rest"
refuses "a real stands for a long" "$outer, scl_in_buffer(buffer), x, l, n, $rest"
refuses "a block stands for a buffer" "$outer, scl_in(a), l, l, n, $rest"
refuses "a pointer stands for a buffer" "$outer, buffer, l, l, n, $rest"
refuses "memory stands for a buffer" "$outer, scl_in_memory(memory), l, l, n, $rest"

least="scl_launch_reduce_least(op, r"
accepts "$least, n, scl_in(a), scl_out(b), scl_local(big))"
refuses "bytes of local memory are no number" "$least, n, scl_in(a), scl_out(b), big)"
refuses "local memory and an int are exchanged" \
  "$least, scl_local(big), scl_in(a), scl_out(b), n)"

thin="scl_launch_gemm_thin(op, &scl_k_gemm_thin_n, r"
rest="scl_inout_at(a), product)"
accepts "$thin, scl_in(a), scl_in_at(b), $rest"
refuses "a block and a start are exchanged" "$thin, scl_in_at(a), scl_in(b), $rest"

tile="scl_in_buffer(buffer), scl_in_buffer(buffer), scl_inout_buffer(buffer), tiles"
accepts "scl_launch_gemm_tile(op, &scl_k_gemm_large_tn, r, $tile)"
refuses "the kernel has another signature" \
  "scl_launch_gemm_tile(op, &scl_k_gemm_mma_tiny_nn, r, $tile)"
refuses "a kernel is no number" "scl_launch_gemm_tile(op, SCL_K_gemm_nn, r, $tile)"

pass="scl_in(a), scl_in(b), scl_inout_buffer(buffer), task, scl_local(big)"
sum="scl_launch_glm_pass_and_sum(op, &scl_k_glm_10f_normal_id, r, $pass"
accepts "$sum, few)"
refuses "the constants are of another type" "$sum, &n)"
refuses "the constants are a double" "$sum, &x)"
refuses "the constants are those of another parameter" "$sum, task)"

printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
[ "$failed" = 0 ]
