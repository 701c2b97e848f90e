/*
 * Azekura for C: an embedded, transactional key-value store. A database is one file, and the file
 * holds tables. This header is generated from crates/capi/src; `cargo xtask header` writes it.
 *
 * Results. Every function that can fail returns an azk_status, and AZK_OK if all went well. What it
 * gives goes to out-parameters, which come last. azk_error_message says why the last call of the
 * thread failed, and of which file, if the call had a handle of one. The errors that a function can return are listed with it. Besides, each can return
 * AZK_INVALID for an argument that has no meaning (a NULL where none may be, a length that no memory
 * has), AZK_BAD_HANDLE and AZK_BUSY for a handle (see below), and AZK_PANIC.
 *
 * Bytes. Keys and values are any bytes, with their length; NULL is allowed if the length is 0. They
 * are copied before a call returns. Paths and names end with a zero byte; names are UTF-8. (A table
 * whose name has a zero byte in it can be listed here, and opened only from Rust.)
 *
 * Memory. What a function allocates for its result is freed with azk_free. Pointers that are only
 * lent say until when they are good: those of cursors until the cursor moves or is freed, those of
 * azk_read_get_ref until the values are released or the transaction ends, those of
 * azk_write_get_ref until the transaction is changed or ends.
 *
 * Handles. A handle looks like a pointer, and is a number that the library looks up at each call:
 * nothing is read through it. So NULL, a handle that was freed, closed or ended, one of another type,
 * and any other pointer are AZK_BAD_HANDLE, every time, also when a thread frees what another is
 * about to use. A table of another database is AZK_INVALID. Each handle is to be freed by the one
 * who got it; a transaction, a cursor or a table keeps what it needs of its database, so they may be
 * freed in any order. Not detected: wrong lengths, out-parameters without room, and memory that is
 * passed to azk_free and is not of this library.
 *
 * Threads. All functions may be called by any threads at once. An azk_db, an azk_table, an azk_index
 * and an azk_shards may be used by several threads at the same time. Options, transactions, cursors,
 * lookups and readers of the feed are used by one thread at a time and may be handed on to another;
 * a call that meets another is AZK_BUSY, and so is freeing what a call is using: nothing happens
 * then. Messages are per thread. No function may be called from a signal handler.
 *
 * Callbacks may call every function, with the same handles too. (Those of azk_write_retain and
 * azk_write_update excepted: where a call keeps its transaction, what would use it is AZK_BUSY.)
 * They must return: no longjmp, no exception may leave them.
 *
 * Forks. A handle belongs to the process that has made it. In a forked child every call that reads
 * or writes is AZK_FORKED; freeing handles there is allowed and changes nothing for the parent. A
 * child may open databases of its own if no other thread was in this library at the fork; else it
 * should call exec.
 */


#ifndef AZEKURA_H
#define AZEKURA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * A time to live that does not end: the record stays until it is removed.
 */
#define AZK_FOREVER UINT64_MAX

/**
 * What a call returns. Positive numbers are errors of the engine and never change their meaning. Negative
 * numbers are of this interface. There may be more in later versions.
 */
enum azk_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The call succeeded.
   */
  AZK_OK = 0,
  /**
   * The key is absent, or the cursor is at its end. This is no error and leaves no message.
   */
  AZK_NOT_FOUND = -1,
  /**
   * The value does not fit into the buffer. Its length was given. This is no error and leaves no message.
   */
  AZK_BUFFER_TOO_SMALL = -2,
  /**
   * The callback has ended the walk. This is no error and leaves no message.
   */
  AZK_STOPPED = -3,
  /**
   * The handle is NULL, was freed or closed, is of another type, or is no handle.
   */
  AZK_BAD_HANDLE = -4,
  /**
   * The handle is in use by another call, in another thread or around this callback.
   */
  AZK_BUSY = -5,
  /**
   * There is no memory for the result, or too many handles are open.
   */
  AZK_NO_MEMORY = -6,
  /**
   * A defect of the library. Free the handles of the call. At worst the file is as after a crash.
   */
  AZK_PANIC = -7,
  /**
   * An error of the engine for which this header has no number. The message says which.
   */
  AZK_OTHER = -8,
  /**
   * The file exists and is not an Azekura database.
   */
  AZK_NOT_A_DATABASE = 1,
  /**
   * The file was written by a newer version of the format.
   */
  AZK_NEWER_VERSION = 2,
  /**
   * Another handle, of this or another process, has the file open.
   */
  AZK_LOCKED = 3,
  /**
   * Bytes in the file are not what was written. The message says where.
   */
  AZK_CORRUPT = 4,
  /**
   * A key, value, name or transaction is over its limit.
   */
  AZK_TOO_LARGE = 5,
  /**
   * Another transaction has changed what this one used. Nothing was changed; run the transaction again.
   */
  AZK_CONFLICT = 6,
  /**
   * The database is open read-only.
   */
  AZK_READ_ONLY = 7,
  /**
   * The disk is full. Nothing acknowledged is lost. Try again when there is room.
   */
  AZK_NO_SPACE = 8,
  /**
   * The system reported an error.
   */
  AZK_IO = 9,
  /**
   * An earlier write or sync failed, so the handle can acknowledge nothing more. Close the database and
   * open it again.
   */
  AZK_POISONED = 10,
  /**
   * There is no table of that name, or it was dropped.
   */
  AZK_NO_SUCH_TABLE = 11,
  /**
   * A table of that name exists already.
   */
  AZK_TABLE_EXISTS = 12,
  /**
   * The table is of the other kind, or the value has the wrong form.
   */
  AZK_WRONG_TYPE = 13,
  /**
   * An argument or option has no meaning.
   */
  AZK_INVALID = 14,
  /**
   * The file cannot be opened, locked or made; it does not exist; or it exists and was to be new.
   */
  AZK_OPEN = 15,
  /**
   * The database was closed.
   */
  AZK_CLOSED = 16,
  /**
   * The database was opened by the parent of this process.
   */
  AZK_FORKED = 17,
  /**
   * The file was cut: it can only be opened read-only.
   */
  AZK_TRUNCATED = 18,
  /**
   * The disk is full, and closing would lose commits. The handle stays open.
   */
  AZK_NOT_DURABLE = 19,
  /**
   * Two records would have the same values in a unique index. Nothing was changed.
   */
  AZK_NOT_UNIQUE = 20,
  /**
   * The table has no index of that name.
   */
  AZK_NO_SUCH_INDEX = 21,
  /**
   * The writer does not keep any more what this snapshot of a follower reads. Take another one.
   */
  AZK_SNAPSHOT_TOO_OLD = 22,
  /**
   * The feed of changes has not all of them any more after that commit.
   */
  AZK_FEED_GAP = 23,
  /**
   * A mirror is required, and none has acknowledged the commit in time. It is committed, durably in this
   * file: to commit it again would be wrong.
   */
  AZK_MIRROR_BEHIND = 24,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_status azk_status;
#else
typedef int32_t azk_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * How a table orders its records.
 */
enum azk_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * In the byte order of the keys: allows ranges, prefixes, and cursors from any key.
   */
  AZK_ORDERED = 1,
  /**
   * In the order of the keys' hashes: the fastest gets, but iteration in no useful order.
   */
  AZK_HASH = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_kind azk_kind;
#else
typedef int32_t azk_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * When a commit survives a crash.
 */
enum azk_durability
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * As the database was opened.
   */
  AZK_DURABILITY_DEFAULT = 0,
  /**
   * When the commit returns.
   */
  AZK_DURABILITY_SYNC = 1,
  /**
   * Within the eventual delay, or when azk_db_sync returns. A crash never tears such a commit, and never
   * keeps a later commit without an earlier one.
   */
  AZK_DURABILITY_EVENTUAL = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_durability azk_durability;
#else
typedef int32_t azk_durability;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a transaction that reads and writes is protected from. A transaction without writes never conflicts.
 */
enum azk_isolation
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * As if transactions ran one after the other. The commit fails if anything that the transaction has read
   * was changed since. Its snapshot begins with its first read. A transaction that only writes conflicts
   * only if a table that it writes to has indexes (a write there reads the old value), or has got or lost
   * one meanwhile.
   */
  AZK_SERIALIZABLE = 0,
  /**
   * The commit fails only in three cases. A key that the transaction has written was changed since it
   * began. Others have written records with the same values in a unique index. A table that it has written
   * to has got or lost an index. Its snapshot begins with the transaction.
   */
  AZK_SNAPSHOT = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_isolation azk_isolation;
#else
typedef int32_t azk_isolation;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Up to what a handle follows a database that another process writes. See azk_options_set_follow.
 */
enum azk_follow
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * It does not follow: the file is locked.
   */
  AZK_FOLLOW_NOTHING = 0,
  /**
   * What the writer has flushed: the newest checkpoint.
   */
  AZK_FOLLOW_CHECKPOINTS = 1,
  /**
   * All commits that are durable: the log, too.
   */
  AZK_FOLLOW_LOG = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_follow azk_follow;
#else
typedef int32_t azk_follow;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The type of an azk_value.
 */
enum azk_value_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The value of a field that a record does not have. It comes before all others.
   */
  AZK_VALUE_NULL = 0,
  /**
   * The field `bytes`.
   */
  AZK_VALUE_BYTES = 1,
  /**
   * The field `bytes`, which is UTF-8.
   */
  AZK_VALUE_TEXT = 2,
  /**
   * The field `u64`.
   */
  AZK_VALUE_U64 = 3,
  /**
   * The field `i64`.
   */
  AZK_VALUE_I64 = 4,
  /**
   * The field `f64`.
   */
  AZK_VALUE_F64 = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_value_kind azk_value_kind;
#else
typedef int32_t azk_value_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which point of a repository.
 */
enum azk_which
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The newest: that with the last commit.
   */
  AZK_NEWEST = 0,
  /**
   * The one of a number.
   */
  AZK_POINT = 1,
  /**
   * One with exactly the commits up to a number.
   */
  AZK_COMMIT = 2,
  /**
   * The newest that began at a time or before, in milliseconds since 1970. Of one whose log was kept, the
   * last commit that was read from the log by then.
   */
  AZK_TIME = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_which azk_which;
#else
typedef int32_t azk_which;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What a merge does to a value. Numbers have eight bytes, little-endian: integers in two's complement, or
 * floating-point numbers of IEEE 754.
 */
enum azk_operator
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Adds to an integer, with or without sign. Sums wrap around.
   */
  AZK_ADD = 1,
  /**
   * Adds to a floating-point number. In which order sums are rounded is not said.
   */
  AZK_ADD_F64 = 2,
  /**
   * The smaller of two integers.
   */
  AZK_MIN_I64 = 3,
  /**
   * The larger of two integers.
   */
  AZK_MAX_I64 = 4,
  /**
   * The smaller of two integers without sign.
   */
  AZK_MIN_U64 = 5,
  /**
   * The larger of two integers without sign.
   */
  AZK_MAX_U64 = 6,
  /**
   * The smaller of two floating-point numbers, in their total order.
   */
  AZK_MIN_F64 = 7,
  /**
   * The larger of two floating-point numbers, in their total order.
   */
  AZK_MAX_F64 = 8,
  /**
   * All bits that are set in one of both.
   */
  AZK_OR = 9,
  /**
   * Puts bytes behind the value, which may be any.
   */
  AZK_APPEND = 10,
  /**
   * Unites a set with elements of one byte each. For elements of n bytes, 1 to 255, it is AZK_UNION and
   * n - 1 times 256. The operand is elements one after the other, in any order; the value has them in the
   * order of their bytes, each once.
   */
  AZK_UNION = 11,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_operator azk_operator;
