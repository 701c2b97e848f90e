/* MariaDB with an index: a table of a number, the first 8 bytes of the value, which are indexed, and the rest of
 * it.
 *
 * Included by mariadb.c once, behind what both kinds of table share. */

#ifndef BENCH_MARIADB_FIELDS_H
#define BENCH_MARIADB_FIELDS_H

enum { FIELD_BYTES = 8, REST_BYTES_MAX = 2000 };

/* A row with a field, and the statements that give such rows. */
typedef struct fields {
  MYSQL_STMT *get;
  MYSQL_STMT *find;
  uint64_t key;
  uint8_t value[FIELD_BYTES + REST_BYTES_MAX];
  unsigned long field_bytes;
  unsigned long rest_bytes;
  uint8_t asked[FIELD_BYTES];
  unsigned long asked_bytes;
} fields;

static const char fields_table[] =
    "CREATE TABLE bench.t (k BIGINT UNSIGNED NOT NULL PRIMARY KEY, f BINARY(8) NOT NULL, "
    "v VARBINARY(2000) NOT NULL, KEY field (f)) ENGINE=%s";

static void bind_bytes(MYSQL_BIND *bind, uint8_t *at, unsigned long room, unsigned long *count) {
  memset(bind, 0, sizeof *bind);
  bind->buffer_type = MYSQL_TYPE_BLOB;
  bind->buffer = at;
  bind->buffer_length = room;
  bind->length = count;
}

static void fields_close(fields *f) {
  if (f == NULL) return;
  if (f->get != NULL) mysql_stmt_close(f->get);
  if (f->find != NULL) mysql_stmt_close(f->find);
  free(f);
}

static fields *fields_open(MYSQL *db, bench_error *error) {
  fields *f = bench_new(sizeof *f, error);
  if (f == NULL) return NULL;
  f->asked_bytes = FIELD_BYTES;
  f->get = prepare(db, "SELECT k, f, v FROM t WHERE k = ?", error);
  if (f->get != NULL) f->find = prepare(db, "SELECT k, f, v FROM t FORCE INDEX (field) WHERE f = ?", error);
  if (f->find != NULL) {
    MYSQL_BIND key, asked, row[3];
    bind_u64(&key, &f->key);
    bind_bytes(&asked, f->asked, FIELD_BYTES, &f->asked_bytes);
    bind_u64(&row[0], &f->key);
    bind_bytes(&row[1], f->value, FIELD_BYTES, &f->field_bytes);
    bind_bytes(&row[2], f->value + FIELD_BYTES, REST_BYTES_MAX, &f->rest_bytes);
    if (mysql_stmt_bind_param(f->get, &key) == 0 && mysql_stmt_bind_param(f->find, &asked) == 0 &&
        mysql_stmt_bind_result(f->get, row) == 0 && mysql_stmt_bind_result(f->find, row) == 0)
      return f;
    fail(db, "mysql_stmt_bind", error);
  }
  fields_close(f);
  return NULL;
}

static int fields_get(fields *f, uint64_t key, const uint8_t **value, size_t *value_bytes, bench_error *error) {
  f->key = key;
  if (mysql_stmt_execute(f->get) != 0) return fail_statement(f->get, "SELECT", error);
  const int rc = mysql_stmt_fetch(f->get);
  if (rc != 0 && rc != MYSQL_NO_DATA) return fail_statement(f->get, "mysql_stmt_fetch", error);
  if (mysql_stmt_free_result(f->get) != 0) return fail_statement(f->get, "mysql_stmt_free_result", error);
  *value = f->value;
  *value_bytes = FIELD_BYTES + f->rest_bytes;
  return rc == 0;
}

static int fields_find(fields *f, const uint8_t *field, size_t field_bytes, bench_seen *seen, bench_error *error) {
  if (field_bytes != FIELD_BYTES) return bench_fail(error, "find", "fields must have 8 bytes");
  memcpy(f->asked, field, FIELD_BYTES);
  if (mysql_stmt_execute(f->find) != 0) return fail_statement(f->find, "SELECT", error);
  *seen = (bench_seen){0, 0};
  int rc;
  while ((rc = mysql_stmt_fetch(f->find)) == 0) see(seen, f->key, f->value, FIELD_BYTES + f->rest_bytes);
  if (rc != MYSQL_NO_DATA) return fail_statement(f->find, "mysql_stmt_fetch", error);
  return mysql_stmt_free_result(f->find) == 0 ? 0 : fail_statement(f->find, "mysql_stmt_free_result", error);
}

/* Bytes as LOAD DATA reads them. */
static char *write_bytes(char *to, const uint8_t *bytes, size_t count, char end) {
  for (const uint8_t *at = bytes; at < bytes + count; ++at) {
    if (*at == '\\' || *at == '\t' || *at == '\n') *to++ = '\\';
    *to++ = (char)*at;
  }
  *to = end;
  return to + 1;
}

/* A row of SELECT k, f, v as text. */
static int fields_see(bench_seen *seen, MYSQL_ROW row, const unsigned long *lengths, bench_error *error) {
  uint8_t value[FIELD_BYTES + REST_BYTES_MAX];
  if (lengths == NULL || lengths[1] != FIELD_BYTES || lengths[2] > REST_BYTES_MAX)
    return bench_fail(error, "mysql_fetch_lengths", "a value of another length");
  memcpy(value, row[1], FIELD_BYTES);
  memcpy(value + FIELD_BYTES, row[2], lengths[2]);
  see(seen, strtoull(row[0], NULL, 10), value, FIELD_BYTES + lengths[2]);
  return 0;
}

#endif
