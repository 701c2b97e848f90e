/* Berkeley DB: a B-tree or an extended linear hash, in pages, in a transactional environment.
 *
 * Transactions are the library's own, under page locks. The writer keeps a list of the transaction's
 * changes. A transaction that deadlocks with another is repeated from that list. */

#define _DEFAULT_SOURCE /* db.h uses u_int */

#include "peer.h"

#include <db.h>
#include <errno.h>
#include <stdlib.h>

static const uint32_t log_buffer_bytes = 4 << 20;
static const uint32_t log_file_bytes = 16 << 20; /* four buffers at least; the last one stays */
static const uint32_t checkpoint_kib = 256 << 10; /* of log since the checkpoint before */
static const uint32_t locks_max = 2000000;        /* a transaction locks each page that it changes */
static const uint32_t bulk_bytes = 1 << 20;

typedef struct store {
  DB_ENV *env;
  DB *db;
  int ordered;
} store;

/* The changes of the transaction so far, one after the other: each is a change and its bytes. */
typedef struct change {
  uint32_t key_bytes;
  uint32_t value_bytes;
  int remove;
} change;

typedef struct writer {
  store *store;
  DB_TXN *txn;
  uint8_t *changes;
  size_t used;
  size_t room;
} writer;

typedef struct reader {
  store *store;
  uint8_t *value;
  uint32_t room;
  uint8_t *bulk;
} reader;

static int fail(bench_error *error, const char *call, int code) {
  return bench_fail(error, call, db_strerror(code));
}

static const char *version(void) {
  static char text[32];
  int major, minor, patch;
  db_version(&major, &minor, &patch);
  snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
  return text;
}

static DBT bytes(const uint8_t *at, size_t count) {
  DBT dbt;
  memset(&dbt, 0, sizeof dbt);
  dbt.data = (void *)at;
  dbt.size = (uint32_t)count;
  return dbt;
}

/* Our own memory for the result of a call. */
static DBT room(uint8_t *at, uint32_t count) {
  DBT dbt = bytes(at, 0);
  dbt.ulen = count;
  dbt.flags = DB_DBT_USERMEM;
  return dbt;
}

static int open_env(store *s, const bench_open *how, bench_error *error) {
  int rc = db_env_create(&s->env, 0);
  if (rc != 0) return fail(error, "db_env_create", rc);
  const uint64_t cache_bytes = how->budget_bytes - how->budget_bytes / 8;
  const uint32_t log = how->budget_bytes / 16 < log_buffer_bytes ? (uint32_t)(how->budget_bytes / 16) : log_buffer_bytes;
  s->env->set_errcall(s->env, NULL);
  if ((rc = s->env->set_cachesize(s->env, (uint32_t)(cache_bytes >> 30), (uint32_t)(cache_bytes & ((1 << 30) - 1)), 1)) != 0 ||
      (rc = s->env->set_lg_bsize(s->env, log)) != 0 ||
      (rc = s->env->set_lg_max(s->env, log_file_bytes)) != 0 ||
      (rc = s->env->log_set_config(s->env, DB_LOG_AUTO_REMOVE, 1)) != 0 ||
      (rc = s->env->set_lk_max_locks(s->env, locks_max)) != 0 ||
      (rc = s->env->set_lk_max_objects(s->env, locks_max)) != 0 ||
      (rc = s->env->set_lk_detect(s->env, DB_LOCK_MINWRITE)) != 0 ||
      (!(how->flags & BENCH_DURABLE) && (rc = s->env->set_flags(s->env, DB_TXN_NOSYNC, 1)) != 0))
    return fail(error, "DB_ENV->set", rc);
  const uint32_t flags = DB_CREATE | DB_RECOVER | DB_PRIVATE | DB_THREAD | DB_INIT_MPOOL | DB_INIT_LOCK |
                         DB_INIT_LOG | DB_INIT_TXN;
  rc = s->env->open(s->env, how->path, flags, 0644);
  return rc == 0 ? 0 : fail(error, "DB_ENV->open", rc);
}

/* An item larger than about a quarter of a page gets its own pages. */
static uint32_t page_bytes_for(uint64_t record_bytes) {
  return record_bytes < 900 ? 8192 : record_bytes < 3600 ? 16384 : 65536;
}

