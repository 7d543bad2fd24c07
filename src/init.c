/* Registration of the .Call entries, and what the core needs of R: hooks, BLAS and LAPACK. */
#include "r/entries.h"
#include "r/glue.h"
#include "r/node.h"
#include "r/tape.h"

#include <R_ext/Rdynload.h>
#include <R_ext/Visibility.h>

static const R_CallMethodDef entries[] = {
#define R_ENTRY(name, arguments) {#name, (DL_FUNC)&name, arguments},
#include "r/entries.def"
#undef R_ENTRY
    {NULL, NULL, 0}};

void attribute_visible R_init_statcl(DllInfo *dll) {
  R_registerRoutines(dll, NULL, entries, NULL, NULL);
  R_useDynamicSymbols(dll, FALSE);
  R_forceSymbols(dll, TRUE);
  r_blas_set();
  r_handle_init();
  r_interrupt_init();
  r_op_init();
  r_lazy_init();
  r_node_init();
  r_pooled_init(dll);
  r_serialize_init(dll);
  r_tape_init();
  r_tape_version_init(dll);
  scl_hooks_set(&(scl_hooks){.collect_garbage = r_collect, .interrupted = r_interrupted});
}

void attribute_visible R_unload_statcl(DllInfo *dll) {
  (void)dll;
  r_contexts_release();
}
