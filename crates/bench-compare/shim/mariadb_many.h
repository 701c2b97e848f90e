/* MariaDB: gets of many keys, by one statement with a place for each.
 *
 * Included by mariadb.c once, behind the gets of one key. */

#ifndef BENCH_MARIADB_MANY_H
#define BENCH_MARIADB_MANY_H

static int by_key(const void *a, const void *b) {
  const uint64_t left = ((const struct asked *)a)->key, right = ((const struct asked *)b)->key;
  return (left > right) - (left < right);
}

/* A statement with one place for each key. */
static int prepare_many(reader *r, size_t count, bench_error *error) {
  static const char start[] = "SELECT k, a, b FROM t WHERE k IN (?";
  char *sql = malloc(sizeof start + 2 * count);
  MYSQL_BIND *keys = malloc(count * sizeof *keys), row[3];
  r->asked = realloc(r->asked, count * sizeof *r->asked);
  r->many_keys = realloc(r->many_keys, count * sizeof *r->many_keys);
  r->many_values = realloc(r->many_values, count * sizeof *r->many_values);
  if (r->many != NULL) mysql_stmt_close(r->many);
  r->many = NULL;
  r->many_count = 0;
  int result = -1;
  if (sql == NULL || keys == NULL || r->asked == NULL || r->many_keys == NULL || r->many_values == NULL) {
    bench_fail(error, "malloc", "out of memory");
  } else {
    char *to = sql + sizeof start - 1;
    memcpy(sql, start, sizeof start);
    for (size_t at = 1; at < count; ++at, to += 2) memcpy(to, ",?", 2);
    memcpy(to, ")", 2);
    for (size_t at = 0; at < count; ++at) bind_u64(&keys[at], &r->many_keys[at]);
    bind_u64(&row[0], &r->found);
    bind_u32(&row[1], &r->halves[0]);
    bind_u32(&row[2], &r->halves[1]);
    r->many = prepare(r->db, sql, error);
    if (r->many != NULL && (mysql_stmt_bind_param(r->many, keys) != 0 || mysql_stmt_bind_result(r->many, row) != 0))
      fail_statement(r->many, "mysql_stmt_bind_param", error);
    else if (r->many != NULL)
      result = 0;
  }
  if (result == 0) r->many_count = count;
  free(keys);
  free(sql);
  return result;
}

/* Rows come in index order, so each one is searched among the requested keys. */
static void answer(const reader *r, bench_bytes *values) {
  const struct asked key = {r->found, 0};
  struct asked *at = bsearch(&key, r->asked, r->many_count, sizeof key, by_key);
  if (at == NULL) return;
  while (at > r->asked && at[-1].key == r->found) --at;
  for (; at < r->asked + r->many_count && at->key == r->found; ++at) {
    memcpy(r->many_values[at->at], r->halves, VALUE_BYTES);
    values[at->at] = (bench_bytes){(const uint8_t *)r->many_values[at->at], VALUE_BYTES};
  }
}

static int get_many(void *raw, const bench_bytes *keys, size_t count, bench_bytes *values,
                    bench_error *error) {
  reader *r = raw;
  if (count == 0) return 0;
  if (r->fields != NULL) return bench_fail(error, "get_many", "not of a table with an index");
  if (count != r->many_count && prepare_many(r, count, error) != 0) return -1;
  for (size_t at = 0; at < count; ++at) {
    if (keys[at].count != KEY_BYTES) return bench_fail(error, "get", "keys must have 8 bytes");
    r->many_keys[at] = number(keys[at].at);
    r->asked[at] = (struct asked){r->many_keys[at], at};
  }
  qsort(r->asked, count, sizeof *r->asked, by_key);
  if (mysql_stmt_execute(r->many) != 0) return fail_statement(r->many, "SELECT", error);
  int rc;
  while ((rc = mysql_stmt_fetch(r->many)) == 0) answer(r, values);
  if (rc != MYSQL_NO_DATA) return fail_statement(r->many, "mysql_stmt_fetch", error);
  return mysql_stmt_free_result(r->many) == 0 ? 0 : fail_statement(r->many, "mysql_stmt_free_result", error);
}

#endif