static int open_db(store *s, const bench_open *how, DBTYPE type, bench_error *error) {
  int rc = db_create(&s->db, s->env, 0);
  if (rc != 0) return fail(error, "db_create", rc);
  uint32_t flags = DB_AUTO_COMMIT | DB_THREAD;
  if (how->flags & BENCH_CREATE) {
    const uint64_t record_bytes = bench_record_bytes(how);
    const uint32_t page_bytes = page_bytes_for(record_bytes);
    flags |= DB_CREATE | DB_EXCL;
    if ((rc = s->db->set_pagesize(s->db, page_bytes)) != 0) return fail(error, "DB->set_pagesize", rc);
    if (type == DB_HASH) {
      const uint64_t per_page = (page_bytes - 32) / (record_bytes + 8);
      const uint64_t most = how->records > UINT32_MAX ? UINT32_MAX : how->records;
      if ((rc = s->db->set_h_ffactor(s->db, per_page == 0 ? 1 : (uint32_t)per_page)) != 0 ||
          (rc = s->db->set_h_nelem(s->db, most == 0 ? 1 : (uint32_t)most)) != 0)
        return fail(error, "DB->set_h_nelem", rc);
    }
  }
  rc = s->db->open(s->db, NULL, "data.db", NULL, type, flags, 0644);
  return rc == 0 ? 0 : fail(error, "DB->open", rc);
}

static void *store_open(const bench_open *how, DBTYPE type, bench_error *error) {
  store *s = bench_new(sizeof *s, error);
  if (s == NULL) return NULL;
  s->ordered = type == DB_BTREE;
  if (open_env(s, how, error) == 0 && open_db(s, how, type, error) == 0) return s;
  if (s->db != NULL) s->db->close(s->db, DB_NOSYNC);
  if (s->env != NULL) s->env->close(s->env, 0);
  free(s);
  return NULL;
}

static void *hash_open(const bench_open *how, bench_error *error) { return store_open(how, DB_HASH, error); }
static void *tree_open(const bench_open *how, bench_error *error) { return store_open(how, DB_BTREE, error); }

static int store_sync(void *raw, bench_error *error) {
  store *s = raw;
  const int rc = s->env->log_flush(s->env, NULL);
  return rc == 0 ? 0 : fail(error, "DB_ENV->log_flush", rc);
}

/* The log is not needed once all pages are in the file. */
static int store_close(void *raw, bench_error *error) {
  store *s = raw;
  int rc = s->env->txn_checkpoint(s->env, 0, 0, DB_FORCE);
  if (rc != 0) fail(error, "DB_ENV->txn_checkpoint", rc);
  int later = s->db->close(s->db, 0);
  if (rc == 0 && (rc = later) != 0) fail(error, "DB->close", rc);
  later = s->env->log_archive(s->env, NULL, DB_ARCH_REMOVE);
  if (rc == 0 && (rc = later) != 0) fail(error, "DB_ENV->log_archive", rc);
  later = s->env->close(s->env, 0);
  if (rc == 0 && (rc = later) != 0) fail(error, "DB_ENV->close", rc);
  free(s);
  return rc == 0 ? 0 : -1;
}

static void *writer_open(void *raw, bench_error *error) {
  writer *w = bench_new(sizeof *w, error);
  if (w != NULL) w->store = raw;
  return w;
}

static int begin(void *raw, bench_error *error) {
  writer *w = raw;
  w->used = 0;
  const int rc = w->store->env->txn_begin(w->store->env, NULL, &w->txn, 0);
  return rc == 0 ? 0 : fail(error, "DB_ENV->txn_begin", rc);
}

static int keep(writer *w, change what, const uint8_t *key, const uint8_t *value, bench_error *error) {
  const size_t wanted = w->used + sizeof what + what.key_bytes + what.value_bytes;
  if (wanted > w->room) {
    uint8_t *larger = realloc(w->changes, wanted * 2);
    if (larger == NULL) return bench_fail(error, "realloc", "out of memory");
    w->changes = larger;
    w->room = wanted * 2;
  }
  uint8_t *at = w->changes + w->used;
  memcpy(at, &what, sizeof what);
  memcpy(at + sizeof what, key, what.key_bytes);
  memcpy(at + sizeof what + what.key_bytes, value, what.value_bytes);
  w->used = wanted;
  return 0;
}

