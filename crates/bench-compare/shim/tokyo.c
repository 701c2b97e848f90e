/* Tokyo Cabinet: HDB (hash, one file) and BDB (B+ tree kept in an HDB).
 *
 * Transactions are the library's own. They write the old contents of what they change to a log beside
 * the file. The log is synced only with the option TSYNC. There is one transaction at a time in the whole
 * database, and readers see its changes before it commits. */

#include "peer.h"

#include <limits.h>
#include <stdlib.h>
#include <tcbdb.h>
#include <tchdb.h>
#include <tcutil.h>

static const uint64_t large_bytes = UINT64_C(1) << 31; /* beyond, addresses take 64 bits */
static const uint64_t page_bytes = 8192;
/* The library's overhead for each record of a cached leaf: its header and the allocator's. */
static const uint64_t cached_record_bytes = 64;

static const char *version(void) { return tcversion; }

static const char *path_in(const bench_open *how, const char *name, char *room, size_t bytes) {
  snprintf(room, bytes, "%s/%s", how->path, name);
  return room;
}

static int size_of(size_t bytes) { return bytes > INT_MAX ? INT_MAX : (int)bytes; }

typedef struct writer {
  void *db;
  int open;
} writer;

static void *writer_open(void *raw, bench_error *error) {
  writer *w = bench_new(sizeof *w, error);
  if (w != NULL) w->db = raw;
  return w;
}

/* Both kinds have the same calls under different names. */
#define SHARED(kind, DB, call)                                                                              \
  static int kind##_fail(DB *db, const char *name, bench_error *error) {                                    \
    return bench_fail(error, name, call##errmsg(call##ecode(db)));                                          \
  }                                                                                                         \
  static int kind##_sync(void *raw, bench_error *error) {                                                   \
    return call##sync(raw) ? 0 : kind##_fail(raw, #call "sync", error);                                     \
  }                                                                                                         \
  static int kind##_close(void *raw, bench_error *error) {                                                  \
    const int result = call##close(raw) ? 0 : kind##_fail(raw, #call "close", error);                       \
    call##del(raw);                                                                                         \
    return result;                                                                                          \
  }                                                                                                         \
  static int kind##_begin(void *raw, bench_error *error) {                                                  \
    writer *w = raw;                                                                                        \
    if (!call##tranbegin(w->db)) return kind##_fail(w->db, #call "tranbegin", error);                       \
    w->open = 1;                                                                                            \
    return 0;                                                                                               \
  }                                                                                                         \
  static int kind##_put(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value,              \
                        size_t value_bytes, bench_error *error) {                                           \
    writer *w = raw;                                                                                        \
    const int done = call##put(w->db, key, size_of(key_bytes), value, size_of(value_bytes));                \
    return done ? 0 : kind##_fail(w->db, #call "put", error);                                               \
  }                                                                                                         \
  static int kind##_remove(void *raw, const uint8_t *key, size_t key_bytes, bench_error *error) {           \
    writer *w = raw;                                                                                        \
    if (call##out(w->db, key, size_of(key_bytes)) || call##ecode(w->db) == TCENOREC) return 0;              \
    return kind##_fail(w->db, #call "out", error);                                                          \
  }                                                                                                         \
  static int kind##_commit(void *raw, bench_error *error) {                                                 \
    writer *w = raw;                                                                                        \
    w->open = 0;                                                                                            \
    return call##trancommit(w->db) ? 0 : kind##_fail(w->db, #call "trancommit", error);                     \
  }                                                                                                         \
  static void kind##_writer_close(void *raw) {                                                              \
    writer *w = raw;                                                                                        \
    if (w->open) call##tranabort(w->db);                                                                    \
    free(w);                                                                                                \
  }

SHARED(hash, TCHDB, tchdb)
SHARED(tree, TCBDB, tcbdb)

/* HDB */

typedef struct hash_reader {
  TCHDB *db;
  uint8_t *value;
  int room;
} hash_reader;

