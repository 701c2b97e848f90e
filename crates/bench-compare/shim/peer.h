/* The C ABI between the comparison program and the libraries it drives.
 *
 * Each library has one shim file, which exports one constant `bench_peer` per kind of database.
 * One process opens a store, and any number of threads use it. A writer or a reader belongs to the
 * thread that opened it.
 *
 * Every call that can fail takes a `bench_error` and fills it with "<library call>: <message>".
 * Calls that return int return 0 for success and -1 for failure, unless they say otherwise.
 *
 * The Rust mirror of these declarations is src/peers/shim.rs. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  BENCH_CREATE = 1,    /* start with an empty database */
  BENCH_DURABLE = 2,   /* a commit returns when its records are on the device */
  BENCH_ASCENDING = 4, /* every key put will be greater than the one before */
  BENCH_INDEXED = 8,   /* there is an index of the first 8 bytes of values */
  BENCH_FED = 16,      /* what every transaction changes is kept for changes_open */
};

typedef struct bench_error {
  char text[240];
} bench_error;

typedef struct bench_open {
  const char *path;      /* an existing directory that belongs to the store */
  uint64_t budget_bytes; /* for caches, buffers and mappings together, where the library allows it */
  uint64_t records;      /* how many records there will be */
  uint64_t raw_bytes;    /* keys and values of all those records */
  uint32_t flags;        /* BENCH_* */
  uint64_t lives_ms;     /* records are gone so long after they were put; 0: they stay */
} bench_open;

typedef struct bench_bytes {
  const uint8_t *at;
  size_t count;
} bench_bytes;

/* The result of a scan or a range. */
typedef struct bench_seen {
  uint64_t records;
  uint64_t sum; /* of bench_record_sum */
} bench_seen;

typedef struct bench_range {
  const uint8_t *from; /* first key, or the next one in that direction; NULL: the first or last */
  size_t from_bytes;
  uint64_t limit; /* at most this many records */
  int down;       /* towards smaller keys */
} bench_range;

typedef struct bench_peer {
  /* The library's version. The text lives as long as the process. */
  const char *(*version)(void);
  /* The configuration that store_open chooses, in words. */
  const char *configuration;

  void *(*store_open)(const bench_open *how, bench_error *error); /* NULL: failed */
  int (*store_sync)(void *store, bench_error *error);   /* everything committed becomes durable */
  int (*store_settle)(void *store, bench_error *error); /* finish background work; may be NULL */
  int (*store_close)(void *store, bench_error *error);  /* frees the store, even when it fails */

  void *(*writer_open)(void *store, bench_error *error); /* NULL: failed */
  int (*begin)(void *writer, bench_error *error);
  int (*put)(void *writer, const uint8_t *key, size_t key_bytes, const uint8_t *value,
             size_t value_bytes, bench_error *error);
  int (*remove)(void *writer, const uint8_t *key, size_t key_bytes, bench_error *error); /* if present */
  int (*commit)(void *writer, bench_error *error);
  void (*writer_close)(void *writer); /* abandons what was not committed */

  void *(*reader_open)(void *store, bench_error *error); /* NULL: failed */
  int (*refresh)(void *reader, bench_error *error);      /* see everything committed by now */
  /* 1: found, and the value stays in place until the next call on this reader; 0: absent. */
  int (*get)(void *reader, const uint8_t *key, size_t key_bytes, const uint8_t **value,
             size_t *value_bytes, bench_error *error);
  /* Gets many keys by one call to the library. NULL if it has no such call. A value is NULL if its key is
   * absent. It stays in place until the next call on this reader. */
  int (*get_many)(void *reader, const bench_bytes *keys, size_t count, bench_bytes *values,
                  bench_error *error);
  int (*scan)(void *reader, bench_seen *seen, bench_error *error);
  /* Visits records in key order. NULL if there is no order. 1: cannot go in that direction. */
  int (*range)(void *reader, const bench_range *range, bench_seen *seen, bench_error *error);
  void (*reader_close)(void *reader);
  /* Visits the records whose values begin with these 8 bytes, by the index. NULL if there is none. */
  int (*find)(void *reader, const uint8_t *field, size_t field_bytes, bench_seen *seen, bench_error *error);
  /* Adds to the little-endian 64-bit number that a key's value is, within the transaction. Writers may do so
   * at once. An absent key gets the number. NULL if there is no way that needs no lock of the caller's. */
  int (*add)(void *writer, const uint8_t *key, size_t key_bytes, uint64_t n, bench_error *error);
  /* A reader of all changes since the store was made, in the order of the commits: for a store that was
   * created and opened with BENCH_FED. NULL, all three, if they are not kept. */
  void *(*changes_open)(void *store, bench_error *error); /* NULL: failed */
  /* Takes the changes that come next, `limit` of them or a few more. What was removed has an empty value. */
  int (*changes_take)(void *changes, uint64_t limit, bench_seen *seen, bench_error *error);
  void (*changes_close)(void *changes);
  /* Copies all that is committed into a directory, durably, while other threads write. If the library backs
   * up by increments, a directory with a backup gets what has changed since; otherwise a copy that is there is
   * replaced. May be called by any thread. NULL if there is no such call. */
  int (*back_up)(void *store, const char *to, bench_error *error);
  /* Makes the files of a store in `to` from the newest backup in `from`. NULL: copying the files does. */
  int (*restore)(const char *from, const char *to, bench_error *error);
} bench_peer;

