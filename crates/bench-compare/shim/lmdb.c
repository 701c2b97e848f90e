/* LMDB: a copy-on-write B+ tree in a memory map.
 *
 * Transactions are the library's own. Values are read where they lie in the map, without a copy. */

#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdlib.h>
#include <unistd.h>

/* This is only address space: the file grows as it is written. */
static const uint64_t map_bytes_min = UINT64_C(16) << 30;

typedef struct store {
  MDB_env *env;
  MDB_dbi dbi;
  MDB_dbi changes; /* if they are kept: a number for each, ascending */
  int fed;
  unsigned put_flags;
} store;

typedef struct writer {
  store *store;
  MDB_txn *txn;
  size_t told; /* the number of the last change */
} writer;

typedef struct reader {
  store *store;
  MDB_txn *txn;
} reader;

typedef struct changes {
  store *store;
  MDB_txn *txn;
  size_t taken; /* the number of the last change */
} changes;

static int fail(bench_error *error, const char *call, int code) {
  return bench_fail(error, call, mdb_strerror(code));
}

static const char *version(void) {
  static char text[32];
  int major, minor, patch;
  mdb_version(&major, &minor, &patch);
  snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
  return text;
}

static int open_env(store *s, const bench_open *how, bench_error *error) {
  int rc = mdb_env_create(&s->env);
  if (rc != 0) return fail(error, "mdb_env_create", rc);
  /* A page is at least half full. A value larger than half a page gets its own pages. */
  uint64_t map_bytes = how->raw_bytes * 4 + how->records * 64;
  if (map_bytes < map_bytes_min) map_bytes = map_bytes_min;
  rc = mdb_env_set_mapsize(s->env, map_bytes);
  if (rc != 0) return fail(error, "mdb_env_set_mapsize", rc);
  /* MDB_WRITEMAP is left out. It inserts 3 to 4 percent faster and reads no faster. But without a sync at
   * each commit it gives up what the other peers keep, where the file system keeps writes in order: a
   * crash loses the last transactions and nothing else. */
  unsigned flags = MDB_NOTLS;
  if (!(how->flags & BENCH_DURABLE)) flags |= MDB_NOSYNC | MDB_NOMETASYNC;
  if (s->fed) rc = mdb_env_set_maxdbs(s->env, 2);
  if (rc != 0) return fail(error, "mdb_env_set_maxdbs", rc);
  rc = mdb_env_open(s->env, how->path, flags, 0644);
  if (rc != 0) return fail(error, "mdb_env_open", rc);

  MDB_txn *txn;
  rc = mdb_txn_begin(s->env, NULL, 0, &txn);
  if (rc != 0) return fail(error, "mdb_txn_begin", rc);
  rc = mdb_dbi_open(txn, s->fed ? "records" : NULL, s->fed ? MDB_CREATE : 0, &s->dbi);
  if (rc == 0 && s->fed) rc = mdb_dbi_open(txn, "changes", MDB_CREATE | MDB_INTEGERKEY, &s->changes);
  if (rc != 0) {
    mdb_txn_abort(txn);
    return fail(error, "mdb_dbi_open", rc);
  }
  rc = mdb_txn_commit(txn);
  return rc == 0 ? 0 : fail(error, "mdb_txn_commit", rc);
}

static void *store_open(const bench_open *how, bench_error *error) {
  store *s = bench_new(sizeof *s, error);
  if (s == NULL) return NULL;
  s->put_flags = how->flags & BENCH_ASCENDING ? MDB_APPEND : 0;
  s->fed = (how->flags & BENCH_FED) != 0;
  if (open_env(s, how, error) != 0) {
    if (s->env != NULL) mdb_env_close(s->env);
    free(s);
    return NULL;
  }
  return s;
}

static int store_sync(void *raw, bench_error *error) {
  store *s = raw;
  int rc = mdb_env_sync(s->env, 1);
  return rc == 0 ? 0 : fail(error, "mdb_env_sync", rc);
}

static int store_close(void *raw, bench_error *error) {
  (void)error;
  store *s = raw;
  mdb_env_close(s->env);
  free(s);
  return 0;
}

static void *writer_open(void *raw, bench_error *error) {
  writer *w = bench_new(sizeof *w, error);
  if (w == NULL) return NULL;
  w->store = raw;
  return w;
}

/* The number of the last change that is there; 0 without any. */
static int last_change(store *s, MDB_txn *txn, size_t *last) {
  MDB_cursor *cursor;
  int rc = mdb_cursor_open(txn, s->changes, &cursor);
  if (rc != 0) return rc;
  MDB_val k, v;
  *last = 0;
  rc = mdb_cursor_get(cursor, &k, &v, MDB_LAST);
  if (rc == 0) memcpy(last, k.mv_data, sizeof *last);
  mdb_cursor_close(cursor);
  return rc == MDB_NOTFOUND ? 0 : rc;
}