#else
typedef int32_t azk_operator;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What the feed has of the changes of a table.
 */
enum azk_feed_content
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Nothing.
   */
  AZK_FEED_NOTHING = 0,
  /**
   * The keys.
   */
  AZK_FEED_KEYS = 1,
  /**
   * Keys and new values.
   */
  AZK_FEED_VALUES = 2,
  /**
   * Keys, new values, and the values before.
   */
  AZK_FEED_BOTH = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_feed_content azk_feed_content;
#else
typedef int32_t azk_feed_content;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What was done.
 */
enum azk_change_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * A change for which this header has no number.
   */
  AZK_CHANGE_OTHER = 0,
  /**
   * `key` has a new value.
   */
  AZK_CHANGE_PUT = 1,
  /**
   * `key` was removed. It need not have been there.
   */
  AZK_CHANGE_REMOVE = 2,
  /**
   * The keys from `key` on and below `end` were removed, or all from `key` on if there is no `end`.
   */
  AZK_CHANGE_REMOVE_RANGE = 3,
  /**
   * All keys were removed.
   */
  AZK_CHANGE_CLEAR = 4,
  /**
   * The table is called `key` from then on.
   */
  AZK_CHANGE_RENAME = 5,
  /**
   * The table was dropped.
   */
  AZK_CHANGE_DROP = 6,
  /**
   * From this commit on the table is fed, with `content`. Who keeps a copy of it reads it anew.
   */
  AZK_CHANGE_BEGIN = 7,
  /**
   * The table is no longer fed.
   */
  AZK_CHANGE_STOP = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum azk_change_kind azk_change_kind;
#else
typedef int32_t azk_change_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A moving place in a table, as one snapshot has it.
 */
typedef struct azk_cursor azk_cursor;

/**
 * An open database.
 */
typedef struct azk_db azk_db;

/**
 * A reader of the feed of changes.
 */
typedef struct azk_feed azk_feed;

/**
 * An index of a table.
 */
typedef struct azk_index azk_index;

/**
 * Records that were found by an index, and how far one has come.
 */
typedef struct azk_lookup azk_lookup;

/**
 * Options for opening a database.
 */
typedef struct azk_options azk_options;

/**
 * A read transaction: a snapshot of all tables.
 */
typedef struct azk_read azk_read;

/**
 * A set of shards that is read.
 */
typedef struct azk_shards azk_shards;

/**
 * A table of an open database.
 */
typedef struct azk_table azk_table;

/**
 * A write transaction.
 */
typedef struct azk_write azk_write;

/**
 * One table of a list.
 */
typedef struct {
  /**
   * Its name, which ends with a zero byte.
   */
  const char *name;
  /**
   * The length of the name, without that byte.
   */
  size_t name_len;
  /**
   * Its kind.
   */
  azk_kind kind;
} azk_table_info;

/**
 * Bytes that are somewhere else. `data` may be NULL if `len` is 0.
 */
typedef struct {
  /**
   * The first byte.
   */
  const void *data;
  /**
   * How many bytes there are.
   */
  size_t len;
} azk_bytes;

/**
 * Called with each record. The bytes stay until it returns. 0 goes on; any other number ends the walk.
 */
typedef int32_t (*azk_scan_fn)(void *user_data,
                               const void *key,
                               size_t key_len,
                               const void *value,
                               size_t value_len);

/**
 * Called with the value of a key: its `data` is NULL if the key is absent. It sets *value to the new value,
 * or its `data` to NULL and its `len` to 0 to remove the key; if it leaves *value as it is, nothing is
 * written. The old bytes stay until it returns. The new ones, which may be a part of them, must stay until
 * the function that has called it returns, and are copied there. 0 goes on; any other number ends the call,
 * and nothing is written.
 */
typedef int32_t (*azk_update_fn)(void *user_data,
                                 azk_bytes *value);

/**
 * Called now and then during a long operation, with how many bytes are done and how many there are. `total`
 * may grow.
 */
typedef void (*azk_progress_fn)(void *user_data,
                                uint64_t done,
                                uint64_t total);

/**
 * One index of a list.
 */
typedef struct {
  /**
   * Its name, which ends with a zero byte.
   */
  const char *name;
  /**
   * What it is of, which ends with a zero byte.
   */
  const char *spec;
  /**
   * Whether it is complete. azk_table_create_index goes on with one that is not.
   */
  bool is_ready;
  /**
   * About how many entries it has.
   */
  uint64_t entries;
  /**
   * Their bytes, in the file and in memory.
   */
  uint64_t bytes;
} azk_index_info;

/**
 * A value of a field of an index. Only the field that `kind` names is read. Numbers may be of any type that
 * has them exactly.
 */
typedef struct {
  /**
   * An azk_value_kind.
   */
  int32_t kind;
  /**
   * Bytes or text.
   */
  azk_bytes bytes;
  /**
   * An integer that is not negative; for a field of type bool 0 or 1.
   */
  uint64_t u64;
  /**
   * Any integer.
   */
  int64_t i64;
  /**
   * A float, not NaN.
   */
  double f64;
} azk_value;

/**
 * What is kept of the feed.
 */
typedef struct {
  /**
   * The changes up to this commit are gone.
   */
  uint64_t oldest;
  /**
   * The newest durable commit.
   */
  uint64_t newest;
  /**
   * About so many bytes of changes are kept, at most.
   */
  uint64_t bytes_max;
  /**
   * Changes are kept for so many milliseconds; 0: however old they are.
   */
  uint64_t age_max_ms;
  /**
   * Bytes in the file and in memory.
   */
  uint64_t bytes;
} azk_feed_info;

/**
 * A change. Bytes that are not there have `data` NULL; bytes of length 0 that are there do not.
 */
typedef struct {
  /**
   * The number of the commit.
   */
  uint64_t commit;
  /**
   * When it was made, in milliseconds since 1970.
   */
  uint64_t time_ms;
  /**
   * The table's name, as it was before the commit.
   */
  azk_bytes table;
  /**
   * An azk_change_kind.
   */
  int32_t kind;
  /**
   * An azk_feed_content, of AZK_CHANGE_BEGIN.
   */
  int32_t content;
  /**
   * The key, the first key of a range, or a new name.
   */
  azk_bytes key;
  /**
   * The end of a range.
   */
  azk_bytes end;
  /**
   * The new value.
   */
  azk_bytes value;
  /**
   * The value before.
   */
  azk_bytes old;
  /**
   * When the record that was put expires, in milliseconds since 1970; 0: it does not.
   */
  uint64_t expires_ms;
} azk_change;

/**
 * What a check has found. Set `size` to sizeof(azk_check_report) before the call.
 */
typedef struct {
  /**
   * The size of this structure, as the caller knows it. Later versions may have more fields.
   */
  size_t size;
  /**
   * Tables that were checked.
   */
  uint64_t tables;
  /**
   * Records.
   */
  uint64_t records;
  /**
   * Deletes that are kept, since something older may have their keys.
   */
  uint64_t deletes;
  /**
   * Older versions of records that are still in the file.
   */
  uint64_t hidden;
  /**
   * Pages that were read.
   */
  uint64_t pages;
  /**
   * Large values that were read.
   */
  uint64_t values;
  /**
   * Commits in the file's log that are in no run yet.
   */
  uint64_t log_commits;
  /**
   * Records of these commits, with deletes.
   */
  uint64_t log_records;
  /**
   * Bytes of the log that were read.
   */
  uint64_t log_bytes;
  /**
   * Parts of the file in use.
   */
  uint64_t extents;
  /**
   * Bytes in use.
   */
  uint64_t live_bytes;
  /**
   * Bytes free.
   */
  uint64_t free_bytes;
  /**
   * How many problems there are; 0 if all is well.
   */
  uint64_t problems;
} azk_check_report;

/**
 * What a backup has done. Set `size` to sizeof(azk_backup_report) before the call.
 */
typedef struct {
  /**
   * The size of this structure, as the caller knows it. Later versions may have more fields.
   */
  size_t size;
  /**
   * The number of the point.
   */
  uint64_t point;
  /**
   * The number of the newest commit in it.
   */
  uint64_t commit;
  /**
   * Chunks of the point.
   */
  uint64_t chunks;
  /**
   * Their bytes.
   */
  uint64_t bytes;
  /**
   * Chunks that the repository did not have.
   */
  uint64_t new_chunks;
  /**
   * Their bytes.
   */
  uint64_t new_bytes;
} azk_backup_report;

/**
 * One point of a repository: the database after one commit.
 */
typedef struct {
  /**
   * Its number, from 1 on.
   */
  uint64_t number;
  /**
   * The number of the newest commit in it.
   */
  uint64_t commit;
  /**
   * When it was found what the point has, in milliseconds since 1970. It has nothing that came later.
   */
  uint64_t time_ms;
  /**
   * Its tables.
   */
  uint64_t tables;
  /**
   * Bytes of its chunks, which other points may share.
   */
  uint64_t bytes;
  /**
   * The database can be restored as it was after any commit from this one on, up to commit. That is the
   * same one, unless the point has a log.
   */
  uint64_t first_commit;
  /**
   * When its log was last read on, in milliseconds since 1970. Of other points it is time_ms.
   */
  uint64_t last_time_ms;
} azk_point;

/**
 * What looking through a repository has found. Set `size` to sizeof(azk_verify_report) before the call.
 */
typedef struct {
  /**
   * The size of this structure, as the caller knows it. Later versions may have more fields.
   */
  size_t size;
  /**
   * Points that can be read.
   */
  uint64_t points;
  /**
   * Different chunks that they name.
   */
  uint64_t chunks;
  /**
   * Their bytes.
   */
  uint64_t bytes;
  /**
   * Files that no point names. azk_repository_prune removes them.
   */
  uint64_t unused;
  /**
   * How many problems there are; 0 if all is well.
   */
  uint64_t problems;
} azk_verify_report;

/**
 * What the engine counts. Set `size` to sizeof(azk_stats) before the call. Sizes are in bytes. Counts begin
 * at the opening.
 */
