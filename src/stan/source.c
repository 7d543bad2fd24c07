#include "stan/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* ---- positions ------------------------------------------------------------------------------ */

static const scl_stan_stretch *stretch_of(const scl_stan_program *program, uint32_t position) {
  uint32_t low = 0, high = program->stretch_count;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (program->stretches[middle].start <= position)
      low = middle;
    else
      high = middle;
  }
  return &program->stretches[low];
}

uint32_t scl_stan_line(const scl_stan_program *program, uint32_t position) {
  return program->stretch_count == 0 ? 1 : stretch_of(program, position)->line;
}

static bool is_inside_character(char byte) {
  return ((unsigned char)byte & 0xC0) == 0x80;
}

/* The line from `start` around `position`, without bytes that are no text. The number of characters
 * before `position`. */
static int copy_line(const scl_stan_program *program, uint32_t start, uint32_t position, char *text,
                     uint32_t size) {
  const char *source = program->source;
  uint32_t from = start, end = position;
  int before = 0;
  if (position - start > size / 2) from = position - size / 2;
  while (from < position && is_inside_character(source[from])) from++;
  while (end < program->length && end - from < size - 4 && strchr("\r\n", source[end]) == NULL) {
    end++;
  }
  while (end > from && end < program->length && is_inside_character(source[end])) end--;
  for (uint32_t k = from; k < end; k++) {
    const unsigned char byte = (unsigned char)source[k];
    *text++ = byte < 0x20 || byte == 0x7f ? ' ' : (char)byte;
    before += k < position && !is_inside_character(source[k]);
  }
  *text = '\0';
  return before;
}

/* A file's name; of a long one the end. */
static void copy_name(const char *name, char *text, size_t size) {
  const size_t length = strlen(name);
  const char *from = length < size ? name : name + length - (size - 4);
  while (is_inside_character(*from)) from++;
  snprintf(text, size, "%s%s", from > name ? "..." : "", from);
}

scl_status scl_stan_fail(const scl_stan_program *program, uint32_t position, const char *format,
                         ...) {
  char message[400];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  scl_fail(SCL_E_STAN, "%s", message);
  if (program->stretch_count == 0) return SCL_E_STAN;
  scl_fault *fault = scl_fault_edit();
  if (position > program->length) position = program->length;
  const scl_stan_stretch *stretch = stretch_of(program, position);
  uint32_t column = stretch->column + 1;
  for (uint32_t k = stretch->start; k < position; k++) {
    column += !is_inside_character(program->source[k]);
  }
  fault->line = (int)stretch->line;
  fault->column = (int)column;
  copy_name(program->files[stretch->file], fault->where, sizeof fault->where);
  fault->index = copy_line(program, stretch->start, position, fault->log, 160);
  return SCL_E_STAN;
}

scl_status scl_stan_enter(scl_stan_program *program, uint32_t position) {
  if (program->depth >= SCL_STAN_DEPTH) {
    return scl_stan_fail(program, position,
                         "this is nested more than %d deep: give parts of it a name of their own",
                         SCL_STAN_DEPTH);
  }
  program->depth++;
  return SCL_OK;
}

/* ---- text with includes --------------------------------------------------------------------- */

/* A file while it is read into the source. */
typedef struct {
  const char *text;
  size_t length, at;
  uint32_t file, line, column; /* column: bytes of this line before `at` */
} reading;

static scl_status add_stretch(scl_stan_program *program, const reading *r) {
  SCL_TRY(scl_grow(&program->stretches, &program->stretch_capacity,
                   (size_t)program->stretch_count + 1, sizeof *program->stretches,
                   "a Stan program"));
  program->stretches[program->stretch_count++] =
      (scl_stan_stretch){program->length, r->line, r->column, r->file};
  return SCL_OK;
}

static scl_status add_byte(scl_stan_program *program, char byte) {
  if (program->length >= SCL_STAN_SOURCE) {
    return scl_stan_fail(program, program->length,
                         "the program has more than %d MB of source with what it includes",
                         SCL_STAN_SOURCE >> 20);
  }
  SCL_TRY(scl_grow(&program->source, &program->capacity, (size_t)program->length + 2, 1,
                   "a Stan program"));
  program->source[program->length++] = byte;
  program->source[program->length] = '\0';
  return SCL_OK;
}

