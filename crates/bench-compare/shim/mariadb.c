/* MariaDB: a table of three columns, the key and the two halves of the value, in a server of its own.
 *
 * src/peers/mariadb.rs starts the server. The path given here is its socket. Each writer and reader has a
 * connection. A transaction's rows are kept as text and sent at its commit by LOAD DATA LOCAL, the fastest
 * way into the server. With the index in place, a row replaces the one with its key. In bulk, the table has
 * no index until the first sync, reader or removal. Then it is built at once.
 *
 * Keys are read as big-endian numbers, so the numbers have the same order as the bytes. mariadb_fields.h has
 * the table of the index workload, mariadb_many.h the gets of many keys. */

#include "peer.h"

#include <mariadb/mysql.h>
#include <pthread.h>
#include <stdlib.h>

enum { KEY_BYTES = 8, VALUE_BYTES = 8, ROW_BYTES_MAX = 4096 };
static const size_t rows_bytes_max = 8 << 20; /* then they are sent before the commit */

typedef struct store {
  char socket[108];
  int transactions;
  pthread_mutex_t indexing;
  int indexed; /* it has its primary key */
  int fields;  /* the index workload's table */
} store;

typedef struct writer {
  store *store;
  MYSQL *db;
  MYSQL_STMT *remove;
  uint64_t removed;
  char *rows;
  size_t used;
  size_t room;
  size_t sent; /* of the rows, within one LOAD DATA */
  int open;
  int sent_unindexed; /* rows of the transaction */
} writer;

struct fields;
typedef struct reader {
  MYSQL *db;
  struct fields *fields; /* instead of `get`, with an index */
  MYSQL_STMT *get;
  uint64_t key;
  uint32_t halves[2];
  MYSQL_STMT *many; /* for `many_count` keys */
  size_t many_count;
  struct asked {
    uint64_t key;
    size_t at;
  } *asked;
  uint64_t *many_keys;
  uint32_t (*many_values)[2];
  uint64_t found;
} reader;

static int fail(MYSQL *db, const char *call, bench_error *error) {
  return bench_fail(error, call, db == NULL ? "out of memory" : mysql_error(db));
}

static int fail_statement(MYSQL_STMT *statement, const char *call, bench_error *error) {
  return bench_fail(error, call, mysql_stmt_error(statement));
}

/* The version is the server's: src/peers/mariadb.rs asks its program. */
static const char *version(void) { return mysql_get_client_info(); }

static uint64_t number(const uint8_t *key) {
  uint64_t word = 0;
  for (int at = 0; at < KEY_BYTES; ++at) word = word << 8 | key[at];
  return word;
}

static void see(bench_seen *seen, uint64_t key, const void *value, size_t value_bytes) {
  uint8_t bytes[KEY_BYTES];
  for (int at = 0; at < KEY_BYTES; ++at) bytes[at] = (uint8_t)(key >> (56 - 8 * at));
  bench_see(seen, bytes, sizeof bytes, value, value_bytes);
}

static int run(MYSQL *db, const char *sql, bench_error *error) {
  return mysql_query(db, sql) == 0 ? 0 : fail(db, sql, error);
}

static MYSQL *connect_to(const store *s, const char *database, bench_error *error) {
  MYSQL *db = mysql_init(NULL);
  const unsigned yes = 1;
  if (db != NULL) {
    mysql_options(db, MYSQL_OPT_LOCAL_INFILE, &yes);
    if (mysql_real_connect(db, NULL, "root", NULL, database, 0, s->socket, 0) != NULL) return db;
  }
  fail(db, "mysql_real_connect", error);
  if (db != NULL) mysql_close(db);
  return NULL;
}

static MYSQL_STMT *prepare(MYSQL *db, const char *sql, bench_error *error) {
  MYSQL_STMT *statement = mysql_stmt_init(db);
  if (statement == NULL) {
    fail(db, "mysql_stmt_init", error);
  } else if (mysql_stmt_prepare(statement, sql, strlen(sql)) == 0) {
    return statement;
  } else {
    fail_statement(statement, "mysql_stmt_prepare", error);
    mysql_stmt_close(statement);
  }
  return NULL;
}

static void bind_u64(MYSQL_BIND *bind, uint64_t *at) {
  memset(bind, 0, sizeof *bind);
  bind->buffer_type = MYSQL_TYPE_LONGLONG;
  bind->is_unsigned = 1;
  bind->buffer = at;
}

static void bind_u32(MYSQL_BIND *bind, uint32_t *at) {
  memset(bind, 0, sizeof *bind);
  bind->buffer_type = MYSQL_TYPE_LONG;
  bind->is_unsigned = 1;
  bind->buffer = at;
}

#include "mariadb_fields.h"