typedef struct {
  /**
   * The size of this structure, as the caller knows it. Later versions may have more fields.
   */
  size_t size;
  /**
   * The file's length.
   */
  uint64_t file_bytes;
  /**
   * Bytes of the file that are in use.
   */
  uint64_t live_bytes;
  /**
   * Bytes of the file in holes, which are used again.
   */
  uint64_t free_bytes;
  /**
   * Memory of the memtables.
   */
  uint64_t memtable_bytes;
  /**
   * Memory of the tables themselves, with the records of small ones.
   */
  uint64_t table_bytes;
  /**
   * Bytes of the log, in memory and in the file.
   */
  uint64_t log_bytes;
  /**
   * Commits that opening found in the file's log.
   */
  uint64_t log_commits;
  /**
   * Records of these commits, with deletes.
   */
  uint64_t log_records;
  /**
   * Bytes of large values in the file.
   */
  uint64_t value_bytes;
  /**
   * Partitions of sorted runs, in all tables.
   */
  uint64_t runs;
  /**
   * Memory that is kept for the file's pages.
   */
  uint64_t cache_bytes;
  /**
   * Pages that were read from the file and checked.
   */
  uint64_t cache_misses;
  /**
   * Pages in memory that made room for others.
   */
  uint64_t cache_evictions;
  /**
   * Bytes written to the file.
   */
  uint64_t written_bytes;
  /**
   * Calls that wrote them.
   */
  uint64_t write_calls;
  /**
   * Bytes read from the file.
   */
  uint64_t read_bytes;
  /**
   * Syncs of the file.
   */
  uint64_t syncs;
  /**
   * Bytes of keys and values in commits.
   */
  uint64_t user_bytes;
  /**
   * Commits.
   */
  uint64_t commits;
  /**
   * Flushes of memtables.
   */
  uint64_t flushes;
  /**
   * Merges that have ended.
   */
  uint64_t merges;
  /**
   * Records that merges have read.
   */
  uint64_t merged_records;
  /**
   * The time that merges took, in nanoseconds.
   */
  uint64_t merge_ns;
  /**
   * Commits that were delayed by more than a millisecond.
   */
  uint64_t stalls;
  /**
   * The time of these delays, in nanoseconds.
   */
  uint64_t stall_ns;
  /**
   * The number of the newest checkpoint; in a follower, of the one that it shows.
   */
  uint64_t checkpoint;
  /**
   * How many checkpoints followers of other handles read. azk_db_pins lists them.
   */
  uint64_t pins;
  /**
   * Bytes of the file that are kept for these alone.
   */
  uint64_t pinned_bytes;
  /**
   * For how long there has been a newer checkpoint than the oldest of these, in nanoseconds. 0 in a
   * follower.
   */
  uint64_t oldest_pin_ns;
  /**
   * Durable commits that returned without a synchronous mirror although there was one.
   */
  uint64_t unmirrored_commits;
} azk_stats;

/**
 * A checkpoint that followers of other handles read.
 */
typedef struct {
  /**
   * Its number.
   */
  uint64_t checkpoint;
  /**
   * For how long there has been a newer one, in nanoseconds, as far as this handle knows, which asks at
   * each checkpoint. In a handle that does not write: 0 for the newest checkpoint, and UINT64_MAX for
   * others, since only the writer knows, and where the file cannot be read.
   */
  uint64_t age_ns;
  /**
   * Bytes of the file that cannot be used again because of it. What several keep counts for each. In a
   * handle that does not write: 0 for the newest checkpoint and for pins that the file says are revoked,
   * and UINT64_MAX for others. All of them together keep at most what file_bytes of azk_stats has beyond
   * live_bytes.
   */
  uint64_t bytes;
} azk_pin;

/**
 * One table in figures. Set `size` to sizeof(azk_table_figures) before the call. Sizes are in bytes.
 */
typedef struct {
  /**
   * The size of this structure, as the caller knows it. Later versions may have more fields.
   */
  size_t size;
  /**
   * About how many records there are. Those that were put again or removed since levels were merged last
   * count too. azk_table_count counts exactly.
   */
  uint64_t records_estimate;
  /**
   * Levels in the file.
   */
  uint64_t levels;
  /**
   * Their partitions.
   */
  uint64_t runs;
  /**
   * Bytes of the file in runs.
   */
  uint64_t run_bytes;
  /**
   * Bytes of large values to which runs refer.
   */
  uint64_t value_bytes;
  /**
   * Memory of what is in no run yet.
   */
  uint64_t memory_bytes;
  /**
   * Its indexes.
   */
  uint64_t indexes;
  /**
   * Bytes of the file in runs of its indexes. They are not in run_bytes.
   */
  uint64_t index_bytes;
} azk_table_figures;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The name of a status, as in this header. "unknown status" for any other number. The text stays for good.
 */
const char *azk_status_name(int32_t status);

/**
 * Why the last failed call of this thread failed, in English. "" if none has failed. The text stays until
 * the thread's next failure, or its end.
 */
const char *azk_error_message(void);

/**
 * The version of the library, such as "0.1.0". The text stays for good.
 */
const char *azk_version(void);

/**
 * Frees what a function of this library has allocated for its result. NULL is allowed. (The memory is the C
 * library's: `free` does the same.)
 */
void azk_free(void *memory);

/**
 * Makes options with the defaults: the file is made if there is none, 256 MiB of memory, durable commits.
 * Free them with azk_options_free. Errors: none of its own.
 */
azk_status azk_options_create(azk_options **out);

/**
 * Frees options. Databases that were opened with them do not change. NULL is allowed. Errors: none of its
 * own.
 */
azk_status azk_options_free(azk_options *options);

/**
 * Whether to make a database if the file does not exist or is empty (0: no). Default: yes. Errors: none of
 * its own.
 */
azk_status azk_options_set_create(azk_options *options,
                                  int32_t yes);

/**
 * Whether to fail if the file exists (0: no). Default: no. Errors: none of its own.
 */
azk_status azk_options_set_exclusive(azk_options *options,
                                     int32_t yes);

/**
 * Whether to open for reading only (0: no). Several processes may do so, if none writes. Default: no.
 * Errors: none of its own.
 */
azk_status azk_options_set_read_only(azk_options *options,
                                     int32_t yes);

/**
 * How to follow a file that another process writes, an azk_follow. Neither waits for the other. Each call
 * that reads, and each snapshot, sees the newest commit that there is then. Such a handle is read-only. A
 * snapshot keeps space in the file; AZK_SNAPSHOT_TOO_OLD says that the writer has set limits for that
 * (azk_options_set_pinned_bytes_max) and that they were passed. Default: AZK_FOLLOW_NOTHING. Errors:
 * AZK_INVALID.
 */
azk_status azk_options_set_follow(azk_options *options,
                                  int32_t follow);

/**
 * How many bytes of the file the followers of this writer may keep at most. When they keep more, the oldest
 * of their snapshots are given up: reading there gives AZK_SNAPSHOT_TOO_OLD, never a wrong value. Followers
 * copy what they read as long as there is a limit. Default: none. Errors: none of its own.
 */
azk_status azk_options_set_pinned_bytes_max(azk_options *options,
                                            uint64_t bytes);

/**
 * For how many milliseconds a follower may read what is not the newest checkpoint any more. All else is as
 * azk_options_set_pinned_bytes_max says. Default: for any time. Errors: none of its own.
 */
azk_status azk_options_set_pinned_age_max_ms(azk_options *options,
                                             uint64_t age_ms);

/**
 * For how many milliseconds a durable commit, or azk_db_sync, waits at most for a mirror that is kept
 * synchronously (azekura mirror --sync). It waits only while there is one. If the time is over it returns
 * AZK_OK all the same, for it is durable in this file, and nobody waits until the mirror has caught up.
 * Default: 10000. Errors: none of its own.
 */
azk_status azk_options_set_mirror_timeout_ms(azk_options *options,
                                             uint64_t time_ms);

/**
 * Whether a durable commit that succeeds is surely in a mirror that is kept synchronously. Then it also
 * waits if there is none, and gives AZK_MIRROR_BEHIND when the time is over: it is durable in this file all
 * the same. Default: false. Errors: none of its own.
 */
azk_status azk_options_set_require_mirror(azk_options *options,
                                          bool yes);

/**
 * The memory for everything, in bytes. Default: 256 MiB. At least 8 MiB; azk_db_open refuses other values
 * with AZK_INVALID. Errors: none of its own.
 */
azk_status azk_options_set_memory_bytes(azk_options *options,
                                        uint64_t bytes);

/**
 * The memory that commits fill before they are flushed to the file, in bytes: from 64 KiB to 1 GiB. 0 is the
 * default: an eighth of all memory, and at most 64 MiB. Errors: none of its own.
 */
azk_status azk_options_set_memtable_bytes(azk_options *options,
                                          uint64_t bytes);

/**
 * The durability of commits that do not say otherwise, an azk_durability. Default: AZK_DURABILITY_SYNC.
 * Errors: AZK_INVALID.
 */
azk_status azk_options_set_durability(azk_options *options,
                                      int32_t durability);

/**
 * The time within which eventual commits become durable, in milliseconds. Default: 1000. Errors: none of its
 * own.
 */
azk_status azk_options_set_eventual_delay_ms(azk_options *options,
                                             uint64_t delay_ms);

/**
 * Values of this many bytes or more are stored apart from their keys. Default: 1024; from 64 to 8192.
 * Errors: none of its own.
 */
azk_status azk_options_set_large_value_bytes(azk_options *options,
                                             uint32_t bytes);

/**
 * Whether threads of the library merge in the background (0: no). Without them the file grows and reads slow
 * down until azk_db_compact or azk_db_shrink is called. Default: yes. Errors: none of its own.
 */
azk_status azk_options_set_background_merges(azk_options *options,
                                             int32_t yes);

/**
 * Whether the file is read through mappings (0: no). Then nothing is copied. But if the disk fails while the
 * system reads a page again, SIGBUS ends the process. Default: yes. Errors: none of its own.
 */
azk_status azk_options_set_mapped(azk_options *options,
                                  int32_t yes);

/**
 * Whether the library starts threads (0: no). Without threads, the call that finds work due does the work.
 * Eventual commits then become durable by azk_db_sync, a later durable commit or azk_db_close, but not by
 * time. Default: yes. Errors: none of its own.
 */
azk_status azk_options_set_threads(azk_options *options,
                                   int32_t yes);

/**
 * Opens the database in the file `path`, or makes it. `options` may be NULL for the defaults; they are
 * copied. On failure *out is NULL. Errors: AZK_OPEN, AZK_NOT_A_DATABASE, AZK_NEWER_VERSION, AZK_LOCKED,
 * AZK_CORRUPT, AZK_TRUNCATED, AZK_IO, AZK_NO_SPACE, AZK_INVALID.
 */
azk_status azk_db_open(const char *path,
                       const azk_options *options,
                       azk_db **out);

/**
 * Closes the database for everybody who has a handle of it. It makes everything durable, ends the library's
 * threads, gives the file its final length and releases its lock. Tables, transactions and cursors may
 * outlive it. Their calls then give AZK_CLOSED, and each must still be freed. If the file is mapped, the
 * lock is released when the last transaction and cursor is freed.
 *
 * On AZK_OK the handle is freed. Otherwise it stays. After AZK_NOT_DURABLE (the disk is full) the database
 * is open as before, and closing can be tried again when there is room. After any other error the file has
 * all that was durable, and reopening finds it. azk_db_free gives the database up.
 *
 * Errors: AZK_NOT_DURABLE, AZK_NO_SPACE, AZK_IO, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_db_close(azk_db *db);

/**
 * Frees the handle. A database that was not closed is closed when its last handle is freed, including those
 * of tables, transactions and cursors. What cannot be made durable then is lost, without a report. In a
 * forked child nothing is closed. NULL is allowed. Errors: none of its own.
 */
azk_status azk_db_free(azk_db *db);

/**
 * The table of a name, which is made if there is none. `kind` is an azk_kind. Free it with azk_table_free:
 * until then it keeps the database's memory. On failure *out is NULL. Errors: AZK_WRONG_TYPE if the table is
 * of the other kind, AZK_INVALID, AZK_TOO_LARGE for a name over 255 bytes, AZK_READ_ONLY, AZK_NO_SPACE,
 * AZK_IO, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_db_table(const azk_db *db,
                        const char *name,
                        int32_t kind,
                        azk_table **out);

/**
 * As azk_db_table, for a table that exists, of either kind. Errors: AZK_NO_SUCH_TABLE, AZK_INVALID,
 * AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_db_open_table(const azk_db *db,
                             const char *name,
                             azk_table **out);

/**
 * As azk_db_table, for a table that does not exist yet. When this returns, the table is durable, and so are
 * all earlier commits. Errors: AZK_TABLE_EXISTS, and as azk_db_table.
 */