/* Makes the changes from a place in the list on. */
static int apply(writer *w, size_t from) {
  DB *db = w->store->db;
  int rc = 0;
  while (rc == 0 && from < w->used) {
    change what;
    memcpy(&what, w->changes + from, sizeof what);
    const uint8_t *key = w->changes + from + sizeof what;
    DBT k = bytes(key, what.key_bytes), v = bytes(key + what.key_bytes, what.value_bytes);
    rc = what.remove ? db->del(db, w->txn, &k, 0) : db->put(db, w->txn, &k, &v, 0);
    if (what.remove && rc == DB_NOTFOUND) rc = 0;
    from += sizeof what + what.key_bytes + what.value_bytes;
  }
  return rc;
}

static int make(writer *w, change what, const uint8_t *key, const uint8_t *value, bench_error *error) {
  const size_t from = w->used;
  if (keep(w, what, key, value, error) != 0) return -1;
  int rc = apply(w, from);
  while (rc == DB_LOCK_DEADLOCK) {
    DB_TXN *txn = w->txn;
    w->txn = NULL;
    if ((rc = txn->abort(txn)) == 0 && (rc = w->store->env->txn_begin(w->store->env, NULL, &w->txn, 0)) == 0)
      rc = apply(w, 0);
  }
  return rc == 0 ? 0 : fail(error, what.remove ? "DB->del" : "DB->put", rc);
}

static int put(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value,
               size_t value_bytes, bench_error *error) {
  return make(raw, (change){(uint32_t)key_bytes, (uint32_t)value_bytes, 0}, key, value, error);
}

static int remove_key(void *raw, const uint8_t *key, size_t key_bytes, bench_error *error) {
  return make(raw, (change){(uint32_t)key_bytes, 0, 1}, key, key, error);
}

static int commit(void *raw, bench_error *error) {
  writer *w = raw;
  DB_TXN *txn = w->txn;
  w->txn = NULL; /* freed by the commit whether it succeeds or not */
  int rc = txn->commit(txn, 0);
  if (rc != 0) return fail(error, "DB_TXN->commit", rc);
  rc = w->store->env->txn_checkpoint(w->store->env, checkpoint_kib, 0, 0);
  return rc == 0 ? 0 : fail(error, "DB_ENV->txn_checkpoint", rc);
}

static void writer_close(void *raw) {
  writer *w = raw;
  if (w->txn != NULL) w->txn->abort(w->txn);
  free(w->changes);
  free(w);
}

static void reader_close(void *raw) {
  reader *r = raw;
  free(r->value);
  free(r->bulk);
  free(r);
}

static void *reader_open(void *raw, bench_error *error) {
  reader *r = calloc(1, sizeof *r);
  if (r != NULL) {
    r->store = raw;
    r->room = 16384;
    r->value = malloc(r->room);
    r->bulk = malloc(bulk_bytes);
    if (r->value != NULL && r->bulk != NULL) return r;
    reader_close(r);
  }
  bench_fail(error, "malloc", "out of memory");
  return NULL;
}

static int grow(reader *r, uint32_t wanted) {
  uint8_t *larger = realloc(r->value, wanted);
  if (larger == NULL) return ENOMEM;
  r->value = larger;
  r->room = wanted;
  return 0;
}

static int get(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t **value,
               size_t *value_bytes, bench_error *error) {
  reader *r = raw;
  DB *db = r->store->db;
  DBT k = bytes(key, key_bytes);
  for (;;) {
    DBT v = room(r->value, r->room);
    int rc = db->get(db, NULL, &k, &v, 0);
    if (rc == 0) {
      *value = r->value;
      *value_bytes = v.size;
      return 1;
    }
    if (rc == DB_NOTFOUND) return 0;
    if (rc == DB_BUFFER_SMALL) rc = grow(r, v.size);
    else if (rc == DB_LOCK_DEADLOCK) rc = 0;
    if (rc != 0) return fail(error, "DB->get", rc);
  }
}