static int create(const store *s, const char *engine, bench_error *error) {
  MYSQL *db = connect_to(s, NULL, error);
  if (db == NULL) return -1;
  char sql[256];
  if (s->fields) snprintf(sql, sizeof sql, fields_table, engine);
  else
    snprintf(sql, sizeof sql,
           "CREATE TABLE bench.t (k BIGINT UNSIGNED NOT NULL%s, a INT UNSIGNED NOT NULL, "
           "b INT UNSIGNED NOT NULL) ENGINE=%s",
           s->indexed ? " PRIMARY KEY" : "", engine);
  const int result = run(db, "CREATE DATABASE bench", error) != 0 ? -1 : run(db, sql, error);
  mysql_close(db);
  return result;
}

static void *store_open(const bench_open *how, const char *engine, int transactions, int bulk,
                        bench_error *error) {
  store *s = bench_new(sizeof *s, error);
  if (s == NULL) return NULL;
  snprintf(s->socket, sizeof s->socket, "%s", how->path);
  s->transactions = transactions;
  s->indexed = !bulk || !(how->flags & BENCH_CREATE);
  s->fields = (how->flags & BENCH_INDEXED) != 0;
  pthread_mutex_init(&s->indexing, NULL);
  if (!(how->flags & BENCH_CREATE) || create(s, engine, error) == 0) return s;
  free(s);
  return NULL;
}

/* Builds the index if it was not built before. */
static int index_rows(store *s, bench_error *error) {
  int result = 0;
  pthread_mutex_lock(&s->indexing);
  if (!s->indexed) {
    MYSQL *db = connect_to(s, "bench", error);
    result = db == NULL ? -1 : run(db, "ALTER TABLE t ADD PRIMARY KEY (k)", error);
    if (db != NULL) mysql_close(db);
    s->indexed = result == 0;
  }
  pthread_mutex_unlock(&s->indexing);
  return result;
}

static int store_sync(void *raw, bench_error *error) {
  store *s = raw;
  if (index_rows(s, error) != 0) return -1;
  MYSQL *db = connect_to(s, "bench", error);
  if (db == NULL) return -1;
  const int result = run(db, "FLUSH TABLES t", error) != 0 ? -1 : run(db, "FLUSH ENGINE LOGS", error);
  mysql_close(db);
  return result;
}

/* Ends the server as well. */
static int store_close(void *raw, bench_error *error) {
  store *s = raw;
  int result = index_rows(s, error);
  MYSQL *db = connect_to(s, NULL, error);
  if (db == NULL || run(db, "SHUTDOWN", error) != 0) result = -1;
  if (db != NULL) mysql_close(db);
  pthread_mutex_destroy(&s->indexing);
  free(s);
  return result;
}

/* The source that LOAD DATA LOCAL reads instead of a file. */
static int rows_open(void **handle, const char *name, void *raw) {
  (void)name;
  writer *w = raw;
  w->sent = 0;
  *handle = w;
  return 0;
}

static int rows_read(void *raw, char *to, unsigned room) {
  writer *w = raw;
  const size_t left = w->used - w->sent, count = left < room ? left : room;
  memcpy(to, w->rows + w->sent, count);
  w->sent += count;
  return (int)count;
}

static void rows_close(void *raw) { (void)raw; }

static int rows_error(void *raw, char *text, unsigned room) {
  (void)raw;
  snprintf(text, room, "the rows could not be read");
  return 1;
}

static void writer_close(void *raw) {
  writer *w = raw;
  if (w->remove != NULL) mysql_stmt_close(w->remove);
  if (w->db != NULL) {
    if (w->open && w->store->transactions) mysql_query(w->db, "ROLLBACK");
    mysql_close(w->db);
  }
  free(w->rows);
  free(w);
}

static void *writer_open(void *raw, bench_error *error) {
  writer *w = bench_new(sizeof *w, error);
  if (w == NULL) return NULL;
  w->store = raw;
  w->room = rows_bytes_max + ROW_BYTES_MAX;
  w->rows = malloc(w->room);
  w->db = connect_to(w->store, "bench", error);
  if (w->db != NULL) w->remove = prepare(w->db, "DELETE FROM t WHERE k = ?", error);
  if (w->rows != NULL && w->remove != NULL) {
    mysql_set_local_infile_handler(w->db, rows_open, rows_read, rows_close, rows_error, w);
    MYSQL_BIND bind;
    bind_u64(&bind, &w->removed);
    if (mysql_stmt_bind_param(w->remove, &bind) == 0) return w;
    fail_statement(w->remove, "mysql_stmt_bind_param", error);
  }
  writer_close(w);
  return NULL;
}

static int begin(void *raw, bench_error *error) {
  writer *w = raw;
  w->used = 0;
  w->open = 1;
  w->sent_unindexed = 0;
  return w->store->transactions ? run(w->db, "START TRANSACTION", error) : 0;
}