azk_status azk_db_create_table(const azk_db *db,
                               const char *name,
                               int32_t kind,
                               azk_table **out);

/**
 * Frees a handle of a table. Transactions and cursors that use the table go on. NULL is allowed. Errors:
 * none of its own.
 */
azk_status azk_table_free(azk_table *table);

/**
 * Renames a table. Its handles stay good. Errors: AZK_NO_SUCH_TABLE, AZK_TABLE_EXISTS, and as azk_db_table.
 */
azk_status azk_db_rename_table(const azk_db *db,
                               const char *from,
                               const char *to);

/**
 * Removes a table with all its records. Calls through its handles then give AZK_NO_SUCH_TABLE. Errors:
 * AZK_NO_SUCH_TABLE, and as azk_db_table.
 */
azk_status azk_db_drop_table(const azk_db *db,
                             const char *name);

/**
 * All tables, by name, in an array of *count elements. Free the array with azk_free, once. On failure *out
 * is NULL. Errors: AZK_NO_MEMORY.
 */
azk_status azk_db_tables(const azk_db *db,
                         azk_table_info **out,
                         size_t *count);

/**
 * The kind of a table. Errors: none of its own.
 */
azk_status azk_table_kind(const azk_table *table,
                          azk_kind *kind);

/**
 * The name of a table, which ends with a zero byte. Free it with azk_free. "" if the table was dropped, or
 * if the transaction that makes it is not committed. On failure *name is NULL. Errors: AZK_NO_MEMORY.
 */
azk_status azk_table_name(const azk_table *table,
                          char **name);

/**
 * Copies the value of a key into a buffer of `capacity` bytes. *len is the length of the value, also if the
 * value does not fit: then nothing is copied. `buffer` may be NULL if `capacity` is 0. Errors:
 * AZK_NOT_FOUND, AZK_BUFFER_TOO_SMALL, AZK_CORRUPT, AZK_IO, AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_table_get(const azk_table *table,
                         const void *key,
                         size_t key_len,
                         void *buffer,
                         size_t capacity,
                         size_t *len);

/**
 * A copy of the value of a key. Free it with azk_free. If the key is absent *value is NULL; for an empty
 * value it is not. Errors: AZK_NOT_FOUND, AZK_NO_MEMORY, and as azk_table_get.
 */
azk_status azk_table_get_alloc(const azk_table *table,
                               const void *key,
                               size_t key_len,
                               void **value,
                               size_t *value_len);

/**
 * Whether a key is present. Errors: as azk_table_get, without AZK_NOT_FOUND.
 */
azk_status azk_table_contains(const azk_table *table,
                              const void *key,
                              size_t key_len,
                              bool *is_there);

/**
 * How many records the table has. This walks over all of them unless the table was compacted. Errors:
 * AZK_CORRUPT, AZK_IO, AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_table_count(const azk_table *table,
                           uint64_t *count);

/**
 * Removes a key and gives a copy of its value. Free it with azk_free. If the key is absent *value is NULL.
 * Errors: AZK_NOT_FOUND, AZK_NO_MEMORY (the record is removed all the same), and as azk_table_put.
 */
azk_status azk_table_take(const azk_table *table,
                          const void *key,
                          size_t key_len,
                          void **value,
                          size_t *value_len);

/**
 * Sets the value of a key. A key has at most 65,536 bytes, a value at most 4 GiB less one byte. Errors:
 * AZK_TOO_LARGE, AZK_READ_ONLY, AZK_NO_SPACE, AZK_IO, AZK_POISONED, AZK_NO_SUCH_TABLE, AZK_CLOSED,
 * AZK_FORKED; if the table has indexes, AZK_NOT_UNIQUE, and AZK_CORRUPT if the old value is damaged.
 */
azk_status azk_table_put(const azk_table *table,
                         const void *key,
                         size_t key_len,
                         const void *value,
                         size_t value_len);

/**
 * Removes a key, whether it is present or not. Errors: as azk_table_put.
 */
azk_status azk_table_remove(const azk_table *table,
                            const void *key,
                            size_t key_len);

/**
 * Sets the value of a key only if the key is absent. *done says whether it was absent. Errors: as
 * azk_table_put and azk_table_get.
 */
azk_status azk_table_add(const azk_table *table,
                         const void *key,
                         size_t key_len,
                         const void *value,
                         size_t value_len,
                         bool *done);

/**
 * Sets the value of a key only if the key is present. *done says whether it was present. Errors: as
 * azk_table_put and azk_table_get.
 */
azk_status azk_table_replace(const azk_table *table,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len,
                             bool *done);

/**
 * Appends to the value of a key. An absent value counts as empty. Errors: as azk_table_put and
 * azk_table_get.
 */
azk_status azk_table_append(const azk_table *table,
                            const void *key,
                            size_t key_len,
                            const void *value,
                            size_t value_len);

/**
 * Adds to a number and gives the sum. Numbers have eight bytes, little-endian, in two's complement. An
 * absent key counts as zero. Sums wrap around. Errors: AZK_WRONG_TYPE if the value does not have eight
 * bytes, and as azk_table_put and azk_table_get.
 */
azk_status azk_table_increment(const azk_table *table,
                               const void *key,
                               size_t key_len,
                               int64_t delta,
                               int64_t *sum);

/**
 * Replaces the value of a key only if it is `expected` (NULL: the key is absent). *done says whether it was.
 * A `new_value` of NULL removes the key. Errors: as azk_table_put and azk_table_get.
 */
azk_status azk_table_compare_and_swap(const azk_table *table,
                                      const void *key,
                                      size_t key_len,
                                      const azk_bytes *expected,
                                      const azk_bytes *new_value,
                                      bool *done);

/**
 * Removes all keys from `from` on and below `to`; NULL is no bound. Ordered tables only. The cost does not
 * depend on the number of keys. Errors: AZK_WRONG_TYPE for a hash table, and as azk_table_put.
 */
azk_status azk_table_remove_range(const azk_table *table,
                                  const azk_bytes *from,
                                  const azk_bytes *to);

/**
 * Removes all records of the table. Errors: as azk_table_put.
 */
azk_status azk_table_clear(const azk_table *table);

/**
 * The values of `count` keys, in their order: an array of as many azk_bytes. Free the array with azk_free,
 * once. For an absent key `data` is NULL; for an empty value it is not. On failure *values is NULL. Errors:
 * AZK_NO_MEMORY, and as azk_table_get, without AZK_NOT_FOUND.
 */
azk_status azk_table_get_many(const azk_table *table,
                              const azk_bytes *keys,
                              size_t count,
                              azk_bytes **values);

/**
 * As azk_table_get_many, as the snapshot has the table. Errors: as azk_read_get and azk_table_get_many.
 */
azk_status azk_read_get_many(azk_read *read,
                             const azk_table *table,
                             const azk_bytes *keys,
                             size_t count,
                             azk_bytes **values);

/**
 * As azk_table_get_many, as this transaction sees the table. Errors: as azk_write_get and
 * azk_table_get_many.
 */
azk_status azk_write_get_many(azk_write *write,
                              const azk_table *table,
                              const azk_bytes *keys,
                              size_t count,
                              azk_bytes **values);

/**
 * Sets the values of `count` keys in one transaction. If keys are equal the last one counts. Errors: as
 * azk_table_put; nothing is written then.
 */
azk_status azk_table_put_many(const azk_table *table,
                              const azk_bytes *keys,
                              const azk_bytes *values,
                              size_t count);

/**
 * Sets the values of `count` keys within a transaction. If keys are equal the last one counts. Errors: as
 * azk_write_put; the records before the failed one are in the transaction then.
 */
azk_status azk_write_put_many(azk_write *write,
                              const azk_table *table,
                              const azk_bytes *keys,
                              const azk_bytes *values,
                              size_t count);

/**
 * Calls `callback` with each record of the table as it is at this moment, in order: the keys from `from` on
 * and below `to`. NULL is no bound, and a hash table has no bounds. Errors: AZK_STOPPED if the callback has
 * ended the walk, AZK_INVALID if it is NULL, and as azk_table_cursor and azk_cursor_next.
 */
azk_status azk_table_scan(const azk_table *table,
                          const azk_bytes *from,
                          const azk_bytes *to,
                          azk_scan_fn callback,
                          void *user_data);

/**
 * Calls `callback` with each record from the cursor's place to the end of its range, in order. So a table, a
 * snapshot and a transaction are walked alike, and a part that begins with a key after azk_cursor_seek. The
 * callback may free the cursor once it has no use for the record any more. Errors: AZK_STOPPED if it has
 * ended the walk (the cursor stands behind its last record), AZK_INVALID if it is NULL, and as
 * azk_cursor_next; AZK_BAD_HANDLE if the callback has freed the cursor and goes on.
 */
azk_status azk_cursor_scan(azk_cursor *cursor,
                           azk_scan_fn callback,
                           void *user_data);

/**
 * The first record of a table. Of a hash table it may be any. Key and value are copies in one block: free it
 * with azk_free(key->data). Errors: AZK_NOT_FOUND if the table has no records, AZK_NO_MEMORY, and as
 * azk_table_get.
 */
azk_status azk_table_first(const azk_table *table,
                           azk_bytes *key,
                           azk_bytes *value);

/**
 * The last record of a table. Of a hash table it may be any. Else as azk_table_first.
 */
azk_status azk_table_last(const azk_table *table,
                          azk_bytes *key,
                          azk_bytes *value);

/**
 * Removes the first record of a table and gives it, as azk_table_first. Threads that do so at the same time
 * get a record each. If there is no memory for the copy, the record is gone. Errors: as azk_table_first and
 * azk_table_put.
 */
azk_status azk_table_pop_first(const azk_table *table,
                               azk_bytes *key,
                               azk_bytes *value);

/**
 * Removes the last record of a table and gives it, as azk_table_last. Else as azk_table_pop_first.
 */
azk_status azk_table_pop_last(const azk_table *table,
                              azk_bytes *key,
                              azk_bytes *value);

/**
 * As azk_table_first, as the snapshot has the table.
 */
azk_status azk_read_first(azk_read *read,
                          const azk_table *table,
                          azk_bytes *key,
                          azk_bytes *value);

/**
 * As azk_table_last, as the snapshot has the table.
 */
azk_status azk_read_last(azk_read *read,
                         const azk_table *table,
                         azk_bytes *key,
                         azk_bytes *value);

/**
 * As azk_table_first, as this transaction sees the table.
 */
azk_status azk_write_first(azk_write *write,
                           const azk_table *table,
                           azk_bytes *key,
                           azk_bytes *value);

/**
 * As azk_table_last, as this transaction sees the table.
 */
azk_status azk_write_last(azk_write *write,
                          const azk_table *table,
                          azk_bytes *key,
                          azk_bytes *value);

/**
 * As azk_table_pop_first, within this transaction. For conflicts only the keys up to the record count as
 * read.
 */
azk_status azk_write_pop_first(azk_write *write,
                               const azk_table *table,
                               azk_bytes *key,
                               azk_bytes *value);