static void *hash_open(const bench_open *how, bench_error *error) {
  TCHDB *db = tchdbnew();
  int mode = HDBOWRITER;
  if (how->flags & BENCH_CREATE) mode |= HDBOCREAT | HDBOTRUNC;
  if (how->flags & BENCH_DURABLE) mode |= HDBOTSYNC;
  const uint64_t file_bytes = how->raw_bytes + how->records * 48;
  const uint8_t options = file_bytes > large_bytes ? HDBTLARGE : 0;
  char path[4096];
  if (!tchdbsetmutex(db) || !tchdbtune(db, (int64_t)(how->records * 2 + 1), 3, 10, options) ||
      !tchdbsetxmsiz(db, (int64_t)how->budget_bytes) ||
      !tchdbopen(db, path_in(how, "data.tch", path, sizeof path), mode)) {
    hash_fail(db, "tchdbopen", error);
    tchdbdel(db);
    return NULL;
  }
  return db;
}

static void *hash_reader_open(void *raw, bench_error *error) {
  hash_reader *r = calloc(1, sizeof *r);
  if (r != NULL) {
    r->db = raw;
    r->room = 8192;
    r->value = malloc((size_t)r->room);
    if (r->value != NULL) return r;
  }
  free(r);
  bench_fail(error, "malloc", "out of memory");
  return NULL;
}

static int hash_get(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t **value,
                    size_t *value_bytes, bench_error *error) {
  hash_reader *r = raw;
  for (;;) {
    const int bytes = tchdbget3(r->db, key, size_of(key_bytes), r->value, r->room);
    if (bytes < 0) return tchdbecode(r->db) == TCENOREC ? 0 : hash_fail(r->db, "tchdbget3", error);
    if (bytes < r->room) {
      *value = r->value;
      *value_bytes = (size_t)bytes;
      return 1;
    }
    uint8_t *larger = realloc(r->value, (size_t)r->room * 2); /* it may have been cut short */
    if (larger == NULL) return bench_fail(error, "realloc", "out of memory");
    r->value = larger;
    r->room *= 2;
  }
}

static bool see(const void *key, int key_bytes, const void *value, int value_bytes, void *seen) {
  bench_see(seen, key, (size_t)key_bytes, value, (size_t)value_bytes);
  return true;
}

static int hash_scan(void *raw, bench_seen *seen, bench_error *error) {
  hash_reader *r = raw;
  *seen = (bench_seen){0, 0};
  return tchdbforeach(r->db, see, seen) ? 0 : hash_fail(r->db, "tchdbforeach", error);
}

static void hash_reader_close(void *raw) {
  hash_reader *r = raw;
  free(r->value);
  free(r);
}

/* BDB */

typedef struct tree_reader {
  TCBDB *db;
  void *value; /* the last one that was got */
} tree_reader;

/* Leaves have about 8 KiB. The cache counts leaves. They take half the budget in memory, where each record
 * is a separate allocation. A quarter is for the mapping of the file beneath. */
static bool tree_tune(TCBDB *db, const bench_open *how) {
  const uint64_t records = how->records == 0 ? 1 : how->records;
  const uint64_t record_bytes = how->raw_bytes / records + 1;
  uint64_t members = page_bytes / record_bytes;
  members = members < 4 ? 4 : members > 256 ? 256 : members;
  uint64_t leaves = how->budget_bytes / 2 / (members * (record_bytes + cached_record_bytes));
  leaves = leaves < 64 ? 64 : leaves > INT32_MAX ? INT32_MAX : leaves;
  const uint64_t pages = records * 2 / members + 1024;
  const uint8_t options = how->raw_bytes * 2 + records * 16 > large_bytes ? BDBTLARGE : 0;
  return tcbdbsetmutex(db) &&
         tcbdbtune(db, (int32_t)members, 256, (int64_t)(pages * 2), 8, 10, options) &&
         tcbdbsetcache(db, (int32_t)leaves, 4096) &&
         tcbdbsetxmsiz(db, (int64_t)(how->budget_bytes / 4));
}

static void *tree_open(const bench_open *how, bench_error *error) {
  TCBDB *db = tcbdbnew();
  int mode = BDBOWRITER;
  if (how->flags & BENCH_CREATE) mode |= BDBOCREAT | BDBOTRUNC;
  if (how->flags & BENCH_DURABLE) mode |= BDBOTSYNC;
  char path[4096];
  if (!tree_tune(db, how) || !tcbdbopen(db, path_in(how, "data.tcb", path, sizeof path), mode)) {
    tree_fail(db, "tcbdbopen", error);
    tcbdbdel(db);
    return NULL;
  }
  return db;
}