extern const bench_peer bench_kyoto_hash;
extern const bench_peer bench_kyoto_tree;
extern const bench_peer bench_tkrzw_hash;
extern const bench_peer bench_tkrzw_tree;
extern const bench_peer bench_lmdb;
extern const bench_peer bench_leveldb;
extern const bench_peer bench_tokyo_hash;
extern const bench_peer bench_tokyo_tree;
extern const bench_peer bench_berkeley_hash;
extern const bench_peer bench_berkeley_tree;
extern const bench_peer bench_rocksdb;
extern const bench_peer bench_sqlite;
extern const bench_peer bench_mariadb_myisam;
extern const bench_peer bench_mariadb_myisam_bulk;
extern const bench_peer bench_mariadb_aria;
extern const bench_peer bench_mariadb_aria_bulk;
extern const bench_peer bench_mariadb_innodb;
extern const bench_peer bench_mariadb_innodb_bulk;

static inline int bench_fail(bench_error *error, const char *call, const char *message) {
  snprintf(error->text, sizeof error->text, "%s: %s", call, message);
  return -1;
}

/* Zeroed memory for a store, a writer or a reader. NULL: there was none, and the error says so. */
static inline void *bench_new(size_t bytes, bench_error *error) {
  void *fresh = calloc(1, bytes);
  if (fresh == NULL) bench_fail(error, "calloc", "out of memory");
  return fresh;
}

/* For readers that see every commit without a refresh. */
static inline int bench_refresh_nothing(void *reader, bench_error *error) {
  (void)reader;
  (void)error;
  return 0;
}

/* The average bytes of a record. */
static inline uint64_t bench_record_bytes(const bench_open *how) {
  return how->raw_bytes / (how->records == 0 ? 1 : how->records);
}

/* The sum of the bytes as little-endian 64-bit words, the last one padded with zeros. */
static inline uint64_t bench_words(const uint8_t *bytes, size_t count) {
  uint64_t sum = 0, word;
  size_t at = 0;
  for (; at + 8 <= count; at += 8) {
    memcpy(&word, bytes + at, 8);
    sum += word;
  }
  if (at < count) {
    word = 0;
    memcpy(&word, bytes + at, count - at);
    sum += word;
  }
  return sum;
}

/* What one record adds to the sum of a scan. Addition makes the order of records irrelevant, so
 * that hash tables and ordered tables give the same sum. Mirrored in src/records/sum.rs. */
static inline uint64_t bench_record_sum(const uint8_t *key, size_t key_bytes, const uint8_t *value,
                                        size_t value_bytes) {
  uint64_t x = bench_words(key, key_bytes) * UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 29)) + bench_words(value, value_bytes);
  x *= UINT64_C(0xBF58476D1CE4E5B9);
  return x ^ (x >> 32);
}

static inline void bench_see(bench_seen *seen, const void *key, size_t key_bytes, const void *value,
                             size_t value_bytes) {
  ++seen->records;
  seen->sum += bench_record_sum((const uint8_t *)key, key_bytes, (const uint8_t *)value, value_bytes);
}

/* A little-endian number of 8 bytes; 0 for a value of another length. */
static inline uint64_t bench_number(const void *value, size_t value_bytes) {
  const uint8_t *bytes = (const uint8_t *)value;
  uint64_t number = 0;
  if (value_bytes != 8) return 0;
  for (int at = 7; at >= 0; --at) number = number << 8 | bytes[at];
  return number;
}

static inline void bench_write_number(uint8_t bytes[8], uint64_t number) {
  for (int at = 0; at < 8; ++at) bytes[at] = (uint8_t)(number >> 8 * at);
}

/* A change as one value: four bytes for the length of the key, the key, the new value. */
static inline void bench_see_change(bench_seen *seen, const void *change, size_t change_bytes) {
  const uint8_t *bytes = (const uint8_t *)change;
  uint32_t key_bytes = 0;
  if (change_bytes >= sizeof key_bytes) memcpy(&key_bytes, bytes, sizeof key_bytes);
  const size_t behind = change_bytes - (change_bytes < sizeof key_bytes ? change_bytes : sizeof key_bytes);
  if (key_bytes > behind) key_bytes = (uint32_t)behind;
  bytes += change_bytes - behind;
  bench_see(seen, bytes, key_bytes, bytes + key_bytes, behind - key_bytes);
}

/* The order of keys: as unsigned bytes, a prefix before what it begins. */
static inline int bench_compare(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
  return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

#ifdef __cplusplus
}
#endif
#endif