/**
 * As azk_table_pop_last, within this transaction. For conflicts only the keys from the record on count as
 * read.
 */
azk_status azk_write_pop_last(azk_write *write,
                              const azk_table *table,
                              azk_bytes *key,
                              azk_bytes *value);

/**
 * Removes a key. *done says whether it was there. It costs a get more than azk_table_remove. Errors: as
 * azk_table_put and azk_table_get.
 */
azk_status azk_table_remove_existing(const azk_table *table,
                                     const void *key,
                                     size_t key_len,
                                     bool *done);

/**
 * As azk_table_remove_existing, within this transaction. The key counts as read.
 */
azk_status azk_write_remove_existing(azk_write *write,
                                     const azk_table *table,
                                     const void *key,
                                     size_t key_len,
                                     bool *done);

/**
 * Removes the records from `from` on and below `to` for which `callback` returns 0. NULL is no bound, and a
 * hash table has no bounds. All go at once, and only records that the callback has refused go. If another
 * commit changes one of them meanwhile, all is done again, and the callback is called again. *removed says
 * how many have gone. `removed` may be NULL. Errors: AZK_WRONG_TYPE for a part of a hash table, AZK_CONFLICT
 * if they were changed each time, AZK_INVALID if the callback is NULL, and as azk_table_put and
 * azk_table_get.
 */
azk_status azk_table_retain(const azk_table *table,
                            const azk_bytes *from,
                            const azk_bytes *to,
                            azk_scan_fn callback,
                            void *user_data,
                            uint64_t *removed);

/**
 * As azk_table_retain, in a transaction, which sees its own writes. The callback sees the table as it was at
 * the beginning of the call, and must not use the transaction (AZK_BUSY). Errors: AZK_WRONG_TYPE for a part
 * of a hash table, AZK_INVALID if the callback is NULL, and as azk_write_get and azk_write_remove.
 */
azk_status azk_write_retain(azk_write *write,
                            const azk_table *table,
                            const azk_bytes *from,
                            const azk_bytes *to,
                            azk_scan_fn callback,
                            void *user_data,
                            uint64_t *removed);

/**
 * Removes the records from `from` on and below `to`, and then calls `callback` with each of them. NULL is no
 * bound, and a hash table has no bounds. They are removed in one step, and as durably as by a put, before
 * the first call. So no two threads get the same record, and records that the callback does not come to are
 * gone too. Errors: AZK_STOPPED if it has ended the walk, AZK_WRONG_TYPE for a part of a hash table,
 * AZK_INVALID if it is NULL (nothing is removed then), and as azk_table_put and azk_cursor_next.
 */
azk_status azk_table_drain(const azk_table *table,
                           const azk_bytes *from,
                           const azk_bytes *to,
                           azk_scan_fn callback,
                           void *user_data);

/**
 * As azk_table_drain, within this transaction. Others see it when the transaction is committed.
 */
azk_status azk_write_drain(azk_write *write,
                           const azk_table *table,
                           const azk_bytes *from,
                           const azk_bytes *to,
                           azk_scan_fn callback,
                           void *user_data);

/**
 * Replaces the value of a key by what `callback` makes of it, and keeps the time that the record has. If
 * another commit changes the key meanwhile, the callback is called again with the newer value. It may use
 * the database, but must not change the key itself. Errors: AZK_STOPPED if the callback has ended the call;
 * AZK_INVALID if it is NULL, or has itself committed a change to the key; and as azk_table_put and
 * azk_table_get.
 */
azk_status azk_table_update(const azk_table *table,
                            const void *key,
                            size_t key_len,
                            azk_update_fn callback,
                            void *user_data);

/**
 * As azk_table_update, within this transaction, of the value as it sees it. The callback is called once. It
 * must not use the transaction: while it runs, calls of its thread with transactions, cursors and lookups
 * give AZK_BUSY. Errors: AZK_STOPPED, AZK_INVALID if the callback is NULL, and as azk_write_put and
 * azk_write_get.
 */
azk_status azk_write_update(azk_write *write,
                            const azk_table *table,
                            const void *key,
                            size_t key_len,
                            azk_update_fn callback,
                            void *user_data);

/**
 * Begins to read a snapshot of all tables: later commits are not seen. A reader waits for nobody, and nobody
 * waits for it. The space of what it sees is kept while it is open, so keep it short. End it with
 * azk_read_end. On failure *out is NULL. Errors: none of its own (the first get reports a closed database).
 */
azk_status azk_read_begin(const azk_db *db,
                          azk_read **out);

/**
 * Ends a read transaction. Pointers from azk_read_get_ref end with it. Cursors go on. NULL is allowed.
 * Errors: none of its own.
 */
azk_status azk_read_end(azk_read *read);

/**
 * As azk_table_get, as the snapshot has the table. Gets in ascending order of keys are fastest. Errors:
 * AZK_INVALID if the table is of another database, AZK_NO_SUCH_TABLE if it was made later, and as
 * azk_table_get.
 */
azk_status azk_read_get(azk_read *read,
                        const azk_table *table,
                        const void *key,
                        size_t key_len,
                        void *buffer,
                        size_t capacity,
                        size_t *len);

/**
 * As azk_table_get_alloc, as the snapshot has the table. Errors: as azk_read_get, and AZK_NO_MEMORY.
 */
azk_status azk_read_get_alloc(azk_read *read,
                              const azk_table *table,
                              const void *key,
                              size_t key_len,
                              void **value,
                              size_t *value_len);

/**
 * The value of a key, without a copy. The bytes stay unchanged in place until azk_read_release_values or
 * azk_read_end, even if the database is closed meanwhile. Any thread may read them. Until then each value
 * takes some 100 bytes of memory, and keeps the page or segment that holds it: with many values, release
 * them now and then. On failure *value is NULL and 0. Errors: as azk_read_get, without AZK_BUFFER_TOO_SMALL.
 */
azk_status azk_read_get_ref(azk_read *read,
                            const azk_table *table,
                            const void *key,
                            size_t key_len,
                            azk_bytes *value);

/**
 * Releases all values that azk_read_get_ref has given in this transaction. The transaction goes on. Errors:
 * none of its own.
 */
azk_status azk_read_release_values(azk_read *read);

/**
 * Whether a key is present. Errors: as azk_read_get, without AZK_NOT_FOUND.
 */
azk_status azk_read_contains(azk_read *read,
                             const azk_table *table,
                             const void *key,
                             size_t key_len,
                             bool *is_there);

/**
 * How many records the table has. Errors: as azk_table_count, and AZK_INVALID if it is of another database.
 */
azk_status azk_read_count(azk_read *read,
                          const azk_table *table,
                          uint64_t *count);

/**
 * Begins a write transaction. Others see nothing of it until it is committed, and then everything. Any
 * number may be open at once. `durability` is an azk_durability, `isolation` an azk_isolation; 0 and 0 are
 * the defaults. End it with azk_write_commit or azk_write_rollback. On failure *out is NULL. Errors:
 * AZK_INVALID (the first call reports a closed database).
 */
azk_status azk_write_begin(const azk_db *db,
                           int32_t durability,
                           int32_t isolation,
                           azk_write **out);

/**
 * Makes all writes visible at once, and durable as was chosen. The handle is freed, whatever this returns,
 * except AZK_BAD_HANDLE and AZK_BUSY. After an error nothing was written; to try again, begin a new
 * transaction.
 *
 * Errors: AZK_CONFLICT if another transaction has changed what this one depends on: run it again.
 * So it is if a name that it has looked up (azk_write_open_table and others) stands for another table by
 * now. AZK_NOT_UNIQUE if two records would have the same values in a unique index. AZK_NO_SUCH_TABLE if a
 * table was dropped since it was written to. AZK_READ_ONLY, AZK_CORRUPT, AZK_NO_SPACE, AZK_IO, AZK_POISONED,
 * AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_write_commit(azk_write *write);

/**
 * Drops all writes and ends the transaction. Its cursors go on. NULL is allowed. Errors: none of its own.
 */
azk_status azk_write_rollback(azk_write *write);

/**
 * Marks the writes so far, and what was done with tables, for azk_write_rollback_to. *savepoint is a number
 * that no other savepoint of this process has. The savepoint ends with the transaction. Errors: none of its
 * own.
 */
azk_status azk_write_savepoint(azk_write *write,
                               uint64_t *savepoint);

/**
 * Undoes the writes since a savepoint, and what was done with tables. The savepoint can be used again. Later
 * ones end. Errors: AZK_INVALID if the savepoint is of another transaction or has ended (nothing is undone
 * then), AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_write_rollback_to(azk_write *write,
                                 uint64_t savepoint);

/**
 * Makes a table in a transaction. It can be used there at once. For everybody else, and for calls without a
 * transaction, the handle gives AZK_NO_SUCH_TABLE until the commit, and for good if the transaction comes to
 * nothing. `kind` is an azk_kind. Free the handle with azk_table_free. A commit that makes, renames or drops
 * tables is durable, whatever durability was chosen. On failure *out is NULL.
 *
 * Errors: AZK_TABLE_EXISTS if this transaction sees a table of the name. AZK_CONFLICT, here or at the
 * commit, if another transaction makes one meanwhile: run it again. AZK_INVALID, AZK_TOO_LARGE for a name
 * over 255 bytes, AZK_READ_ONLY, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_write_create_table(azk_write *write,
                                  const char *name,
                                  int32_t kind,
                                  azk_table **out);

/**
 * The table of a name as a transaction sees it, which it makes if there is none. `kind` is an azk_kind. On
 * failure *out is NULL. Errors: AZK_WRONG_TYPE if the table is of the other kind, and as
 * azk_write_create_table and azk_write_open_table.
 */
azk_status azk_write_table(azk_write *write,
                           const char *name,
                           int32_t kind,
                           azk_table **out);

/**
 * The table of a name as a transaction sees it, with what it has made, renamed and dropped itself. That the
 * name is this table's counts as read. On failure *out is NULL. Errors: AZK_NO_SUCH_TABLE. AZK_CONFLICT if
 * the table was made after the transaction's snapshot. AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_write_open_table(azk_write *write,
                                const char *name,
                                azk_table **out);

/**
 * Renames a table in a transaction. Its handles stay good. Errors: AZK_NO_SUCH_TABLE, AZK_TABLE_EXISTS, as
 * this transaction sees them. AZK_CONFLICT, here or at the commit, if another transaction gives one of the
 * names to another table meanwhile. As azk_write_create_table.
 */
azk_status azk_write_rename_table(azk_write *write,
                                  const char *from,
                                  const char *to);

/**
 * Removes a table with all its records and its indexes in a transaction. From then on its handles give
 * AZK_NO_SUCH_TABLE in the transaction, and everywhere from the commit on. What others write to it meanwhile
 * goes with it, unless the transaction has read it or is one of AZK_SNAPSHOT: then the commit conflicts.
 * Errors: AZK_NO_SUCH_TABLE. AZK_CONFLICT, here or at the commit, if another transaction renames or drops it
 * meanwhile. AZK_READ_ONLY, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_write_drop_table(azk_write *write,
                                const char *name);

/**
 * As azk_table_get, as this transaction sees the table. Errors: AZK_INVALID if the table is of another
 * database, AZK_NO_SUCH_TABLE if it was made later, and as azk_table_get.
 */