static int send_rows(writer *w, bench_error *error) {
  if (w->used == 0) return 0;
  w->sent_unindexed = !w->store->indexed;
  const char *load = !w->store->indexed ? "LOAD DATA LOCAL INFILE 'rows' INTO TABLE t"
                     : w->store->fields ? "LOAD DATA LOCAL INFILE 'rows' REPLACE INTO TABLE t CHARACTER SET binary"
                                        : "LOAD DATA LOCAL INFILE 'rows' REPLACE INTO TABLE t";
  const int result = run(w->db, load, error);
  w->used = 0;
  return result;
}

static char *write_number(char *to, uint64_t value, char end) {
  char digits[20];
  int at = 20;
  do {
    digits[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  memcpy(to, digits + at, (size_t)(20 - at));
  to += 20 - at;
  *to = end;
  return to + 1;
}

static int put_field(writer *w, uint64_t key, const uint8_t *value, size_t value_bytes, bench_error *error) {
  if (value_bytes < FIELD_BYTES || value_bytes > FIELD_BYTES + REST_BYTES_MAX)
    return bench_fail(error, "put", "values must have 8 to 2,008 bytes");
  char *to = write_number(w->rows + w->used, key, '\t');
  to = write_bytes(to, value, FIELD_BYTES, '\t');
  to = write_bytes(to, value + FIELD_BYTES, value_bytes - FIELD_BYTES, '\n');
  w->used = (size_t)(to - w->rows);
  return w->used < rows_bytes_max ? 0 : send_rows(w, error);
}

static int put(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t *value,
               size_t value_bytes, bench_error *error) {
  writer *w = raw;
  if (w->store->fields && key_bytes == KEY_BYTES) return put_field(w, number(key), value, value_bytes, error);
  if (key_bytes != KEY_BYTES || value_bytes != VALUE_BYTES)
    return bench_fail(error, "put", "keys and values must have 8 bytes");
  uint32_t halves[2];
  memcpy(halves, value, sizeof halves);
  char *to = write_number(w->rows + w->used, number(key), '\t');
  to = write_number(to, halves[0], '\t');
  to = write_number(to, halves[1], '\n');
  w->used = (size_t)(to - w->rows);
  return w->used < rows_bytes_max ? 0 : send_rows(w, error);
}

static int remove_key(void *raw, const uint8_t *key, size_t key_bytes, bench_error *error) {
  writer *w = raw;
  if (key_bytes != KEY_BYTES) return bench_fail(error, "remove", "keys must have 8 bytes");
  /* The index comes first: building it waits for all transactions that have changed the table. */
  if (w->sent_unindexed) return bench_fail(error, "remove", "rows of this transaction are in the table without an index");
  if (index_rows(w->store, error) != 0 || send_rows(w, error) != 0) return -1;
  w->removed = number(key);
  return mysql_stmt_execute(w->remove) == 0 ? 0 : fail_statement(w->remove, "DELETE", error);
}

static int commit(void *raw, bench_error *error) {
  writer *w = raw;
  if (send_rows(w, error) != 0) return -1;
  w->open = 0;
  return w->store->transactions ? run(w->db, "COMMIT", error) : 0;
}

static void reader_close(void *raw) {
  reader *r = raw;
  fields_close(r->fields);
  if (r->get != NULL) mysql_stmt_close(r->get);
  if (r->many != NULL) mysql_stmt_close(r->many);
  if (r->db != NULL) mysql_close(r->db);
  free(r->asked);
  free(r->many_keys);
  free(r->many_values);
  free(r);
}

static void *reader_open(void *raw, bench_error *error) {
  if (index_rows(raw, error) != 0) return NULL;
  reader *r = bench_new(sizeof *r, error);
  if (r == NULL) return NULL;
  r->db = connect_to(raw, "bench", error);
  if (((store *)raw)->fields) {
    if (r->db != NULL && (r->fields = fields_open(r->db, error)) != NULL) return r;
    reader_close(r);
    return NULL;
  }
  if (r->db != NULL) r->get = prepare(r->db, "SELECT a, b FROM t WHERE k = ?", error);
  if (r->get != NULL) {
    MYSQL_BIND key, halves[2];
    bind_u64(&key, &r->key);
    bind_u32(&halves[0], &r->halves[0]);
    bind_u32(&halves[1], &r->halves[1]);
    if (mysql_stmt_bind_param(r->get, &key) == 0 && mysql_stmt_bind_result(r->get, halves) == 0) return r;
    fail_statement(r->get, "mysql_stmt_bind_param", error);
  }
  reader_close(r);
  return NULL;
}

static int get(void *raw, const uint8_t *key, size_t key_bytes, const uint8_t **value,
               size_t *value_bytes, bench_error *error) {
  reader *r = raw;
  if (key_bytes != KEY_BYTES) return bench_fail(error, "get", "keys must have 8 bytes");
  if (r->fields != NULL) return fields_get(r->fields, number(key), value, value_bytes, error);
  r->key = number(key);
  if (mysql_stmt_execute(r->get) != 0) return fail_statement(r->get, "SELECT", error);
  const int rc = mysql_stmt_fetch(r->get);
  if (rc != 0 && rc != MYSQL_NO_DATA) return fail_statement(r->get, "mysql_stmt_fetch", error);
  if (mysql_stmt_free_result(r->get) != 0) return fail_statement(r->get, "mysql_stmt_free_result", error);
  *value = (const uint8_t *)r->halves;
  *value_bytes = VALUE_BYTES;
  return rc == 0;
}

#include "mariadb_many.h"

/* Rows are read as they come, and not all stored first. */
static int visit(reader *r, const char *sql, bench_seen *seen, bench_error *error) {
  if (run(r->db, sql, error) != 0) return -1;
  MYSQL_RES *rows = mysql_use_result(r->db);
  if (rows == NULL) return fail(r->db, "mysql_use_result", error);
  *seen = (bench_seen){0, 0};
  MYSQL_ROW row;
  int failed = 0;
  while (!failed && (row = mysql_fetch_row(rows)) != NULL) {
    if (r->fields != NULL) {
      failed = fields_see(seen, row, mysql_fetch_lengths(rows), error) != 0;
      continue;
    }
    const uint32_t halves[2] = {(uint32_t)strtoul(row[1], NULL, 10), (uint32_t)strtoul(row[2], NULL, 10)};
    see(seen, strtoull(row[0], NULL, 10), halves, VALUE_BYTES);
  }
  const int broken = !failed && mysql_errno(r->db) != 0;
  failed = failed || broken;
  if (broken) fail(r->db, "mysql_fetch_row", error);
  mysql_free_result(rows);
  return failed ? -1 : 0;
}

static int scan(void *raw, bench_seen *seen, bench_error *error) {
  const reader *r = raw;
  return visit(raw, r->fields != NULL ? "SELECT k, f, v FROM t" : "SELECT k, a, b FROM t", seen, error);
}

static int range_of(void *raw, const bench_range *range, bench_seen *seen, bench_error *error) {
  char sql[200], from[64] = "";
  if (range->from != NULL) {
    if (range->from_bytes != KEY_BYTES) return bench_fail(error, "range", "keys must have 8 bytes");
    snprintf(from, sizeof from, "WHERE k %s %llu", range->down ? "<=" : ">=",
             (unsigned long long)number(range->from));
  }
  const reader *r = raw;
  snprintf(sql, sizeof sql, "SELECT k, %s FROM t FORCE INDEX (PRIMARY) %s ORDER BY k %s LIMIT %llu",
           r->fields != NULL ? "f, v" : "a, b", from,
           range->down ? "DESC" : "", (unsigned long long)range->limit);
  return visit(raw, sql, seen, error);
}

static int find(void *raw, const uint8_t *field, size_t field_bytes, bench_seen *seen, bench_error *error) {
  reader *r = raw;
  if (r->fields == NULL) return bench_fail(error, "find", "the table has no index");
  return fields_find(r->fields, field, field_bytes, seen, error);
}

#define PEER(symbol, engine, transactions, bulk)                                                     \
  static void *open_##symbol(const bench_open *how, bench_error *error) {                            \
    return store_open(how, engine, transactions, bulk, error);                                       \
  }                                                                                                  \
  const bench_peer bench_mariadb_##symbol = {                                                        \
      .version = version,                                                                            \
      .configuration = "",                                                                           \
      .store_open = open_##symbol,                                                                   \
      .store_sync = store_sync,                                                                      \
      .store_close = store_close,                                                                    \
      .writer_open = writer_open,                                                                    \
      .begin = begin,                                                                                \
      .put = put,                                                                                    \
      .remove = remove_key,                                                                          \
      .commit = commit,                                                                              \
      .writer_close = writer_close,                                                                  \
      .reader_open = reader_open,                                                                    \
      .refresh = bench_refresh_nothing,                                                                            \
      .get = get,                                                                                    \
      .get_many = get_many,                                                                          \
      .scan = scan,                                                                                  \
      .range = range_of,                                                                             \
      .reader_close = reader_close,                                                                  \
      .find = find,                                                                                  \
  }

PEER(myisam, "MyISAM", 0, 0);
PEER(myisam_bulk, "MyISAM", 0, 1);
PEER(aria, "Aria", 0, 0);
PEER(aria_bulk, "Aria", 0, 1);
PEER(innodb, "InnoDB", 1, 0);
PEER(innodb_bulk, "InnoDB", 1, 1);
