/* SQLite: one table of key and value, WITHOUT ROWID, so that it is a B-tree of its primary key.
 *
 * Each writer and reader has its own connection, because a connection belongs to one thread. With a
 * write-ahead log, synchronous=NORMAL syncs when the log is copied into the file, and not at commits. So
 * after a power cut the last transactions may be missing, each as a whole. FULL syncs at every commit. */

#include "peer.h"

#include <sqlite3.h>
#include <stdlib.h>

static const int busy_ms = 60000;
static const uint64_t log_bytes = UINT64_C(64) << 20; /* then it is copied into the file */

typedef struct store {
  char path[4096];
  uint64_t budget_bytes;
  int page_bytes;
  int durable;
  int indexed;
  int fed;
  sqlite3 *db;
} store;

enum { PUT, REMOVE, BEGIN, COMMIT, ADD, WRITES };
typedef struct writer {
  sqlite3 *db;
  sqlite3_stmt *statements[WRITES];
} writer;

enum { UP, DOWN, FIRST, LAST, WAYS };
typedef struct reader {
  sqlite3 *db;
  sqlite3_stmt *get;
  sqlite3_stmt *find; /* NULL without an index */
  sqlite3_stmt *ranges[WAYS];
} reader;

typedef struct changes {
  sqlite3 *db;
  sqlite3_stmt *next;
  sqlite3_int64 taken; /* the number of the last change */
} changes;

static int fail(sqlite3 *db, const char *call, bench_error *error) {
  return bench_fail(error, call, db == NULL ? "out of memory" : sqlite3_errmsg(db));
}

static const char *version(void) { return sqlite3_libversion(); }

static int run(sqlite3 *db, const char *sql, bench_error *error) {
  return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(db, sql, error);
}

static int prepare(sqlite3 *db, const char *sql, sqlite3_stmt **statement, bench_error *error) {
  const int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
  return rc == SQLITE_OK ? 0 : fail(db, sql, error);
}

/* A writer's cache and the readers' mapping get half the budget each. */
static sqlite3 *connect(const store *s, int create, uint64_t cache_bytes, bench_error *error) {
  sqlite3 *db = NULL;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
  char sql[512];
  snprintf(sql, sizeof sql,
           "PRAGMA page_size=%d; PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; "
           "PRAGMA cache_size=-%llu; PRAGMA mmap_size=%llu; PRAGMA wal_autocheckpoint=%llu;",
           s->page_bytes, s->durable ? "FULL" : "NORMAL", (unsigned long long)(cache_bytes >> 10),
           (unsigned long long)(s->budget_bytes / 2),
           (unsigned long long)(log_bytes / (uint64_t)s->page_bytes));
  if (sqlite3_open_v2(s->path, &db, flags, NULL) != SQLITE_OK) {
    fail(db, "sqlite3_open_v2", error);
  } else if (sqlite3_busy_timeout(db, busy_ms) == SQLITE_OK && run(db, sql, error) == 0) {
    return db;
  }
  sqlite3_close(db);
  return NULL;
}

/* REPLACE of a row that is there fires no trigger for its removal. */
static const char tell_changes[] =
    "CREATE TABLE changes (n INTEGER PRIMARY KEY, k BLOB NOT NULL, v BLOB NOT NULL);"
    "CREATE TRIGGER put AFTER INSERT ON kv BEGIN INSERT INTO changes (k, v) VALUES (new.k, new.v); END;"
    "CREATE TRIGGER removed AFTER DELETE ON kv BEGIN INSERT INTO changes (k, v) VALUES (old.k, x''); END";

static void *store_open(const bench_open *how, bench_error *error) {
  store *s = bench_new(sizeof *s, error);
  if (s == NULL) return NULL;
  snprintf(s->path, sizeof s->path, "%s/data.sqlite", how->path);
  s->budget_bytes = how->budget_bytes;
  s->durable = (how->flags & BENCH_DURABLE) != 0;
  s->indexed = (how->flags & BENCH_INDEXED) != 0;
  s->fed = (how->flags & BENCH_FED) != 0;
  /* A record larger than about a quarter of a page spills into its own pages. */
  const uint64_t record_bytes = bench_record_bytes(how);
  s->page_bytes = record_bytes < 900 ? 4096 : record_bytes < 3600 ? 16384 : 65536;
  const int create = (how->flags & BENCH_CREATE) != 0;
  s->db = connect(s, create, UINT64_C(1) << 20, error);
  if (s->db != NULL &&
      (!create || run(s->db, "CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID", error) == 0) &&
      (!create || !s->indexed || run(s->db, "CREATE INDEX field ON kv (substr(v, 1, 8))", error) == 0) &&
      (!create || !s->fed || run(s->db, tell_changes, error) == 0))
    return s;
  sqlite3_close(s->db);
  free(s);
  return NULL;
}