azk_status azk_write_get(azk_write *write,
                         const azk_table *table,
                         const void *key,
                         size_t key_len,
                         void *buffer,
                         size_t capacity,
                         size_t *len);

/**
 * As azk_table_get_alloc, as this transaction sees the table. Errors: as azk_write_get, and AZK_NO_MEMORY.
 */
azk_status azk_write_get_alloc(azk_write *write,
                               const azk_table *table,
                               const void *key,
                               size_t key_len,
                               void **value,
                               size_t *value_len);

/**
 * The value of a key, without a copy, as this transaction sees it. The bytes stay unchanged in place until
 * the transaction is next changed: by a call that writes, sets a savepoint or goes back to one, opens or
 * changes a table, or ends it. Reading calls leave them. Until then each value takes some 100 bytes of
 * memory, and keeps the page or segment that holds it. On failure *value is NULL and 0. Errors: as
 * azk_write_get, without AZK_BUFFER_TOO_SMALL.
 */
azk_status azk_write_get_ref(azk_write *write,
                             const azk_table *table,
                             const void *key,
                             size_t key_len,
                             azk_bytes *value);

/**
 * Removes a key and gives a copy of its value. Free it with azk_free. If the key is absent *value is NULL.
 * Errors: AZK_NOT_FOUND, AZK_NO_MEMORY, and as azk_write_put and azk_write_get.
 */
azk_status azk_write_take(azk_write *write,
                          const azk_table *table,
                          const void *key,
                          size_t key_len,
                          void **value,
                          size_t *value_len);

/**
 * Whether a key is present. Errors: as azk_write_get, without AZK_NOT_FOUND.
 */
azk_status azk_write_contains(azk_write *write,
                              const azk_table *table,
                              const void *key,
                              size_t key_len,
                              bool *is_there);

/**
 * How many records the table has, as this transaction sees it. Errors: as azk_table_count, and AZK_INVALID
 * if the table is of another database.
 */
azk_status azk_write_count(azk_write *write,
                           const azk_table *table,
                           uint64_t *count);

/**
 * Sets the value of a key. A key has at most 65,536 bytes, a value at most 4 GiB less one byte. Errors:
 * AZK_TOO_LARGE, AZK_NO_SUCH_TABLE, AZK_INVALID if the table is of another database, AZK_CLOSED, AZK_FORKED.
 * A large value is stored at once, which may give AZK_READ_ONLY, AZK_NO_SPACE, AZK_IO, AZK_POISONED. If the
 * table has indexes, the old value is read, which may give AZK_CORRUPT, AZK_IO.
 */
azk_status azk_write_put(azk_write *write,
                         const azk_table *table,
                         const void *key,
                         size_t key_len,
                         const void *value,
                         size_t value_len);

/**
 * Removes a key, whether it is present or not. Errors: as azk_write_put.
 */
azk_status azk_write_remove(azk_write *write,
                            const azk_table *table,
                            const void *key,
                            size_t key_len);

/**
 * Sets the value of a key only if the key is absent. *done says whether it was absent. Errors: as
 * azk_write_put and azk_write_get.
 */
azk_status azk_write_add(azk_write *write,
                         const azk_table *table,
                         const void *key,
                         size_t key_len,
                         const void *value,
                         size_t value_len,
                         bool *done);

/**
 * Sets the value of a key only if the key is present. *done says whether it was present. Errors: as
 * azk_write_put and azk_write_get.
 */
azk_status azk_write_replace(azk_write *write,
                             const azk_table *table,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len,
                             bool *done);

/**
 * Appends to the value of a key. An absent value counts as empty. Errors: as azk_write_put and
 * azk_write_get.
 */
azk_status azk_write_append(azk_write *write,
                            const azk_table *table,
                            const void *key,
                            size_t key_len,
                            const void *value,
                            size_t value_len);

/**
 * Adds to a number and gives the sum. Numbers have eight bytes, little-endian, in two's complement. An
 * absent key counts as zero. Sums wrap around. Errors: AZK_WRONG_TYPE if the value does not have eight
 * bytes, and as azk_write_put and azk_write_get.
 */
azk_status azk_write_increment(azk_write *write,
                               const azk_table *table,
                               const void *key,
                               size_t key_len,
                               int64_t delta,
                               int64_t *sum);

/**
 * Replaces the value of a key only if it is `expected` (NULL: the key is absent). *done says whether it was.
 * A `new_value` of NULL removes the key. Errors: as azk_write_put and azk_write_get.
 */
azk_status azk_write_compare_and_swap(azk_write *write,
                                      const azk_table *table,
                                      const void *key,
                                      size_t key_len,
                                      const azk_bytes *expected,
                                      const azk_bytes *new_value,
                                      bool *done);

/**
 * Removes all keys from `from` on and below `to`; NULL is no bound. Ordered tables only. The cost does not
 * depend on the number of keys. Errors: AZK_WRONG_TYPE for a hash table, and as azk_write_put.
 */
azk_status azk_write_remove_range(azk_write *write,
                                  const azk_table *table,
                                  const azk_bytes *from,
                                  const azk_bytes *to);

/**
 * Removes all records of a table. Errors: as azk_write_put.
 */
azk_status azk_write_clear(azk_write *write,
                           const azk_table *table);

/**
 * The table of a name, which is made if there is none, and whose records are gone `ttl_ms` milliseconds
 * after they were put, if the put does not say otherwise. Free it with azk_table_free. Errors:
 * AZK_WRONG_TYPE if the table is of the other kind, or its records live longer or shorter; AZK_INVALID for a
 * time of 0 or AZK_FOREVER; as azk_db_table.
 */
azk_status azk_db_expiring_table(const azk_db *db,
                                 const char *name,
                                 int32_t kind,
                                 uint64_t ttl_ms,
                                 azk_table **out);

/**
 * How many milliseconds the records of a table live if the put does not say otherwise; AZK_FOREVER if until
 * they are removed. Errors: AZK_INVALID.
 */
azk_status azk_table_usual_ttl(const azk_table *table,
                               uint64_t *ttl_ms);

/**
 * Says how many milliseconds the records of a table live that are put from now on, if the put does not say
 * otherwise; with AZK_FOREVER until they are removed. Records that are there keep their time. It is durable.
 * Errors: AZK_INVALID for a time of 0, or of more than 1,100 years; as azk_table_put.
 */
azk_status azk_table_set_usual_ttl(const azk_table *table,
                                   uint64_t ttl_ms);

/**
 * As azk_table_set_usual_ttl, within a transaction: for what it puts after this call, and for others from
 * the commit on, which is durable. Errors: as that; AZK_NO_SUCH_TABLE at the commit if the table was dropped
 * meanwhile.
 */
azk_status azk_write_set_usual_ttl(azk_write *write,
                                   const azk_table *table,
                                   uint64_t ttl_ms);

/**
 * Sets the value of a key for `ttl_ms` milliseconds. After that the record is gone by itself: no call finds
 * it, and it does not count. With AZK_FOREVER it stays. Errors: as azk_table_put.
 */
azk_status azk_table_put_for(const azk_table *table,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len,
                             uint64_t ttl_ms);

/**
 * How many milliseconds a record will still be there; AZK_FOREVER if until it is removed. Errors:
 * AZK_NOT_FOUND, and as azk_table_get.
 */
azk_status azk_table_ttl(const azk_table *table,
                         const void *key,
                         size_t key_len,
                         uint64_t *ttl_ms);

/**
 * Gives a record another time to live, of `ttl_ms` milliseconds from now on; with AZK_FOREVER it stays.
 * *done says whether the record was there. Errors: as azk_table_put and azk_table_get.
 */
azk_status azk_table_expire(const azk_table *table,
                            const void *key,
                            size_t key_len,
                            uint64_t ttl_ms,
                            bool *done);

/**
 * As azk_table_put_for, within a transaction. Errors: as azk_write_put.
 */
azk_status azk_write_put_for(azk_write *write,
                             const azk_table *table,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len,
                             uint64_t ttl_ms);

/**
 * As azk_table_expire, within a transaction. Errors: as azk_write_put and azk_write_get.
 */
azk_status azk_write_expire(azk_write *write,
                            const azk_table *table,
                            const void *key,
                            size_t key_len,
                            uint64_t ttl_ms,
                            bool *done);

/**
 * As azk_table_ttl, as this transaction sees the table: no time passes in it. Errors: as azk_table_ttl and
 * azk_write_get.
 */
azk_status azk_write_ttl(azk_write *write,
                         const azk_table *table,
                         const void *key,
                         size_t key_len,
                         uint64_t *ttl_ms);

/**
 * As azk_table_ttl, as this transaction sees the table: no time passes in it. Errors: as azk_table_ttl and
 * azk_read_get.
 */
azk_status azk_read_ttl(azk_read *read,
                        const azk_table *table,
                        const void *key,
                        size_t key_len,
                        uint64_t *ttl_ms);

/**
 * Changes the value of a key, as an azk_operator says: a number by another one, of eight bytes too, a list
 * by bytes that are put behind it, a set by elements. An absent key gets the operand as its value. Nothing
 * is read, so this costs what a put costs, and never waits for others or conflicts with them (docs/merges.md
 * says where it must read). Errors: AZK_INVALID for another operator or length, and as azk_table_put. If the
 * value is no number, or no whole number of elements, who reads it gets AZK_WRONG_TYPE from then on, until
 * the key is put or removed.
 */
azk_status azk_table_merge(const azk_table *table,
                           const void *key,
                           size_t key_len,
                           int32_t operation,
                           const void *operand,
                           size_t operand_len);

/**
 * As azk_table_merge, in a transaction. Errors: AZK_INVALID for another operator or length; AZK_WRONG_TYPE
 * if it is known now that the value is none for it; as azk_write_put, and as azk_write_get where it reads.
 */
azk_status azk_write_merge(azk_write *write,
                           const azk_table *table,
                           const void *key,
                           size_t key_len,
                           int32_t operation,
                           const void *operand,
                           size_t operand_len);

/**
 * Changes the values of `count` keys in one transaction, each by its operand, as azk_table_merge changes
 * one. If keys are equal all count. Errors: as azk_table_merge; nothing is written then.
 */
azk_status azk_table_merge_many(const azk_table *table,
                                const azk_bytes *keys,
                                int32_t operation,
                                const azk_bytes *operands,
                                size_t count);

/**
 * As azk_table_merge_many, within a transaction. Errors: as azk_write_merge; the changes before the failed
 * one are in the transaction then, unless it is an operand's length or the operator.
 */
azk_status azk_write_merge_many(azk_write *write,
                                const azk_table *table,
                                const azk_bytes *keys,
                                int32_t operation,
                                const azk_bytes *operands,
                                size_t count);

/**
 * Makes a cursor over the table as it is at this moment, before its first record. It covers the keys from
 * `from` on and below `to`; NULL is no bound. (The smallest key above a key is that key with a zero byte
 * added.) A hash table has no bounds. Free the cursor with azk_cursor_free: until then the space of what it
 * sees is kept. On failure *out is NULL. Errors: AZK_WRONG_TYPE for bounds in a hash table, AZK_CORRUPT,
 * AZK_IO, AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_table_cursor(const azk_table *table,
                            const azk_bytes *from,
                            const azk_bytes *to,
                            azk_cursor **out);

/**
 * As azk_table_cursor, over the keys that begin with `prefix`. Ordered tables only. Errors: as
 * azk_table_cursor.
 */