/* Copies one byte. */
static scl_status copy_byte(scl_stan_program *program, reading *r) {
  const char byte = r->text[r->at++];
  SCL_TRY(add_byte(program, byte));
  r->column++;
  if (byte != '\n') return SCL_OK;
  r->line++;
  r->column = 0;
  return add_stretch(program, r);
}

/* Bytes of the character of UTF-8 at the beginning of p, 0 if there is none. */
static unsigned character_size(const unsigned char *p, size_t length) {
  if (p[0] < 0x80) return 1;
  const unsigned size = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
  if (size == 0 || size > length) return 0;
  for (unsigned k = 1; k < size; k++) {
    if ((p[k] & 0xC0) != 0x80) return 0;
  }
  if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F)) return 0;
  if ((p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F)) return 0;
  return size;
}

static scl_status copy_character(scl_stan_program *program, reading *r) {
  const unsigned char *p = (const unsigned char *)r->text + r->at;
  const unsigned size = character_size(p, r->length - r->at);
  if (size == 0) {
    return scl_stan_fail(program, program->length,
                         "byte 0x%02x is not valid UTF-8: save the program as UTF-8", p[0]);
  }
  if (p[0] == 0) return scl_stan_fail(program, program->length, "a zero byte in the program");
  for (unsigned k = 0; k < size; k++) SCL_TRY(copy_byte(program, r));
  return SCL_OK;
}

static bool looks_at(const reading *r, const char *text) {
  const size_t length = strlen(text);
  return r->length - r->at >= length && memcmp(r->text + r->at, text, length) == 0;
}

/* Copies up to the end of a comment or string. A string ends with its line, too: the lexer says
 * that it is not closed. */
static scl_status copy_until(scl_stan_program *program, reading *r, const char *end, bool on_line) {
  while (r->at < r->length && !looks_at(r, end)) {
    if (on_line && r->text[r->at] == '\n') return SCL_OK;
    SCL_TRY(copy_character(program, r));
  }
  for (size_t k = 0; end[k] != '\0' && r->at < r->length; k++) SCL_TRY(copy_byte(program, r));
  return SCL_OK;
}

static scl_status read_file(scl_stan_program *program, const scl_stan_input *input, reading *r,
                            const char *const *open, unsigned depth);

/* The contents of a file in memory of malloc(); NULL if there is none. */
static scl_status slurp(const char *path, char **out, size_t *length) {
  *out = NULL;
  FILE *file = fopen(path, "rb");
  if (file == NULL) return SCL_OK;
  scl_status status = SCL_OK;
  char *text = NULL;
  size_t used = 0, got = 1;
  int capacity = 0;
  while (got > 0 && used <= SCL_STAN_SOURCE) {
    SCL_GO(scl_grow(&text, &capacity, used + 1, 1, "an included file"));
    got = fread(text + used, 1, (size_t)capacity - used, file);
    used += got;
  }
  if (!ferror(file)) {
    *out = text;
    *length = used;
    text = NULL;
  }
done:
  fclose(file);
  free(text);
  return status;
}

/* Looks for a file in the folders; `path` becomes its path. */
static scl_status find_file(const scl_stan_input *input, const char *name, char *path, size_t size,
                            char **text, size_t *length) {
  *text = NULL;
  for (size_t k = 0; k < input->folder_count && *text == NULL; k++) {
    snprintf(path, size, "%s/%s", input->folders[k], name);
    SCL_TRY(slurp(path, text, length));
  }
  if (*text != NULL || name[0] != '/') return SCL_OK;
  snprintf(path, size, "%s", name);
  return slurp(path, text, length);
}

static scl_status add_file(scl_stan_program *program, const char *name, uint32_t *out) {
  char *copy;
  SCL_TRY(scl_stan_alloc(program, strlen(name) + 1, &copy));
  memcpy(copy, name, strlen(name));
  SCL_TRY(scl_grow(&program->files, &program->file_capacity, (size_t)program->file_count + 1,
                   sizeof *program->files, "a Stan program"));
  *out = program->file_count;
  program->files[program->file_count++] = copy;
  return SCL_OK;
}