/* Copies the log into the file. The log is synced first, then the file. */
static int store_sync(void *raw, bench_error *error) {
  store *s = raw;
  const int rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
  return rc == SQLITE_OK ? 0 : fail(s->db, "sqlite3_wal_checkpoint_v2", error);
}

static int store_close(void *raw, bench_error *error) {
  store *s = raw;
  const int rc = sqlite3_close(s->db);
  if (rc != SQLITE_OK) fail(s->db, "sqlite3_close", error);
  free(s);
  return rc == SQLITE_OK ? 0 : -1;
}

static void writer_close(void *raw) {
  writer *w = raw;
  for (int at = 0; at < WRITES; ++at) sqlite3_finalize(w->statements[at]);
  sqlite3_close(w->db); /* rolls back */
  free(w);
}

/* The SQL function plus(value, n): a number as the value of a record, and an integer. */
static void plus(sqlite3_context *context, int count, sqlite3_value **values) {
  (void)count;
  uint8_t sum[8];
  const void *value = sqlite3_value_blob(values[0]);
  const uint64_t old = bench_number(value, (size_t)sqlite3_value_bytes(values[0]));
  bench_write_number(sum, old + (uint64_t)sqlite3_value_int64(values[1]));
  sqlite3_result_blob(context, sum, sizeof sum, SQLITE_TRANSIENT);
}

static int prepare_add(writer *w, bench_error *error) {
  const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
  if (sqlite3_create_function(w->db, "plus", 2, flags, NULL, plus, NULL, NULL) != SQLITE_OK)
    return fail(w->db, "sqlite3_create_function", error);
  return prepare(w->db, "INSERT INTO kv VALUES (?1, plus(x'', ?2)) ON CONFLICT (k) DO UPDATE SET v = plus(v, ?2)",
                 &w->statements[ADD], error);
}

static void *writer_open(void *raw, bench_error *error) {
  store *s = raw;
  writer *w = bench_new(sizeof *w, error);
  if (w == NULL) return NULL;
  w->db = connect(s, 0, s->budget_bytes / 2, error);
  if (w->db != NULL && prepare(w->db, "REPLACE INTO kv VALUES (?, ?)", &w->statements[PUT], error) == 0 &&
      prepare(w->db, "DELETE FROM kv WHERE k = ?", &w->statements[REMOVE], error) == 0 &&
      prepare(w->db, "BEGIN IMMEDIATE", &w->statements[BEGIN], error) == 0 &&
      prepare(w->db, "COMMIT", &w->statements[COMMIT], error) == 0 && prepare_add(w, error) == 0)
    return w;
  writer_close(w);
  return NULL;
}

/* Runs a statement that returns no rows. */
static int step(writer *w, int which, bench_error *error) {
  static const char *const names[WRITES] = {"REPLACE", "DELETE", "BEGIN", "COMMIT", "INSERT ON CONFLICT"};
  sqlite3_step(w->statements[which]);
  return sqlite3_reset(w->statements[which]) == SQLITE_OK ? 0 : fail(w->db, names[which], error);
}

static int begin(void *raw, bench_error *error) { return step(raw, BEGIN, error); }

static int put(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value,
               size_t value_bytes, bench_error *error) {
  writer *w = raw;
  sqlite3_bind_blob64(w->statements[PUT], 1, key, key_bytes, SQLITE_STATIC);
  sqlite3_bind_blob64(w->statements[PUT], 2, value, value_bytes, SQLITE_STATIC);
  return step(w, PUT, error);
}

static int remove_key(void *raw, const uint8_t *key, size_t key_bytes, bench_error *error) {
  writer *w = raw;
  sqlite3_bind_blob64(w->statements[REMOVE], 1, key, key_bytes, SQLITE_STATIC);
  return step(w, REMOVE, error);
}