/* Walks with a buffer of many records at a time. */
static int scan_once(reader *r, bench_seen *seen) {
  DB *db = r->store->db;
  DBC *cursor;
  int rc = db->cursor(db, NULL, &cursor, 0);
  if (rc != 0) return rc;
  *seen = (bench_seen){0, 0};
  DBT k = bytes(NULL, 0), v = room(r->bulk, bulk_bytes);
  while ((rc = cursor->get(cursor, &k, &v, DB_NEXT | DB_MULTIPLE_KEY)) == 0) {
    void *at, *key, *value;
    size_t key_bytes, value_bytes;
    DB_MULTIPLE_INIT(at, &v);
    for (;;) {
      DB_MULTIPLE_KEY_NEXT(at, &v, key, key_bytes, value, value_bytes);
      if (at == NULL) break;
      bench_see(seen, key, key_bytes, value, value_bytes);
    }
  }
  const int closed = cursor->close(cursor);
  return rc != DB_NOTFOUND ? rc : closed;
}

static int scan(void *raw, bench_seen *seen, bench_error *error) {
  int rc;
  while ((rc = scan_once(raw, seen)) == DB_LOCK_DEADLOCK) {
  }
  return rc == 0 ? 0 : fail(error, "DBC->get", rc);
}

/* The first record of a range. DB_SET_RANGE finds the first key at or after the requested one. On the way
 * down that may be one too far. Keys and values belong to the library until the next call on the cursor. */
static int seek(DBC *cursor, const bench_range *range, DBT *k, DBT *v) {
  if (range->from == NULL) return cursor->get(cursor, k, v, range->down ? DB_LAST : DB_FIRST);
  *k = bytes(range->from, range->from_bytes);
  int rc = cursor->get(cursor, k, v, DB_SET_RANGE);
  if (!range->down) return rc;
  if (rc == DB_NOTFOUND) return cursor->get(cursor, k, v, DB_LAST);
  if (rc == 0 && bench_compare(k->data, k->size, range->from, range->from_bytes) != 0)
    rc = cursor->get(cursor, k, v, DB_PREV);
  return rc;
}

static int range_once(reader *r, const bench_range *range, bench_seen *seen) {
  DB *db = r->store->db;
  DBC *cursor;
  int rc = db->cursor(db, NULL, &cursor, 0);
  if (rc != 0) return rc;
  *seen = (bench_seen){0, 0};
  DBT k = bytes(NULL, 0), v = bytes(NULL, 0);
  rc = seek(cursor, range, &k, &v);
  while (rc == 0 && seen->records < range->limit) {
    bench_see(seen, k.data, k.size, v.data, v.size);
    rc = cursor->get(cursor, &k, &v, range->down ? DB_PREV : DB_NEXT);
  }
  const int closed = cursor->close(cursor);
  return rc != 0 && rc != DB_NOTFOUND ? rc : closed;
}

static int range_of(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  int rc;
  while ((rc = range_once(raw, range, seen)) == DB_LOCK_DEADLOCK) {
  }
  return rc == 0 ? 0 : fail(error, "DBC->get", rc);
}

#define PEER(open, range_call, words)                                                                     \
  {                                                                                                       \
    .version = version, .configuration = words, .store_open = open, .store_sync = store_sync,             \
    .store_close = store_close, .writer_open = writer_open, .begin = begin, .put = put,                   \
    .remove = remove_key, .commit = commit, .writer_close = writer_close, .reader_open = reader_open,     \
    .refresh = bench_refresh_nothing, .get = get, .scan = scan, .range = range_call, .reader_close = reader_close,      \
  }
#define ENVIRONMENT                                                                                       \
  "a private transactional environment: cache of 7/8 of the budget, log buffer 4 MiB, log files 16 MiB, " \
  "checkpoint at every 256 MiB of log, DB_TXN_NOSYNC unless durable; pages of 8 KiB, or 16 or 64 KiB for " \
  "records above 900 or 3,600 bytes; "

const bench_peer bench_berkeley_hash =
    PEER(hash_open, NULL, ENVIRONMENT "DB_HASH with h_nelem = records; bulk cursor for scans");
const bench_peer bench_berkeley_tree =
    PEER(tree_open, range_of, ENVIRONMENT "DB_BTREE; bulk cursor for scans, a cursor for ranges");