static int begin(void *raw, bench_error *error) {
  writer *w = raw;
  int rc = mdb_txn_begin(w->store->env, NULL, 0, &w->txn);
  if (rc != 0) return fail(error, "mdb_txn_begin", rc);
  rc = w->store->fed ? last_change(w->store, w->txn, &w->told) : 0;
  return rc == 0 ? 0 : fail(error, "mdb_cursor_get", rc);
}

/* Appends a change. It is written where it will stand. */
static int tell(writer *w, const uint8_t *key, size_t key_bytes, const uint8_t *value, size_t value_bytes) {
  const uint32_t length = (uint32_t)key_bytes;
  ++w->told;
  MDB_val k = {sizeof w->told, &w->told};
  MDB_val v = {sizeof length + key_bytes + value_bytes, NULL};
  const int rc = mdb_put(w->txn, w->store->changes, &k, &v, MDB_APPEND | MDB_RESERVE);
  if (rc != 0) return rc;
  uint8_t *at = v.mv_data;
  memcpy(at, &length, sizeof length);
  memcpy(at + sizeof length, key, key_bytes);
  if (value_bytes != 0) memcpy(at + sizeof length + key_bytes, value, value_bytes);
  return 0;
}

static int put(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value,
               size_t value_bytes, bench_error *error) {
  writer *w = raw;
  MDB_val k = {key_bytes, (void *)key};
  MDB_val v = {value_bytes, (void *)value};
  int rc = mdb_put(w->txn, w->store->dbi, &k, &v, w->store->put_flags);
  if (rc == 0 && w->store->fed) rc = tell(w, key, key_bytes, value, value_bytes);
  return rc == 0 ? 0 : fail(error, "mdb_put", rc);
}

/* The transaction is the only one that writes, so what it gets stays until it puts. */
static int add(void *raw, const uint8_t *key, size_t key_bytes, uint64_t n, bench_error *error) {
  writer *w = raw;
  uint8_t sum[8];
  MDB_val k = {key_bytes, (void *)key};
  MDB_val v = {0, NULL};
  const int rc = mdb_get(w->txn, w->store->dbi, &k, &v);
  if (rc != 0 && rc != MDB_NOTFOUND) return fail(error, "mdb_get", rc);
  bench_write_number(sum, (rc == 0 ? bench_number(v.mv_data, v.mv_size) : 0) + n);
  return put(raw, key, key_bytes, sum, sizeof sum, error);
}

static int remove_key(void *raw, const uint8_t *key, size_t key_bytes, bench_error *error) {
  writer *w = raw;
  MDB_val k = {key_bytes, (void *)key};
  int rc = mdb_del(w->txn, w->store->dbi, &k, NULL);
  if (rc == 0 && w->store->fed) rc = tell(w, key, key_bytes, NULL, 0);
  return rc == 0 || rc == MDB_NOTFOUND ? 0 : fail(error, "mdb_del", rc);
}

static int commit(void *raw, bench_error *error) {
  writer *w = raw;
  MDB_txn *txn = w->txn;
  w->txn = NULL; /* freed by mdb_txn_commit whether it succeeds or not */
  int rc = mdb_txn_commit(txn);
  return rc == 0 ? 0 : fail(error, "mdb_txn_commit", rc);
}

static void writer_close(void *raw) {
  writer *w = raw;
  if (w->txn != NULL) mdb_txn_abort(w->txn);
  free(w);
}

static void *reader_open(void *raw, bench_error *error) {
  reader *r = bench_new(sizeof *r, error);
  if (r == NULL) return NULL;
  r->store = raw;
  int rc = mdb_txn_begin(r->store->env, NULL, MDB_RDONLY, &r->txn);
  if (rc != 0) {
    fail(error, "mdb_txn_begin", rc);
    free(r);
    return NULL;
  }
  return r;
}

static int refresh(void *raw, bench_error *error) {
  reader *r = raw;
  mdb_txn_reset(r->txn);
  int rc = mdb_txn_renew(r->txn);
  return rc == 0 ? 0 : fail(error, "mdb_txn_renew", rc);
}

static int get(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t **value,
               size_t *value_bytes, bench_error *error) {
  reader *r = raw;
  MDB_val k = {key_bytes, (void *)key};
  MDB_val v;
  int rc = mdb_get(r->txn, r->store->dbi, &k, &v);
  if (rc == MDB_NOTFOUND) return 0;
  if (rc != 0) return fail(error, "mdb_get", rc);
  *value = v.mv_data;
  *value_bytes = v.mv_size;
  return 1;
}

/* Goes to the first record of a range. MDB_SET_RANGE finds the first key at or after the requested one.
 * On the way down that may be one too far. */
static int seek(MDB_cursor *cursor, const bench_range *range, MDB_val *k, MDB_val *v) {
  if (range->from == NULL) return mdb_cursor_get(cursor, k, v, range->down ? MDB_LAST : MDB_FIRST);
  *k = (MDB_val){range->from_bytes, (void *)range->from};
  int rc = mdb_cursor_get(cursor, k, v, MDB_SET_RANGE);
  if (!range->down) return rc;
  if (rc == MDB_NOTFOUND) return mdb_cursor_get(cursor, k, v, MDB_LAST);
  if (rc == 0 && bench_compare(k->mv_data, k->mv_size, range->from, range->from_bytes) != 0)
    rc = mdb_cursor_get(cursor, k, v, MDB_PREV);
  return rc;
}