azk_status azk_table_prefix_cursor(const azk_table *table,
                                   const void *prefix,
                                   size_t prefix_len,
                                   azk_cursor **out);

/**
 * As azk_table_cursor, over the table as the snapshot has it. The cursor may outlive the transaction.
 * Errors: as azk_table_cursor, and AZK_INVALID if the table is of another database.
 */
azk_status azk_read_cursor(azk_read *read,
                           const azk_table *table,
                           const azk_bytes *from,
                           const azk_bytes *to,
                           azk_cursor **out);

/**
 * As azk_read_cursor, over the keys that begin with `prefix`. Ordered tables only. Errors: as
 * azk_read_cursor.
 */
azk_status azk_read_prefix_cursor(azk_read *read,
                                  const azk_table *table,
                                  const void *prefix,
                                  size_t prefix_len,
                                  azk_cursor **out);

/**
 * As azk_table_cursor, over the table as this transaction sees it at this moment. The cursor does not see
 * later writes, and may outlive the transaction. Errors: as azk_table_cursor, and AZK_INVALID if the table
 * is of another database.
 */
azk_status azk_write_cursor(azk_write *write,
                            const azk_table *table,
                            const azk_bytes *from,
                            const azk_bytes *to,
                            azk_cursor **out);

/**
 * As azk_write_cursor, over the keys that begin with `prefix`. Ordered tables only. Errors: as
 * azk_write_cursor.
 */
azk_status azk_write_prefix_cursor(azk_write *write,
                                   const azk_table *table,
                                   const void *prefix,
                                   size_t prefix_len,
                                   azk_cursor **out);

/**
 * Goes to the next record and gives its key and value, which stay until the cursor moves or is freed. If
 * `value` is NULL the value is not read; azk_cursor_value_len and azk_cursor_value give it later. After the
 * last record every call gives AZK_NOT_FOUND. If the value cannot be read, *key is set, and the cursor can
 * go on. Errors: AZK_NOT_FOUND, AZK_CORRUPT, AZK_IO, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_cursor_next(azk_cursor *cursor,
                           azk_bytes *key,
                           azk_bytes *value);

/**
 * Goes to the previous record and gives its key and value, as azk_cursor_next. A cursor stands between
 * records: after azk_cursor_next this gives the same record again, and the other way round. Errors: as
 * azk_cursor_next.
 */
azk_status azk_cursor_prev(azk_cursor *cursor,
                           azk_bytes *key,
                           azk_bytes *value);

/**
 * The value of the record that was given last. It is read now if it was not before. It stays until the
 * cursor moves or is freed. Errors: AZK_NOT_FOUND if there is no such record, AZK_CORRUPT, AZK_IO,
 * AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_cursor_value(azk_cursor *cursor,
                            azk_bytes *value);

/**
 * The length of the value of the record that was given last, without reading it. Errors: AZK_NOT_FOUND if
 * there is no such record; as azk_cursor_value if the value was read before and that failed.
 */
azk_status azk_cursor_value_len(azk_cursor *cursor,
                                size_t *len);

/**
 * Goes to a key: azk_cursor_next then gives the first record at or above it, azk_cursor_prev the last record
 * below. Ordered tables only. Errors: AZK_WRONG_TYPE for a hash table.
 */
azk_status azk_cursor_seek(azk_cursor *cursor,
                           const void *key,
                           size_t key_len);

/**
 * Goes before the first record. Errors: none of its own.
 */
azk_status azk_cursor_seek_first(azk_cursor *cursor);

/**
 * Goes after the last record. Errors: none of its own.
 */
azk_status azk_cursor_seek_last(azk_cursor *cursor);

/**
 * Frees a cursor. NULL is allowed. Errors: none of its own.
 */
azk_status azk_cursor_free(azk_cursor *cursor);

/**
 * Makes an index of the table, and returns when it is complete and durable. From now on every write to the
 * table keeps it, by whatever program. If there is an index of this name and specification, it is opened. If
 * it is not complete, it is built to its end first.
 *
 * `spec` names fields between commas, each a source (k or v, the key or the value), a piece and a type, and
 * then options: "v./email:lower unique where present", "v[0..8]:u64le, k". docs/indexes.md has all forms.
 * `progress` may be NULL; it is told of records. Free the index with azk_index_free. On failure *out is
 * NULL. Errors: AZK_INVALID if the specification has no meaning or there is another index of this name,
 * AZK_NOT_UNIQUE if two records have the same values in a unique index, AZK_TOO_LARGE if an entry would be
 * too large or the table has 64 indexes, and as azk_table_put: after AZK_NO_SPACE, AZK_IO and the like what
 * is built may stay. Writes keep it and nobody reads it. This function goes on with it.
 */
azk_status azk_table_create_index(const azk_table *table,
                                  const char *name,
                                  const char *spec,
                                  azk_progress_fn progress,
                                  void *user_data,
                                  azk_index **out);

/**
 * The index of a name. Free it with azk_index_free. On failure *out is NULL. Errors: AZK_NO_SUCH_INDEX,
 * AZK_INVALID if it is not complete, AZK_NO_SUCH_TABLE, AZK_CORRUPT, AZK_IO, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_table_index(const azk_table *table,
                           const char *name,
                           azk_index **out);

/**
 * Removes an index; the records stay. Calls through its handles then give AZK_NO_SUCH_INDEX. Errors:
 * AZK_NO_SUCH_INDEX, and as azk_table_put.
 */
azk_status azk_table_drop_index(const azk_table *table,
                                const char *name);

/**
 * The table's indexes, by name, in an array of *count elements. Free the array with azk_free, once. On
 * failure *out is NULL. Errors: AZK_NO_MEMORY, and as azk_table_index.
 */
azk_status azk_table_indexes(const azk_table *table,
                             azk_index_info **out,
                             size_t *count);

/**
 * Frees a handle of an index. Lookups that use it go on. NULL is allowed. Errors: none of its own.
 */
azk_status azk_index_free(azk_index *index);

/**
 * Finds the records whose first fields have these values, in the order of the index, as it is at this
 * moment. Without values it finds all records that are in the index. Free the lookup with azk_lookup_free:
 * until then the space of what it sees is kept. On failure *out is NULL. Errors: AZK_INVALID if a field
 * cannot have its value or there are too many, AZK_NO_SUCH_INDEX, AZK_CORRUPT, AZK_IO, AZK_CLOSED,
 * AZK_FORKED.
 */
azk_status azk_index_get(const azk_index *index,
                         const azk_value *values,
                         size_t count,
                         azk_lookup **out);

/**
 * As azk_index_get, but only the beginning of the last value is given. It is text or bytes. Errors: as
 * azk_index_get.
 */
azk_status azk_index_prefix(const azk_index *index,
                            const azk_value *values,
                            size_t count,
                            azk_lookup **out);

/**
 * As azk_index_get, the records from the values `from` on and below the values `to`. No values are no bound.
 * Errors: as azk_index_get.
 */
azk_status azk_index_range(const azk_index *index,
                           const azk_value *from,
                           size_t from_count,
                           const azk_value *to,
                           size_t to_count,
                           azk_lookup **out);

/**
 * How many records have these values in their first fields. No record is read. Errors: as azk_index_get.
 */
azk_status azk_index_count(const azk_index *index,
                           const azk_value *values,
                           size_t count,
                           uint64_t *records);

/**
 * As azk_index_range, as the snapshot has it. All of it is read now, so the lookup may outlive the
 * transaction. Errors: as azk_index_get, also AZK_NO_SUCH_INDEX if the index was made after the snapshot,
 * and AZK_INVALID if it was complete only after that, or is of another database.
 */
azk_status azk_read_index_range(azk_read *read,
                                const azk_index *index,
                                const azk_value *from,
                                size_t from_count,
                                const azk_value *to,
                                size_t to_count,
                                azk_lookup **out);

/**
 * As azk_index_get, as the snapshot has it. Errors: as azk_read_index_range.
 */
azk_status azk_read_index_get(azk_read *read,
                              const azk_index *index,
                              const azk_value *values,
                              size_t count,
                              azk_lookup **out);

/**
 * As azk_index_prefix, as the snapshot has it. Errors: as azk_read_index_range.
 */
azk_status azk_read_index_prefix(azk_read *read,
                                 const azk_index *index,
                                 const azk_value *values,
                                 size_t count,
                                 azk_lookup **out);

/**
 * As azk_index_range, as this transaction sees it at this moment; what it looks at counts as read. All of it
 * is read now, so the lookup does not see later writes, and may outlive the transaction. Errors: as
 * azk_read_index_range.
 */
azk_status azk_write_index_range(azk_write *write,
                                 const azk_index *index,
                                 const azk_value *from,
                                 size_t from_count,
                                 const azk_value *to,
                                 size_t to_count,
                                 azk_lookup **out);

/**
 * As azk_index_get, as this transaction sees it at this moment. Errors: as azk_write_index_range.
 */
azk_status azk_write_index_get(azk_write *write,
                               const azk_index *index,
                               const azk_value *values,
                               size_t count,
                               azk_lookup **out);

/**
 * As azk_index_prefix, as this transaction sees it at this moment. Errors: as azk_write_index_range.
 */
azk_status azk_write_index_prefix(azk_write *write,
                                  const azk_index *index,
                                  const azk_value *values,
                                  size_t count,
                                  azk_lookup **out);

/**
 * Gives the next record that was found: its key and value in the table, which stay until the next step or
 * until the lookup is freed. If `value` is NULL the record is not read. After the last record every call
 * gives AZK_NOT_FOUND. Errors: AZK_NOT_FOUND, AZK_CORRUPT, AZK_IO, AZK_CLOSED, AZK_FORKED; after one of
 * these but AZK_NOT_FOUND there is no other record.
 */
azk_status azk_lookup_next(azk_lookup *lookup,
                           azk_bytes *key,
                           azk_bytes *value);

/**
 * Gives the next record from the end. Each record is given once, from one end or the other. Errors: as
 * azk_lookup_next.
 */
azk_status azk_lookup_next_back(azk_lookup *lookup,
                                azk_bytes *key,
                                azk_bytes *value);

/**
 * Frees a lookup. NULL is allowed. Errors: none of its own.
 */
azk_status azk_lookup_free(azk_lookup *lookup);

/**
 * Has the feed every change of the table from now on: so much of it as `content` says, an azk_feed_content.
 * When this returns, all later commits are in it. The file remembers it. Errors: AZK_INVALID, and as
 * azk_table_put.
 */
azk_status azk_table_set_feed(const azk_table *table,
                              int32_t content);

/**
 * Says how much of the feed is kept: about so many bytes, and none that is older than age_max_ms
 * milliseconds; 0: however old. Errors: AZK_INVALID for less than 64 KiB, and as azk_table_put.
 */
azk_status azk_db_set_feed_limits(const azk_db *db,
                                  uint64_t bytes_max,
                                  uint64_t age_max_ms);

/**
 * What is kept of the feed. Errors: AZK_NOT_FOUND if nothing was ever fed, AZK_CORRUPT, AZK_IO, AZK_CLOSED,
 * AZK_FORKED.
 */
azk_status azk_db_feed_info(const azk_db *db,
                            azk_feed_info *info);

/**
 * Where the cursor of a name stands: the last commit with which its reader has done. Errors: AZK_NOT_FOUND
 * if there is no such cursor, and as azk_db_feed_info.
 */