/* Reads the name after #include, in quotes or not, and goes past it. False: there is none. */
static bool include_name(reading *r, char *name, size_t size) {
  r->at += strlen("#include");
  while (r->at < r->length && strchr(" \t", r->text[r->at]) != NULL) r->at++;
  const char quote = r->at < r->length ? r->text[r->at] : '\n';
  const char *ends = quote == '"' ? "\"\r\n" : quote == '<' ? ">\r\n" : " \t\r\n";
  if (quote == '"' || quote == '<') r->at++;
  size_t used = 0;
  while (r->at < r->length && r->text[r->at] != '\0' && strchr(ends, r->text[r->at]) == NULL) {
    if (used + 1 < size) name[used++] = r->text[r->at];
    r->at++;
  }
  name[used] = '\0';
  if (r->at < r->length && (quote == '"' || quote == '<') && r->text[r->at] == ends[0]) r->at++;
  return used > 0;
}

/* Reads the file that an #include names in the place of the line's rest. */
static scl_status include(scl_stan_program *program, const scl_stan_input *input, reading *r,
                          const char *const *open, unsigned depth) {
  char name[512], path[2048];
  const uint32_t position = program->length;
  const size_t begin = r->at;
  char *text = NULL;
  reading inner = {.line = 1};
  const char *opened[SCL_STAN_INCLUDES + 2];
  scl_status status = SCL_OK;
  const bool named = include_name(r, name, sizeof name);
  /* The directive stays in the source, where it is a comment. */
  for (size_t k = begin; k < r->at; k++) SCL_TRY(add_byte(program, r->text[k]));
  if (!named) return scl_stan_fail(program, position, "#include needs the name of a file");
  SCL_TRY(find_file(input, name, path, sizeof path, &text, &inner.length));
  if (text == NULL) {
    return scl_stan_fail(program, position,
                         "the included file '%.200s' cannot be read: give its folder in "
                         "'include'",
                         name);
  }
  for (unsigned k = 0; k < depth; k++) {
    if (strcmp(open[k], path) == 0) {
      SCL_GO(scl_stan_fail(program, position, "'%.200s' includes itself", name));
    }
    opened[k] = open[k];
  }
  opened[depth] = path;
  if (depth >= SCL_STAN_INCLUDES) {
    SCL_GO(scl_stan_fail(program, position, "includes are nested more than %d deep",
                         SCL_STAN_INCLUDES));
  }
  SCL_GO(add_byte(program, '\n'));
  inner.text = text;
  SCL_GO(add_file(program, name, &inner.file));
  SCL_GO(read_file(program, input, &inner, opened, depth + 1));
  r->column += (uint32_t)(r->at - begin);
  SCL_GO(add_byte(program, '\n')); /* ends a comment on the file's last line */
  SCL_GO(add_stretch(program, r));
done:
  free(text);
  return status;
}

static scl_status read_file(scl_stan_program *program, const scl_stan_input *input, reading *r,
                            const char *const *open, unsigned depth) {
  SCL_TRY(add_stretch(program, r));
  if (looks_at(r, "\xEF\xBB\xBF")) r->at += 3; /* the mark of a file in UTF-8 */
  while (r->at < r->length) {
    if (looks_at(r, "//")) {
      SCL_TRY(copy_until(program, r, "\n", false));
    } else if (looks_at(r, "/*")) {
      SCL_TRY(copy_byte(program, r)); /* so that it does not end with its own '*' */
      SCL_TRY(copy_byte(program, r));
      SCL_TRY(copy_until(program, r, "*/", false));
    } else if (looks_at(r, "\"")) {
      SCL_TRY(copy_byte(program, r));
      SCL_TRY(copy_until(program, r, "\"", true));
    } else if (looks_at(r, "#include")) {
      SCL_TRY(include(program, input, r, open, depth));
    } else if (looks_at(r, "#")) {
      SCL_TRY(copy_until(program, r, "\n", false));
    } else {
      SCL_TRY(copy_character(program, r));
    }
  }
  return SCL_OK;
}

scl_status scl_stan_load(scl_stan_program *program, const scl_stan_input *input) {
  reading r = {.text = input->text, .length = input->length, .line = 1};
  SCL_TRY(scl_grow(&program->source, &program->capacity, 1, 1, "a Stan program"));
  program->source[0] = '\0';
  SCL_TRY(add_file(program, input->file, &r.file));
  const char *open[1] = {input->file};
  return read_file(program, input, &r, open, 1);
}