static int commit(void *raw, bench_error *error) { return step(raw, COMMIT, error); }

static int add(void *raw, const uint8_t *key, size_t key_bytes, uint64_t n, bench_error *error) {
  writer *w = raw;
  sqlite3_bind_blob64(w->statements[ADD], 1, key, key_bytes, SQLITE_STATIC);
  sqlite3_bind_int64(w->statements[ADD], 2, (sqlite3_int64)n);
  return step(w, ADD, error);
}

static void reader_close(void *raw) {
  reader *r = raw;
  sqlite3_finalize(r->get);
  sqlite3_finalize(r->find);
  for (int way = 0; way < WAYS; ++way) sqlite3_finalize(r->ranges[way]);
  sqlite3_close(r->db);
  free(r);
}

/* One read transaction lasts until the first refresh. After it, each statement has its own. */
static void *reader_open(void *raw, bench_error *error) {
  store *s = raw;
  reader *r = bench_new(sizeof *r, error);
  if (r == NULL) return NULL;
  r->db = connect(s, 0, s->budget_bytes / 8, error);
  if (r->db != NULL && prepare(r->db, "SELECT v FROM kv WHERE k = ?1", &r->get, error) == 0 &&
      (!s->indexed ||
       prepare(r->db, "SELECT k, v FROM kv INDEXED BY field WHERE substr(v, 1, 8) = ?1", &r->find, error) == 0) &&
      prepare(r->db, "SELECT k, v FROM kv WHERE k >= ?1 ORDER BY k", &r->ranges[UP], error) == 0 &&
      prepare(r->db, "SELECT k, v FROM kv WHERE k <= ?1 ORDER BY k DESC", &r->ranges[DOWN], error) == 0 &&
      prepare(r->db, "SELECT k, v FROM kv ORDER BY k", &r->ranges[FIRST], error) == 0 &&
      prepare(r->db, "SELECT k, v FROM kv ORDER BY k DESC", &r->ranges[LAST], error) == 0 &&
      run(r->db, "BEGIN", error) == 0)
    return r;
  reader_close(r);
  return NULL;
}

static int refresh(void *raw, bench_error *error) {
  reader *r = raw;
  sqlite3_reset(r->get);
  return sqlite3_get_autocommit(r->db) ? 0 : run(r->db, "COMMIT", error);
}

static int get(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t **value,
               size_t *value_bytes, bench_error *error) {
  reader *r = raw;
  sqlite3_reset(r->get); /* the value that was got before goes only now */
  sqlite3_bind_blob64(r->get, 1, key, key_bytes, SQLITE_STATIC);
  const int rc = sqlite3_step(r->get);
  if (rc == SQLITE_ROW) {
    *value = sqlite3_column_blob(r->get, 0);
    *value_bytes = (size_t)sqlite3_column_bytes(r->get, 0);
    return 1;
  }
  sqlite3_reset(r->get);
  return rc == SQLITE_DONE ? 0 : fail(r->db, "SELECT", error);
}

/* Visits the rows of a statement, at most so many. */
static int visit(reader *r, sqlite3_stmt *at, uint64_t limit, bench_seen *seen, bench_error *error) {
  bench_seen sum = {0, 0};
  int rc = SQLITE_ROW;
  while (sum.records < limit && (rc = sqlite3_step(at)) == SQLITE_ROW) {
    const void *key = sqlite3_column_blob(at, 0), *value = sqlite3_column_blob(at, 1);
    bench_see(&sum, key, (size_t)sqlite3_column_bytes(at, 0), value, (size_t)sqlite3_column_bytes(at, 1));
  }
  sqlite3_reset(at);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) return fail(r->db, "SELECT", error);
  *seen = sum;
  return 0;
}

static int range_of(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  reader *r = raw;
  const int way = (range->from == NULL ? FIRST : UP) + (range->down ? 1 : 0);
  sqlite3_stmt *at = r->ranges[way];
  if (range->from != NULL) sqlite3_bind_blob64(at, 1, range->from, range->from_bytes, SQLITE_STATIC);
  return visit(r, at, range->limit, seen, error);
}

static int find(void *raw, const uint8_t *field, size_t field_bytes, bench_seen *seen, bench_error *error) {
  reader *r = raw;
  if (r->find == NULL) return bench_fail(error, "find", "the table has no index");
  sqlite3_bind_blob64(r->find, 1, field, field_bytes, SQLITE_STATIC);
  return visit(r, r->find, UINT64_MAX, seen, error);
}