azk_status azk_db_feed_cursor(const azk_db *db,
                              const char *name,
                              uint64_t *commit);

/**
 * Sets the cursor of a name to *commit, or removes it if `commit` is NULL. Errors: AZK_INVALID if nothing
 * was ever fed or the name is empty, AZK_TOO_LARGE for a name over 255 bytes, and as azk_table_put.
 */
azk_status azk_db_set_feed_cursor(const azk_db *db,
                                  const char *name,
                                  const uint64_t *commit);

/**
 * As azk_db_set_feed_cursor, together with all else that the transaction writes. Errors: as
 * azk_db_set_feed_cursor.
 */
azk_status azk_write_set_feed_cursor(azk_write *write,
                                     const char *name,
                                     const uint64_t *commit);

/**
 * A reader of the changes after commit number `after`. Free it with azk_feed_free. On failure *out is NULL.
 * Errors: AZK_FEED_GAP if changes after that commit are gone, AZK_INVALID if nothing was ever fed or there
 * is no such commit, and as azk_db_feed_info.
 */
azk_status azk_db_feed(const azk_db *db,
                       uint64_t after,
                       azk_feed **out);

/**
 * The next change. Its bytes stay until the next call with this reader. Errors: AZK_NOT_FOUND if there is
 * none at present: it may be called again. AZK_FEED_GAP if the feed was faster, AZK_CORRUPT, AZK_IO,
 * AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_feed_next(azk_feed *feed,
                         azk_change *change);

/**
 * Waits until there is a change, or so many milliseconds are over. The reader is in use meanwhile. Errors:
 * AZK_NOT_FOUND if there is none, and as azk_feed_next.
 */
azk_status azk_feed_wait(azk_feed *feed,
                         uint64_t time_ms);

/**
 * The newest commit of which all changes were given. From there another reader goes on. Errors: none of its
 * own.
 */
azk_status azk_feed_position(azk_feed *feed,
                             uint64_t *commit);

/**
 * Frees a reader of the feed. NULL is allowed. Errors: none of its own.
 */
azk_status azk_feed_free(azk_feed *feed);

/**
 * Opens the set of shards in the folder `path`: the version of this number, or the newest if it is 0. On
 * failure *out is NULL. Errors: AZK_OPEN, AZK_CORRUPT, AZK_IO.
 */
azk_status azk_shards_open(const char *path,
                           uint32_t version,
                           azk_shards **out);

/**
 * Frees the handle. NULL is allowed. Errors: none of its own.
 */
azk_status azk_shards_free(azk_shards *shards);

/**
 * The number of the version that is read, and how many records it has. `records` may be NULL. Errors: none
 * of its own.
 */
azk_status azk_shards_version(const azk_shards *shards,
                              uint32_t *version,
                              uint64_t *records);

/**
 * Goes to the newest version, all at once: a call sees one version. *is_newer says whether there was a newer
 * one. A handle of a chosen version stays with that. Errors: AZK_OPEN, AZK_CORRUPT, AZK_IO; the handle stays
 * with its version then.
 */
azk_status azk_shards_refresh(const azk_shards *shards,
                              bool *is_newer);

/**
 * Copies the value of a key into a buffer, as azk_table_get does. Errors: AZK_NOT_FOUND,
 * AZK_BUFFER_TOO_SMALL, AZK_OPEN, AZK_CORRUPT, AZK_IO, AZK_FORKED.
 */
azk_status azk_shards_get(const azk_shards *shards,
                          const void *key,
                          size_t key_len,
                          void *buffer,
                          size_t capacity,
                          size_t *len);

/**
 * A copy of the value of a key, as azk_table_get_alloc gives it. Free it with azk_free. Errors:
 * AZK_NOT_FOUND, AZK_NO_MEMORY, and as azk_shards_get.
 */
azk_status azk_shards_get_alloc(const azk_shards *shards,
                                const void *key,
                                size_t key_len,
                                void **value,
                                size_t *value_len);

/**
 * The values of `count` keys, as azk_table_get_many gives them, all of one version. Free the array with
 * azk_free, once. Errors: AZK_NO_MEMORY, and as azk_shards_get, without AZK_NOT_FOUND.
 */
azk_status azk_shards_get_many(const azk_shards *shards,
                               const azk_bytes *keys,
                               size_t count,
                               azk_bytes **values);

/**
 * Returns when everything committed so far is durable. Errors: AZK_NO_SPACE (what is not durable stays in
 * memory and is tried again), AZK_IO, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_db_sync(azk_db *db);

/**
 * Writes what is in memory to the file as sorted runs, durably. This is never needed, but it limits what the
 * next opening has to read. Errors: as azk_db_sync, and AZK_READ_ONLY.
 */
azk_status azk_db_flush(azk_db *db);

/**
 * Flushes, and merges until every table is one sorted run, which makes reads fastest. After half a second
 * without commits the library does the same. On a full disk it goes as far as there is room. Errors: as
 * azk_db_sync, AZK_READ_ONLY, AZK_CORRUPT (what is not damaged is merged all the same).
 */
azk_status azk_db_compact(azk_db *db);

/**
 * Gives all free space back to the file system, while the database is in use: compacts, and moves the file's
 * tail into its holes. `progress` may be NULL. So may `before_bytes` and `after_bytes`, the places for the
 * file's length before and after. On a full disk it goes as far as there is room. Errors: as azk_db_compact.
 */
azk_status azk_db_shrink(azk_db *db,
                         azk_progress_fn progress,
                         void *user_data,
                         uint64_t *before_bytes,
                         uint64_t *after_bytes);

/**
 * Reads everything and checks it: checksums, order, counts, large values, the log, and that each part of the
 * file is either in use once or free. If something is wrong, the call gives AZK_CORRUPT and still fills the
 * report. *problems is then a text with a line for each problem. Free it with azk_free. Otherwise *problems
 * is NULL. `progress`, `report` and `problems` may be NULL. Errors: AZK_CORRUPT, AZK_IO, AZK_CLOSED,
 * AZK_FORKED, AZK_NO_MEMORY.
 */
azk_status azk_db_check(azk_db *db,
                        azk_progress_fn progress,
                        void *user_data,
                        azk_check_report *report,
                        char **problems);

/**
 * Copies what is committed to the new file `path`, while others read and write. The copy has its name when
 * it is whole and durable. It is a database of its own: its backups go to another repository. `progress` may
 * be NULL. Errors: AZK_OPEN if there is such a file, AZK_NO_SPACE, AZK_IO, AZK_CORRUPT, AZK_READ_ONLY if the
 * database is open to read only and was not closed, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_db_copy(azk_db *db,
                       const char *path,
                       azk_progress_fn progress,
                       void *user_data);

/**
 * As azk_db_copy, but at most `bytes_per_second` are copied, so that others have their share of the disks. 0
 * means no limit. A slow copy keeps the space of replaced records for longer. Errors: AZK_INVALID below
 * 4,096 bytes a second, and as azk_db_copy.
 */
azk_status azk_db_copy_paced(azk_db *db,
                             const char *path,
                             uint64_t bytes_per_second,
                             azk_progress_fn progress,
                             void *user_data);

/**
 * Adds a point, the database after its newest commit, to the repository in the directory `repository`. The
 * repository is made if there is none. Others read and write meanwhile. It costs what has changed since the
 * point before. The point is durable when this returns. `progress` and `report` may be NULL. Errors:
 * AZK_INVALID if the repository is another database's, AZK_LOCKED while it is pruned, and as azk_db_copy.
 */
azk_status azk_db_backup(azk_db *db,
                         const char *repository,
                         azk_progress_fn progress,
                         void *user_data,
                         azk_backup_report *report);

/**
 * As azk_db_backup, but at most `bytes_per_second` are copied, as by azk_db_copy_paced. What the repository
 * has already does not count. Errors: AZK_INVALID below 4,096 bytes a second, and as azk_db_backup.
 */
azk_status azk_db_backup_paced(azk_db *db,
                               const char *repository,
                               uint64_t bytes_per_second,
                               azk_progress_fn progress,
                               void *user_data,
                               azk_backup_report *report);

/**
 * The points of a repository, by their numbers, in an array of *count elements. Free the array with
 * azk_free. If a point cannot be read, the call gives AZK_CORRUPT and still gives the others. On any other
 * failure *out is NULL. Errors: AZK_OPEN if there is no repository, AZK_CORRUPT, AZK_NEWER_VERSION, AZK_IO,
 * AZK_NO_MEMORY.
 */
azk_status azk_repository_points(const char *repository,
                                 azk_point **out,
                                 size_t *count);

/**
 * Makes the database `path`, which must not be there, of a point of a repository. `which` is an azk_which,
 * and `number` what it needs. Every byte is verified on the way, and the file has its name when it is whole
 * and durable. `progress` and `point`, the place for the point that it was, may be NULL. Errors: AZK_INVALID
 * if there is no such point, AZK_OPEN if there is such a file or no repository, AZK_CORRUPT, AZK_LOCKED
 * while it is pruned, AZK_NO_SPACE, AZK_IO.
 */
azk_status azk_repository_restore(const char *repository,
                                  int32_t which,
                                  uint64_t number,
                                  const char *path,
                                  azk_progress_fn progress,
                                  void *user_data,
                                  azk_point *point);

/**
 * Reads and verifies every byte of a repository. If something is wrong, the call gives AZK_CORRUPT and still
 * fills the report. *problems is then a text with a line for each problem. Free it with azk_free. Otherwise
 * *problems is NULL. `progress`, `report` and `problems` may be NULL. Errors: AZK_CORRUPT, AZK_OPEN if there
 * is no repository, AZK_LOCKED while it is pruned, AZK_IO, AZK_NO_MEMORY.
 */
azk_status azk_repository_verify(const char *repository,
                                 azk_progress_fn progress,
                                 void *user_data,
                                 azk_verify_report *report,
                                 char **problems);

/**
 * Removes the points that are not to be kept, and what only they have named. `keep` says which are to be
 * kept, as in "7d,4w,12m": the newest of each of the last 7 days, 4 weeks and 12 months that have some. h
 * and y are hours and years. A number alone is so many points. The newest is kept in any case. `progress`,
 * and the places for how many are kept and removed, may be NULL. Errors: AZK_INVALID for another `keep`,
 * AZK_CORRUPT if a point is damaged (nothing is removed then), AZK_LOCKED while a backup or a restore is at
 * work, AZK_OPEN if there is no repository, AZK_IO.
 */
azk_status azk_repository_prune(const char *repository,
                                const char *keep,
                                azk_progress_fn progress,
                                void *user_data,
                                uint64_t *kept,
                                uint64_t *removed);

/**
 * The database's figures. Zeros in a forked child. Errors: AZK_INVALID if `size` was not set.
 */
azk_status azk_db_stats(const azk_db *db,
                        azk_stats *stats);

/**
 * The checkpoints that followers of other handles read, the oldest first, in an array of *count elements.
 * Free the array with azk_free, once. On failure *out is NULL. None in a forked child. Errors:
 * AZK_NO_MEMORY.
 */
azk_status azk_db_pins(const azk_db *db,
                       azk_pin **out,
                       size_t *count);

/**
 * A table in figures. Nothing is read from the file. Errors: AZK_INVALID if `size` was not set,
 * AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_table_stats(const azk_table *table,
                           azk_table_figures *stats);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AZEKURA_H */