static int range_of(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  reader *r = raw;
  MDB_cursor *cursor;
  int rc = mdb_cursor_open(r->txn, r->store->dbi, &cursor);
  if (rc != 0) return fail(error, "mdb_cursor_open", rc);
  bench_seen sum = {0, 0};
  MDB_cursor_op step = range->down ? MDB_PREV : MDB_NEXT;
  MDB_val k, v;
  rc = seek(cursor, range, &k, &v);
  while (rc == 0 && sum.records < range->limit) {
    bench_see(&sum, k.mv_data, k.mv_size, v.mv_data, v.mv_size);
    rc = mdb_cursor_get(cursor, &k, &v, step);
  }
  mdb_cursor_close(cursor);
  if (rc != 0 && rc != MDB_NOTFOUND) return fail(error, "mdb_cursor_get", rc);
  *seen = sum;
  return 0;
}

static int scan(void *raw, bench_seen *seen, bench_error *error) {
  const bench_range all = {NULL, 0, UINT64_MAX, 0};
  return range_of(raw, &all, seen, error);
}

static void reader_close(void *raw) {
  reader *r = raw;
  mdb_txn_abort(r->txn);
  free(r);
}

static void *changes_open(void *raw, bench_error *error) {
  changes *c = bench_new(sizeof *c, error);
  if (c == NULL) return NULL;
  c->store = raw;
  const int rc = mdb_txn_begin(c->store->env, NULL, MDB_RDONLY, &c->txn);
  if (rc == 0) {
    mdb_txn_reset(c->txn); /* so that pages that are freed meanwhile can be used again */
    return c;
  }
  fail(error, "mdb_txn_begin", rc);
  free(c);
  return NULL;
}

static int changes_take(void *raw, uint64_t limit, bench_seen *seen, bench_error *error) {
  changes *c = raw;
  MDB_cursor *cursor;
  size_t next = c->taken + 1;
  MDB_val k = {sizeof next, &next}, v;
  int rc = mdb_txn_renew(c->txn);
  if (rc != 0) return fail(error, "mdb_txn_renew", rc);
  rc = mdb_cursor_open(c->txn, c->store->changes, &cursor);
  if (rc != 0) return fail(error, "mdb_cursor_open", rc);
  bench_seen sum = {0, 0};
  rc = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
  while (rc == 0) {
    bench_see_change(&sum, v.mv_data, v.mv_size);
    memcpy(&c->taken, k.mv_data, sizeof c->taken);
    if (sum.records == limit) break;
    rc = mdb_cursor_get(cursor, &k, &v, MDB_NEXT);
  }
  mdb_cursor_close(cursor);
  mdb_txn_reset(c->txn);
  if (rc != 0 && rc != MDB_NOTFOUND) return fail(error, "mdb_cursor_get", rc);
  *seen = sum;
  return 0;
}

static void changes_close(void *raw) {
  changes *c = raw;
  mdb_txn_abort(c->txn);
  free(c);
}

/* The library writes past the page cache, or through it, and does not sync. */
static int back_up(void *raw, const char *to, bench_error *error) {
  store *s = raw;
  char path[4096];
  snprintf(path, sizeof path, "%s/data.mdb", to);
  if (unlink(path) != 0 && errno != ENOENT) return bench_fail(error, "unlink", strerror(errno));
  const int rc = mdb_env_copy2(s->env, to, 0);
  if (rc != 0) return fail(error, "mdb_env_copy2", rc);
  const int fd = open(path, O_RDONLY);
  if (fd < 0) return bench_fail(error, "open", strerror(errno));
  const int synced = fsync(fd) == 0 ? 0 : bench_fail(error, "fsync", strerror(errno));
  close(fd);
  return synced;
}

const bench_peer bench_lmdb = {
    .version = version,
    .configuration = "MDB_NOSYNC | MDB_NOMETASYNC unless durable, MDB_NOTLS, no MDB_WRITEMAP, "
                     "map of 4 x the data (lmdb-append: also MDB_APPEND); one read transaction a phase, renewed "
                     "at each get beside a writer; memory is the page cache, without a bound; counters are got and "
                     "put in the writer's transaction; for the feed workload a second table with MDB_INTEGERKEY "
                     "and MDB_APPEND, put into in the same transaction; mdb_env_copy2 and fsync for backups, which "
                     "are restored by copying the file",
    .store_open = store_open,
    .store_sync = store_sync,
    .store_settle = NULL,
    .store_close = store_close,
    .writer_open = writer_open,
    .begin = begin,
    .put = put,
    .remove = remove_key,
    .commit = commit,
    .writer_close = writer_close,
    .reader_open = reader_open,
    .refresh = refresh,
    .get = get,
    .get_many = NULL,
    .scan = scan,
    .range = range_of,
    .reader_close = reader_close,
    .add = add,
    .changes_open = changes_open,
    .changes_take = changes_take,
    .changes_close = changes_close,
    .back_up = back_up,
};