static void *tree_reader_open(void *raw, bench_error *error) {
  tree_reader *r = bench_new(sizeof *r, error);
  if (r != NULL) r->db = raw;
  return r;
}

/* The call that does not copy returns a place that a concurrent writer may change. */
static int tree_get(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t **value,
                    size_t *value_bytes, bench_error *error) {
  tree_reader *r = raw;
  int bytes = 0;
  free(r->value);
  r->value = tcbdbget(r->db, key, size_of(key_bytes), &bytes);
  if (r->value == NULL) return tcbdbecode(r->db) == TCENOREC ? 0 : tree_fail(r->db, "tcbdbget", error);
  *value = r->value;
  *value_bytes = (size_t)bytes;
  return 1;
}

static int tree_scan(void *raw, bench_seen *seen, bench_error *error) {
  tree_reader *r = raw;
  *seen = (bench_seen){0, 0};
  return tcbdbforeach(r->db, see, seen) ? 0 : tree_fail(r->db, "tcbdbforeach", error);
}

static bool jump(BDBCUR *at, const bench_range *range) {
  if (range->from == NULL) return range->down ? tcbdbcurlast(at) : tcbdbcurfirst(at);
  const int bytes = size_of(range->from_bytes);
  return range->down ? tcbdbcurjumpback(at, range->from, bytes) : tcbdbcurjump(at, range->from, bytes);
}

static int tree_range(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  tree_reader *r = raw;
  BDBCUR *at = tcbdbcurnew(r->db);
  TCXSTR *key = tcxstrnew(), *value = tcxstrnew();
  *seen = (bench_seen){0, 0};
  bool there = jump(at, range);
  while (there && seen->records < range->limit) {
    there = tcbdbcurrec(at, key, value);
    if (!there) break;
    bench_see(seen, tcxstrptr(key), (size_t)tcxstrsize(key), tcxstrptr(value), (size_t)tcxstrsize(value));
    there = range->down ? tcbdbcurprev(at) : tcbdbcurnext(at);
  }
  tcxstrdel(value);
  tcxstrdel(key);
  tcbdbcurdel(at);
  return there || tcbdbecode(r->db) == TCENOREC ? 0 : tree_fail(r->db, "tcbdbcurrec", error);
}

static void tree_reader_close(void *raw) {
  tree_reader *r = raw;
  free(r->value);
  free(r);
}

const bench_peer bench_tokyo_hash = {
    .version = version,
    .configuration = "tchdbtune(2 x records buckets, alignment 8, TLARGE above 2 GiB), tchdbsetxmsiz(budget), "
                     "tchdbsetmutex; TSYNC only when durable; tchdbforeach for scans",
    .store_open = hash_open,
    .store_sync = hash_sync,
    .store_close = hash_close,
    .writer_open = writer_open,
    .begin = hash_begin,
    .put = hash_put,
    .remove = hash_remove,
    .commit = hash_commit,
    .writer_close = hash_writer_close,
    .reader_open = hash_reader_open,
    .refresh = bench_refresh_nothing,
    .get = hash_get,
    .scan = hash_scan,
    .reader_close = hash_reader_close,
};

const bench_peer bench_tokyo_tree = {
    .version = version,
    .configuration = "tcbdbtune(leaves of 8 KiB, 4 to 256 records; buckets 2 x pages; TLARGE above 2 GiB), "
                     "tcbdbsetcache(leaves for budget / 2 in memory), tcbdbsetxmsiz(budget / 4), "
                     "tcbdbsetmutex; TSYNC only when durable; tcbdbforeach for scans, a cursor for ranges",
    .store_open = tree_open,
    .store_sync = tree_sync,
    .store_close = tree_close,
    .writer_open = writer_open,
    .begin = tree_begin,
    .put = tree_put,
    .remove = tree_remove,
    .commit = tree_commit,
    .writer_close = tree_writer_close,
    .reader_open = tree_reader_open,
    .refresh = bench_refresh_nothing,
    .get = tree_get,
    .scan = tree_scan,
    .range = tree_range,
    .reader_close = tree_reader_close,
};
