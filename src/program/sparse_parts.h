/* Between the files of src/program/sparse*.c: sparse Jacobians of values by the chosen parameters.
 *
 * A Jacobian is a sum of terms. A term has entries (row, column), which stay as they are, and a
 * value with a number for each entry, or one for all. A row is an element of the value that was
 * differentiated, a column a chosen parameter. Entries of one place add up, within a term too. So
 * most terms have one entry for each row and are as easily computed as the value itself. */
#ifndef SCL_PROGRAM_SPARSE_PARTS_H
#define SCL_PROGRAM_SPARSE_PARTS_H

#include "program/sparse.h"

enum { SCL_SPARSE_NONE = -1 };

typedef struct {
  size_t length, from;
  uint32_t *row; /* NULL: from, from + 1, ... */
  uint32_t *column;
  uint64_t hash;
  int rows; /* the rows as data of the tape, or SCL_SPARSE_NONE */
} scl_entries;

typedef struct {
  int entries, value, next;
} scl_term;

typedef struct {
  scl_tape *t;
  int values; /* those that are differentiated */
  size_t columns, most, held;
  size_t lacking; /* entries that were too many, or 0 */
  scl_entries *entries;
  int used, room;
  scl_term *term;
  int terms, term_room;
  int *first;     /* of each value: its first term, or SCL_SPARSE_NONE */
  bool *refused;  /* of each value: its Jacobian is not available */
  uint32_t *mark; /* of each column, UINT32_MAX: for program/sparse_products.c */
} scl_jacobian;

static inline const scl_entries *scl_entries_of(const scl_jacobian *w, int term) {
  return &w->entries[w->term[term].entries];
}
static inline uint32_t scl_entries_row(const scl_entries *e, size_t k) {
  return e->row != NULL ? e->row[k] : (uint32_t)(e->from + k);
}

/* Room for count elements of the given size, and one more; NULL on failure, which the tape keeps.
 */
void *scl_sparse_room(scl_jacobian *w, size_t count, size_t size);
/* Whether `more` entries are allowed; if not, the value is refused. */
bool scl_sparse_allows(scl_jacobian *w, int value, size_t more);
/* Takes over the arrays; returns the index of these entries, or of equal ones. */
int scl_sparse_entries(scl_jacobian *w, size_t length, uint32_t *row, uint32_t *column);
/* Adds a term to the Jacobian of a value. */
void scl_sparse_add(scl_jacobian *w, int of, int entries, int value);
/* Adds a term whose entry k is number pick[k] of `value`, which may be one number for all. */
void scl_sparse_add_picked(scl_jacobian *w, int of, int entries, int value, const size_t *pick);
/* The elements number pick[k] of x, `count` in all. */
int scl_sparse_pick(scl_jacobian *w, int x, const size_t *pick, size_t count);
/* The same by the rows of entries, for an x with a number for each row, or one for all. */
int scl_sparse_by_row(scl_jacobian *w, int x, int entries);
/* Entries while they are listed; pick: which entries of an operand's term they are. */
typedef struct {
  size_t count;
  uint32_t *row, *column;
  size_t *pick;
} scl_listing;
/* Room for the entries of a term of `value`. If false, nothing is held. */
bool scl_listing_begin(scl_jacobian *w, int value, size_t total, scl_listing *l);
void scl_listing_put(scl_listing *l, size_t row, uint32_t column, size_t pick);
/* Takes over the arrays but for `pick`; the index of these entries. */
int scl_listing_entries(scl_jacobian *w, scl_listing *l);
/* Adds the term with these entries, and their numbers among those of `from`, to the value. */
void scl_listing_finish(scl_jacobian *w, int value, scl_listing *l, int from);
void scl_listing_end(scl_listing *l);

/* Makes one term of all terms of a value, without repeated entries, where that makes them fewer or
 * if `always`. */
void scl_sparse_merge(scl_jacobian *w, int value, bool always);
/* order: of `count` entries, by major and then minor index. False without memory. */
bool scl_sparse_sort(scl_jacobian *w, size_t count, const uint32_t *major, size_t majors,
                     const uint32_t *minor, size_t minors, size_t *order);
/* All terms of a value, one after the other. */
int scl_sparse_concat(scl_jacobian *w, int value);

/* The rules (program/sparse_rules.c): fills in the Jacobian of a value. */
void scl_sparse_rule(scl_jacobian *w, int value);
/* Those of products, cumulative sums and solutions of linear equations
 * (program/sparse_products.c). */
void scl_sparse_matmul(scl_jacobian *w, int value);
void scl_sparse_cumsum(scl_jacobian *w, int value);
void scl_sparse_solve_rule(scl_jacobian *w, int value);

#endif