static int scan(void *raw, bench_seen *seen, bench_error *error) {
  const bench_range all = {NULL, 0, UINT64_MAX, 0};
  return range_of(raw, &all, seen, error);
}

static void changes_close(void *raw) {
  changes *c = raw;
  sqlite3_finalize(c->next);
  sqlite3_close(c->db);
  free(c);
}

static void *changes_open(void *raw, bench_error *error) {
  store *s = raw;
  changes *c = bench_new(sizeof *c, error);
  if (c == NULL) return NULL;
  c->db = connect(s, 0, s->budget_bytes / 8, error);
  if (c->db != NULL && prepare(c->db, "SELECT n, k, v FROM changes WHERE n > ?1 ORDER BY n LIMIT ?2", &c->next, error) == 0)
    return c;
  changes_close(c);
  return NULL;
}

static int changes_take(void *raw, uint64_t limit, bench_seen *seen, bench_error *error) {
  changes *c = raw;
  bench_seen sum = {0, 0};
  int rc;
  sqlite3_bind_int64(c->next, 1, c->taken);
  sqlite3_bind_int64(c->next, 2, (sqlite3_int64)limit);
  while ((rc = sqlite3_step(c->next)) == SQLITE_ROW) {
    const void *key = sqlite3_column_blob(c->next, 1), *value = sqlite3_column_blob(c->next, 2);
    bench_see(&sum, key, (size_t)sqlite3_column_bytes(c->next, 1), value, (size_t)sqlite3_column_bytes(c->next, 2));
    c->taken = sqlite3_column_int64(c->next, 0);
  }
  sqlite3_reset(c->next);
  if (rc != SQLITE_DONE) return fail(c->db, "SELECT", error);
  *seen = sum;
  return 0;
}

/* Copies all pages in one step, within one read transaction, and syncs them. */
static int copy_pages(sqlite3 *from, sqlite3 *to, bench_error *error) {
  sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
  if (backup == NULL) return fail(to, "sqlite3_backup_init", error);
  const int stepped = sqlite3_backup_step(backup, -1);
  const int finished = sqlite3_backup_finish(backup);
  if (stepped != SQLITE_DONE || finished != SQLITE_OK) return fail(to, "sqlite3_backup_step", error);
  return 0;
}

static int back_up(void *raw, const char *path, bench_error *error) {
  store *s = raw;
  sqlite3 *from = connect(s, 0, s->budget_bytes / 8, error), *to = NULL;
  char file[4096];
  int rc = -1;
  if (from == NULL) return -1;
  snprintf(file, sizeof file, "%s/data.sqlite", path);
  remove(file); /* a copy that is there would be changed through a log of its own */
  if (sqlite3_open_v2(file, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK) {
    fail(to, "sqlite3_open_v2", error);
  } else {
    rc = copy_pages(from, to, error);
  }
  if (sqlite3_close(to) != SQLITE_OK && rc == 0) rc = fail(to, "sqlite3_close", error);
  sqlite3_close(from);
  return rc;
}

const bench_peer bench_sqlite = {
    .version = version,
    .configuration = "a table of two BLOBs WITHOUT ROWID; page_size 4096, or 16384 or 65536 for records above "
                     "900 or 3,600 bytes; journal_mode WAL, synchronous NORMAL, or FULL when durable; "
                     "cache_size budget / 2 in a writer, budget / 8 in a reader; mmap_size budget / 2; "
                     "wal_autocheckpoint 64 MiB; prepared statements; one read transaction a phase, one "
                     "for each get beside a writer; for the index workload an index of substr(v, 1, 8); "
                     "a counter is changed by one INSERT ON CONFLICT with a function of the program's; for the "
                     "feed workload triggers that insert into a table of changes, read by its number; "
                     "sqlite3_backup_step(-1) for backups, which are restored by copying the file",
    .store_open = store_open,
    .store_sync = store_sync,
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
    .scan = scan,
    .range = range_of,
    .reader_close = reader_close,
    .find = find,
    .add = add,
    .changes_open = changes_open,
    .changes_take = changes_take,
    .changes_close = changes_close,
    .back_up = back_up,
};
