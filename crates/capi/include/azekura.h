/*
 * Azekura for C: an embedded, transactional key-value store. A database is one file, and the file
 * holds tables. This header is generated from crates/capi/src; `cargo xtask header` writes it.
 *
 * Results. Every function that can fail returns an azk_status, and AZK_OK if all went well. What it
 * gives goes to out-parameters, which come last. azk_error_message says why the last call of the
 * thread failed. The errors that a function can return are listed with it. Besides, each can return
 * AZK_INVALID for an argument that has no meaning (a NULL where none may be, a length that no memory
 * has), AZK_BAD_HANDLE and AZK_BUSY for a handle (see below), and AZK_PANIC.
 *
 * Bytes. Keys and values are any bytes, with their length; NULL is allowed if the length is 0. They
 * are copied before a call returns. Paths and names end with a zero byte; names are UTF-8. (A table
 * whose name has a zero byte in it can be listed here, and opened only from Rust.)
 *
 * Memory. What a function allocates for its result is freed with azk_free. Pointers that are only
 * lent say until when they are good: those of cursors until the cursor moves or is freed, those of
 * azk_read_get_ref until the values are released or the transaction ends.
 *
 * Handles. A handle looks like a pointer, and is a number that the library looks up at each call:
 * nothing is read through it. So NULL, a handle that was freed, closed or ended, one of another type,
 * and any other pointer are AZK_BAD_HANDLE, every time, also when a thread frees what another is
 * about to use. A table of another database is AZK_INVALID. Each handle is to be freed by the one
 * who got it; a transaction, a cursor or a table keeps what it needs of its database, so they may be
 * freed in any order. Not detected: wrong lengths, out-parameters without room, and memory that is
 * passed to azk_free and is not of this library.
 *
 * Threads. All functions may be called by any threads at once. An azk_db and an azk_table may be
 * used by several threads at the same time. Options, transactions and cursors are used by one thread
 * at a time and may be handed on to another; a call that meets another is AZK_BUSY, and so is
 * freeing what a call is using: nothing happens then. Messages are per thread. No function may be
 * called from a signal handler.
 *
 * Callbacks may call every function, with the same handles too. They must return: no longjmp, no
 * exception may leave them.
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
 * What a call returns. Positive numbers are errors of the engine and never change their meaning; negative
 * ones are of this interface. The set may grow.
 */
enum azk_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * Done.
   */
  AZK_OK = 0,
  /**
   * The key is not there, or the cursor is at its end. No error: it leaves no message.
   */
  AZK_NOT_FOUND = -1,
  /**
   * The value does not fit into the buffer; its length was given. No error: it leaves no message.
   */
  AZK_BUFFER_TOO_SMALL = -2,
  /**
   * The callback has ended the walk. No error: it leaves no message.
   */
  AZK_STOPPED = -3,
  /**
   * A handle that is NULL, was freed or closed, is of another type, or is none at all.
   */
  AZK_BAD_HANDLE = -4,
  /**
   * The handle is in use by a call under way, in another thread or around this callback.
   */
  AZK_BUSY = -5,
  /**
   * There is no memory for the result, or too many handles are open.
   */
  AZK_NO_MEMORY = -6,
  /**
   * A defect of the library. The handles of the call should be freed; the file is as after a crash at
   * worst.
   */
  AZK_PANIC = -7,
  /**
   * An error of the engine that this header has no number for; the message says which.
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
   * Another process, or another handle of this one, has the file open.
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
   * Another transaction has changed what this one used. Nothing was changed; run it again.
   */
  AZK_CONFLICT = 6,
  /**
   * A write was asked of a database that is open read-only.
   */
  AZK_READ_ONLY = 7,
  /**
   * The disk is full. Nothing acknowledged is lost; ask again when there is room.
   */
  AZK_NO_SPACE = 8,
  /**
   * The system reported an error.
   */
  AZK_IO = 9,
  /**
   * An earlier write or sync failed, so nothing later can be acknowledged. Close and open the database
   * again.
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
   * The file cannot be opened, locked or made, is not there, or is there and was to be new.
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
   * The disk is full, and closing would lose commits. The handle is open as before.
   */
  AZK_NOT_DURABLE = 19,
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
   * In the byte order of the keys: ranges, prefixes, and cursors from any key.
   */
  AZK_ORDERED = 1,
  /**
   * In the order of the keys' hashes: the fastest gets; iteration in no useful order.
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
   * Within the eventual delay, or when azk_db_sync returns. A crash never tears such a commit and never
   * keeps a later one without an earlier one.
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
 * What a transaction that reads and writes is protected from. One that has written nothing never conflicts.
 */
enum azk_isolation
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * As if transactions had run one after the other: the commit fails if anything that this one has read
   * was changed since. Its snapshot begins with its first read; one that only writes never conflicts.
   */
  AZK_SERIALIZABLE = 0,
  /**
   * The commit fails only if a key that this one has written was changed since it began, when its snapshot
   * begins.
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
 * A moving place in a table as of one snapshot.
 */
typedef struct azk_cursor azk_cursor;

/**
 * An open database.
 */
typedef struct azk_db azk_db;

/**
 * Options of opening.
 */
typedef struct azk_options azk_options;

/**
 * A read transaction: a snapshot of all tables.
 */
typedef struct azk_read azk_read;

/**
 * A table of an open database.
 */
typedef struct azk_table azk_table;

/**
 * A write transaction.
 */
typedef struct azk_write azk_write;

/**
 * A table in a list.
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
 * Bytes that stand somewhere else. `data` may be NULL if `len` is 0.
 */
typedef struct {
  /**
   * The first of them.
   */
  const void *data;
  /**
   * How many there are.
   */
  size_t len;
} azk_bytes;

/**
 * Is called with each record. The bytes stay until it returns. 0 goes on, any other number ends the walk.
 */
typedef int32_t (*azk_scan_fn)(void *user_data,
                               const void *key,
                               size_t key_len,
                               const void *value,
                               size_t value_len);

/**
 * Is called now and then with how far a long operation has come, in bytes; `total` may grow.
 */
typedef void (*azk_progress_fn)(void *user_data,
                                uint64_t done,
                                uint64_t total);

/**
 * What a check has found. Set `size` to sizeof(azk_check_report) before the call.
 */
typedef struct {
  /**
   * The size of this structure, as the caller knows it: later versions may have more fields.
   */
  size_t size;
  /**
   * Tables checked.
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
   * Older versions of records that are still there.
   */
  uint64_t hidden;
  /**
   * Pages read.
   */
  uint64_t pages;
  /**
   * Large values read.
   */
  uint64_t values;
  /**
   * Commits in the file's log that are in no run yet.
   */
  uint64_t log_commits;
  /**
   * Records of those commits, deletes included.
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
 * What the engine counts. Set `size` to sizeof(azk_stats) before the call. Sizes are in bytes; counts are
 * since the opening.
 */
typedef struct {
  /**
   * The size of this structure, as the caller knows it: later versions may have more fields.
   */
  size_t size;
  /**
   * The file's length.
   */
  uint64_t file_bytes;
  /**
   * Bytes of the file in use.
   */
  uint64_t live_bytes;
  /**
   * Bytes of the file in holes, to be used again.
   */
  uint64_t free_bytes;
  /**
   * Memory of the memtables.
   */
  uint64_t memtable_bytes;
  /**
   * Memory of the tables themselves, the records of small ones included.
   */
  uint64_t table_bytes;
  /**
   * Log waiting in memory, and in the file.
   */
  uint64_t log_bytes;
  /**
   * Commits that opening has found in the file's log.
   */
  uint64_t log_commits;
  /**
   * The records in them, deletes included.
   */
  uint64_t log_records;
  /**
   * Large values in the file.
   */
  uint64_t value_bytes;
  /**
   * Partitions of sorted runs, of all tables.
   */
  uint64_t runs;
  /**
   * What is kept in memory of the file's pages.
   */
  uint64_t cache_bytes;
  /**
   * Pages that had to be read from the file and checked.
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
   * Memtables flushed.
   */
  uint64_t flushes;
  /**
   * Merges done.
   */
  uint64_t merges;
  /**
   * The records that they read.
   */
  uint64_t merged_records;
  /**
   * The time that they took, in nanoseconds.
   */
  uint64_t merge_ns;
  /**
   * Commits that were delayed by more than a millisecond.
   */
  uint64_t stalls;
  /**
   * For how long in all, in nanoseconds.
   */
  uint64_t stall_ns;
} azk_stats;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The name of a status, as in this header; "unknown status" for any other number. It is there for good.
 */
const char *azk_status_name(int32_t status);

/**
 * Why the last call of this thread failed that did, in English; "" if none has. The text is there until the
 * next failure in the same thread, or its end.
 */
const char *azk_error_message(void);

/**
 * The version of the library, such as "0.1.0". It is there for good.
 */
const char *azk_version(void);

/**
 * Frees what a function of this library has allocated for its result. NULL is nothing to free. (It is memory
 * of the C library: `free` does the same.)
 */
void azk_free(void *memory);

/**
 * Makes options with the defaults: make the file if there is none, 256 MiB of memory, durable commits.
 * To be freed with azk_options_free. Errors: none of its own.
 */
azk_status azk_options_create(azk_options **out);

/**
 * Frees options. Databases that were opened with them stay as they are. NULL is nothing to free.
 * Errors: none of its own.
 */
azk_status azk_options_free(azk_options *options);

/**
 * Whether to make a database if the file does not exist, or is empty (0: no). Default: yes. Errors: none of
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
 * Whether to open for reading only (0: no). Several processes may, as long as none writes. Default: no.
 * Errors: none of its own.
 */
azk_status azk_options_set_read_only(azk_options *options,
                                     int32_t yes);

/**
 * The memory to be used for everything, in bytes. Default: 256 MiB; at least 8 MiB. What has no meaning is
 * refused by azk_db_open, with AZK_INVALID. Errors: none of its own.
 */
azk_status azk_options_set_memory_bytes(azk_options *options,
                                        uint64_t bytes);

/**
 * The memory that commits fill before they are flushed to the file, in bytes; 0 for the default, an eighth
 * of all memory and 64 MiB at most. From 64 KiB to 1 GiB. Errors: none of its own.
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
 * Within what time eventual commits become durable, in milliseconds. Default: 1000. Errors: none of its own.
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
 * Whether threads of the library merge in the background (0: no). Without, the file grows and reads slow
 * down until azk_db_compact or azk_db_shrink is called. Default: yes. Errors: none of its own.
 */
azk_status azk_options_set_background_merges(azk_options *options,
                                             int32_t yes);

/**
 * Whether the file is read through mappings (0: no). Nothing is copied then, but a disk that fails just when
 * a page is read again ends the process with SIGBUS. Default: yes. Errors: none of its own.
 */
azk_status azk_options_set_mapped(azk_options *options,
                                  int32_t yes);

/**
 * Whether the library starts threads at all (0: no). Without, work is done by the call that finds it due,
 * and eventual commits become durable by azk_db_sync, a later durable commit or azk_db_close, not by time.
 * Default: yes. Errors: none of its own.
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
 * Closes the database for all who have a handle of it: makes everything durable, ends the library's threads,
 * gives the file its final length and gives its lock up. Tables, transactions and cursors may outlive it:
 * their calls are AZK_CLOSED from then on, and each is still to be freed. Where the file is mapped, it is
 * the last transaction or cursor to be freed that gives the lock up.
 *
 * If it returns AZK_OK the handle is gone. Else it is there as before: after AZK_NOT_DURABLE (the disk is
 * full) the database is open, and closing can be tried again when there is room. After any other error what
 * was durable is in the file, and reopening finds it. azk_db_free gives up.
 *
 * Errors: AZK_NOT_DURABLE, AZK_NO_SPACE, AZK_IO, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_db_close(azk_db *db);

/**
 * Frees the handle. A database that was not closed is closed when the last handle of it is freed, tables,
 * transactions and cursors included; what cannot be made durable then is lost, and nobody is told. In a
 * forked child nothing is closed. NULL is nothing to free. Errors: none of its own.
 */
azk_status azk_db_free(azk_db *db);

/**
 * The table of a name, made if there is none; `kind` is an azk_kind. To be freed with azk_table_free; until
 * then it keeps the database's memory. On failure *out is NULL. Errors: AZK_WRONG_TYPE if it is of the other
 * kind, AZK_INVALID, AZK_TOO_LARGE for a name over 255 bytes, AZK_READ_ONLY, AZK_NO_SPACE, AZK_IO,
 * AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_db_table(const azk_db *db,
                        const char *name,
                        int32_t kind,
                        azk_table **out);

/**
 * As azk_db_table, for a table that is there already, of either kind. Errors: AZK_NO_SUCH_TABLE,
 * AZK_INVALID, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_db_open_table(const azk_db *db,
                             const char *name,
                             azk_table **out);

/**
 * As azk_db_table, for a table that is not there yet. It is durable when this returns, and so is all that
 * was committed before. Errors: AZK_TABLE_EXISTS, and as azk_db_table.
 */
azk_status azk_db_create_table(const azk_db *db,
                               const char *name,
                               int32_t kind,
                               azk_table **out);

/**
 * Frees a handle of a table. Transactions and cursors that use the table go on. NULL is nothing to free.
 * Errors: none of its own.
 */
azk_status azk_table_free(azk_table *table);

/**
 * Gives a table another name; handles of it stay good. Errors: AZK_NO_SUCH_TABLE, AZK_TABLE_EXISTS, and as
 * azk_db_table.
 */
azk_status azk_db_rename_table(const azk_db *db,
                               const char *from,
                               const char *to);

/**
 * Removes a table with all its records. Calls through handles of it are AZK_NO_SUCH_TABLE from then on.
 * Errors: AZK_NO_SUCH_TABLE, and as azk_db_table.
 */
azk_status azk_db_drop_table(const azk_db *db,
                             const char *name);

/**
 * All tables, by name, in an array of *count that is to be freed with azk_free, as one. On failure *out is
 * NULL. Errors: AZK_NO_MEMORY.
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
 * The name of a table, which ends with a zero byte, to be freed with azk_free; "" if the table was dropped.
 * On failure *name is NULL. Errors: AZK_NO_MEMORY.
 */
azk_status azk_table_name(const azk_table *table,
                          char **name);

/**
 * Copies the value of a key into a buffer of `capacity` bytes. *len is the length of the value, also if it
 * does not fit: then nothing is copied. `buffer` may be NULL if `capacity` is 0. Errors: AZK_NOT_FOUND,
 * AZK_BUFFER_TOO_SMALL, AZK_CORRUPT, AZK_IO, AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_table_get(const azk_table *table,
                         const void *key,
                         size_t key_len,
                         void *buffer,
                         size_t capacity,
                         size_t *len);

/**
 * A copy of the value of a key, to be freed with azk_free. If there is none *value is NULL; an empty value
 * is not. Errors: AZK_NOT_FOUND, AZK_NO_MEMORY, and as azk_table_get.
 */
azk_status azk_table_get_alloc(const azk_table *table,
                               const void *key,
                               size_t key_len,
                               void **value,
                               size_t *value_len);

/**
 * Whether a key is there. Errors: as azk_table_get, but for AZK_NOT_FOUND.
 */
azk_status azk_table_contains(const azk_table *table,
                              const void *key,
                              size_t key_len,
                              bool *is_there);

/**
 * How many records the table has. It is a walk over all of them unless the table was compacted. Errors:
 * AZK_CORRUPT, AZK_IO, AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_table_count(const azk_table *table,
                           uint64_t *count);

/**
 * Removes a key and gives a copy of its value, to be freed with azk_free. If there is none *value is NULL.
 * Errors: AZK_NOT_FOUND, AZK_NO_MEMORY (the record is gone then all the same), and as azk_table_put.
 */
azk_status azk_table_take(const azk_table *table,
                          const void *key,
                          size_t key_len,
                          void **value,
                          size_t *value_len);

/**
 * Sets the value of a key. A key has 65,536 bytes at most, a value 4 GiB less one. Errors: AZK_TOO_LARGE,
 * AZK_READ_ONLY, AZK_NO_SPACE, AZK_IO, AZK_POISONED, AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_table_put(const azk_table *table,
                         const void *key,
                         size_t key_len,
                         const void *value,
                         size_t value_len);

/**
 * Removes a key, whether it is there or not. Errors: as azk_table_put.
 */
azk_status azk_table_remove(const azk_table *table,
                            const void *key,
                            size_t key_len);

/**
 * Sets the value of a key only if it is absent; *done says whether it was. Errors: as azk_table_put and
 * azk_table_get.
 */
azk_status azk_table_add(const azk_table *table,
                         const void *key,
                         size_t key_len,
                         const void *value,
                         size_t value_len,
                         bool *done);

/**
 * Sets the value of a key only if it is present; *done says whether it was. Errors: as azk_table_put and
 * azk_table_get.
 */
azk_status azk_table_replace(const azk_table *table,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len,
                             bool *done);

/**
 * Appends to the value of a key; an absent one counts as empty. Errors: as azk_table_put and azk_table_get.
 */
azk_status azk_table_append(const azk_table *table,
                            const void *key,
                            size_t key_len,
                            const void *value,
                            size_t value_len);

/**
 * Adds to a number and gives the sum. Numbers are eight bytes, little-endian, two's complement; an absent
 * key counts as zero; sums wrap around. Errors: AZK_WRONG_TYPE if the value has not eight bytes, and as
 * azk_table_put and azk_table_get.
 */
azk_status azk_table_increment(const azk_table *table,
                               const void *key,
                               size_t key_len,
                               int64_t delta,
                               int64_t *sum);

/**
 * Replaces the value of a key only if it is what is expected (NULL: absent); *done says whether it was. A
 * new value of NULL removes the key. Errors: as azk_table_put and azk_table_get.
 */
azk_status azk_table_compare_and_swap(const azk_table *table,
                                      const void *key,
                                      size_t key_len,
                                      const azk_bytes *expected,
                                      const azk_bytes *new_value,
                                      bool *done);

/**
 * Removes all keys from `from` on and below `to`; NULL is no bound. Ordered tables only; it costs the same
 * however many there are. Errors: AZK_WRONG_TYPE for a hash table, and as azk_table_put.
 */
azk_status azk_table_remove_range(const azk_table *table,
                                  const azk_bytes *from,
                                  const azk_bytes *to);

/**
 * Removes all records of the table. Errors: as azk_table_put.
 */
azk_status azk_table_clear(const azk_table *table);

/**
 * The values of `count` keys, in their order: an array of as many azk_bytes, to be freed with azk_free, as
 * one. Where there is no value `data` is NULL; that of an empty value is not. On failure *values is NULL.
 * Errors: AZK_NO_MEMORY, and as azk_table_get, but for AZK_NOT_FOUND.
 */
azk_status azk_table_get_many(const azk_table *table,
                              const azk_bytes *keys,
                              size_t count,
                              azk_bytes **values);

/**
 * As azk_table_get_many, as of the snapshot. Errors: as azk_read_get and azk_table_get_many.
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
 * Sets the values of `count` keys in one transaction; of equal keys the last counts. Errors: as
 * azk_table_put; nothing is written then.
 */
azk_status azk_table_put_many(const azk_table *table,
                              const azk_bytes *keys,
                              const azk_bytes *values,
                              size_t count);

/**
 * Sets the values of `count` keys within a transaction; of equal keys the last counts. Errors: as
 * azk_write_put; the records before the one at fault are in the transaction then.
 */
azk_status azk_write_put_many(azk_write *write,
                              const azk_table *table,
                              const azk_bytes *keys,
                              const azk_bytes *values,
                              size_t count);

/**
 * Calls `callback` with each record of the table as it is now, in order: with the keys from `from` on and
 * below `to`; NULL is no bound, and a hash table has none. Errors: AZK_STOPPED if the callback has ended it,
 * AZK_INVALID if it is NULL, and as azk_table_cursor and azk_cursor_next.
 */
azk_status azk_table_scan(const azk_table *table,
                          const azk_bytes *from,
                          const azk_bytes *to,
                          azk_scan_fn callback,
                          void *user_data);

/**
 * Begins to read a snapshot of all tables: commits made later are not seen. It waits for nobody and nobody
 * waits for it. While it is open the space of what it sees is kept, so it should not be open for long. To be
 * ended with azk_read_end. On failure *out is NULL. Errors: none of its own (a closed database is noticed by
 * the first get).
 */
azk_status azk_read_begin(const azk_db *db,
                          azk_read **out);

/**
 * Ends a read transaction. Pointers from azk_read_get_ref end with it; cursors go on. NULL is nothing to
 * end. Errors: none of its own.
 */
azk_status azk_read_end(azk_read *read);

/**
 * As azk_table_get, as of the snapshot. Keys in ascending order are found fastest. Errors: AZK_INVALID if
 * the table is of another database, AZK_NO_SUCH_TABLE if it was made later, and as azk_table_get.
 */
azk_status azk_read_get(azk_read *read,
                        const azk_table *table,
                        const void *key,
                        size_t key_len,
                        void *buffer,
                        size_t capacity,
                        size_t *len);

/**
 * As azk_table_get_alloc, as of the snapshot. Errors: as azk_read_get, and AZK_NO_MEMORY.
 */
azk_status azk_read_get_alloc(azk_read *read,
                              const azk_table *table,
                              const void *key,
                              size_t key_len,
                              void **value,
                              size_t *value_len);

/**
 * The value of a key without a copy. The bytes stay where they are and as they are until
 * azk_read_release_values or azk_read_end, whatever is done to the database meanwhile, its closing included;
 * any thread may read them. Each value takes some 100 bytes of memory until then, and keeps what it stands
 * in: of many, let go now and then. On failure *value is NULL and 0. Errors: as azk_read_get, but for
 * AZK_BUFFER_TOO_SMALL.
 */
azk_status azk_read_get_ref(azk_read *read,
                            const azk_table *table,
                            const void *key,
                            size_t key_len,
                            azk_bytes *value);

/**
 * Lets go of all values that azk_read_get_ref has given in this transaction, which goes on.
 * Errors: none of its own.
 */
azk_status azk_read_release_values(azk_read *read);

/**
 * Whether a key is there. Errors: as azk_read_get, but for AZK_NOT_FOUND.
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
 * Begins a write transaction: nothing of it is visible to others until it is committed, and then everything
 * is. Any number may be open at once. `durability` is an azk_durability, `isolation` an azk_isolation; 0 and
 * 0 are the defaults. To be ended with azk_write_commit or azk_write_rollback. On failure *out is NULL.
 * Errors: AZK_INVALID (a closed database is noticed by the first call).
 */
azk_status azk_write_begin(const azk_db *db,
                           int32_t durability,
                           int32_t isolation,
                           azk_write **out);

/**
 * Makes all writes visible at once, and durable as was chosen. The handle is gone whatever this returns, but
 * for AZK_BAD_HANDLE and AZK_BUSY; after an error nothing was written, and who wants it begins anew.
 *
 * Errors: AZK_CONFLICT if another transaction has changed what this one depends on: run it again.
 * AZK_NO_SUCH_TABLE if a table was dropped since it was written to. AZK_READ_ONLY, AZK_NO_SPACE, AZK_IO,
 * AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_write_commit(azk_write *write);

/**
 * Forgets all writes and ends the transaction. Cursors of it go on. NULL is nothing to end. Errors: none of
 * its own.
 */
azk_status azk_write_rollback(azk_write *write);

/**
 * Remembers the writes so far, to return to them with azk_write_rollback_to. *savepoint is a number that no
 * other savepoint of this process has. It ends with the transaction. Errors: none of its own.
 */
azk_status azk_write_savepoint(azk_write *write,
                               uint64_t *savepoint);

/**
 * Undoes the writes since a savepoint, which can be used again. Savepoints set after it are gone. Errors:
 * AZK_INVALID if the savepoint is of another transaction or gone (nothing is undone then), AZK_CLOSED,
 * AZK_FORKED.
 */
azk_status azk_write_rollback_to(azk_write *write,
                                 uint64_t savepoint);

/**
 * As azk_table_get, as this transaction sees it. Errors: AZK_INVALID if the table is of another database,
 * AZK_NO_SUCH_TABLE if it was made later, and as azk_table_get.
 */
azk_status azk_write_get(azk_write *write,
                         const azk_table *table,
                         const void *key,
                         size_t key_len,
                         void *buffer,
                         size_t capacity,
                         size_t *len);

/**
 * As azk_table_get_alloc, as this transaction sees it. Errors: as azk_write_get, and AZK_NO_MEMORY.
 */
azk_status azk_write_get_alloc(azk_write *write,
                               const azk_table *table,
                               const void *key,
                               size_t key_len,
                               void **value,
                               size_t *value_len);

/**
 * Removes a key and gives a copy of its value, to be freed with azk_free. If there is none *value is NULL.
 * Errors: AZK_NOT_FOUND, AZK_NO_MEMORY, and as azk_write_put and azk_write_get.
 */
azk_status azk_write_take(azk_write *write,
                          const azk_table *table,
                          const void *key,
                          size_t key_len,
                          void **value,
                          size_t *value_len);

/**
 * Whether a key is there. Errors: as azk_write_get, but for AZK_NOT_FOUND.
 */
azk_status azk_write_contains(azk_write *write,
                              const azk_table *table,
                              const void *key,
                              size_t key_len,
                              bool *is_there);

/**
 * How many records the table has as this transaction sees it. Errors: as azk_table_count, and AZK_INVALID if
 * it is of another database.
 */
azk_status azk_write_count(azk_write *write,
                           const azk_table *table,
                           uint64_t *count);

/**
 * Sets the value of a key. A key has 65,536 bytes at most, a value 4 GiB less one. Errors: AZK_TOO_LARGE,
 * AZK_NO_SUCH_TABLE, AZK_INVALID if the table is of another database, AZK_CLOSED, AZK_FORKED; for a large
 * value, which is stored at once, AZK_READ_ONLY, AZK_NO_SPACE, AZK_IO, AZK_POISONED.
 */
azk_status azk_write_put(azk_write *write,
                         const azk_table *table,
                         const void *key,
                         size_t key_len,
                         const void *value,
                         size_t value_len);

/**
 * Removes a key, whether it is there or not. Errors: as azk_write_put.
 */
azk_status azk_write_remove(azk_write *write,
                            const azk_table *table,
                            const void *key,
                            size_t key_len);

/**
 * Sets the value of a key only if it is absent; *done says whether it was. Errors: as azk_write_put and
 * azk_write_get.
 */
azk_status azk_write_add(azk_write *write,
                         const azk_table *table,
                         const void *key,
                         size_t key_len,
                         const void *value,
                         size_t value_len,
                         bool *done);

/**
 * Sets the value of a key only if it is present; *done says whether it was. Errors: as azk_write_put and
 * azk_write_get.
 */
azk_status azk_write_replace(azk_write *write,
                             const azk_table *table,
                             const void *key,
                             size_t key_len,
                             const void *value,
                             size_t value_len,
                             bool *done);

/**
 * Appends to the value of a key; an absent one counts as empty. Errors: as azk_write_put and azk_write_get.
 */
azk_status azk_write_append(azk_write *write,
                            const azk_table *table,
                            const void *key,
                            size_t key_len,
                            const void *value,
                            size_t value_len);

/**
 * Adds to a number and gives the sum. Numbers are eight bytes, little-endian, two's complement; an absent
 * key counts as zero; sums wrap around. Errors: AZK_WRONG_TYPE if the value has not eight bytes, and as
 * azk_write_put and azk_write_get.
 */
azk_status azk_write_increment(azk_write *write,
                               const azk_table *table,
                               const void *key,
                               size_t key_len,
                               int64_t delta,
                               int64_t *sum);

/**
 * Replaces the value of a key only if it is what is expected (NULL: absent); *done says whether it was. A
 * new value of NULL removes the key. Errors: as azk_write_put and azk_write_get.
 */
azk_status azk_write_compare_and_swap(azk_write *write,
                                      const azk_table *table,
                                      const void *key,
                                      size_t key_len,
                                      const azk_bytes *expected,
                                      const azk_bytes *new_value,
                                      bool *done);

/**
 * Removes all keys from `from` on and below `to`; NULL is no bound. Ordered tables only; it costs the same
 * however many there are. Errors: AZK_WRONG_TYPE for a hash table, and as azk_write_put.
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
 * A cursor over the table as it is now, before its first record: over the keys from `from` on and below
 * `to`; NULL is no bound. (A key with a zero byte behind it is the next one there can be.) A hash table has
 * no bounds. To be freed with azk_cursor_free; as long as it is there the space of what it sees is kept. On
 * failure *out is NULL. Errors: AZK_WRONG_TYPE for bounds in a hash table, AZK_CORRUPT, AZK_IO,
 * AZK_NO_SUCH_TABLE, AZK_CLOSED, AZK_FORKED.
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
 * As azk_table_cursor, as of the snapshot. The cursor may outlive the transaction. Errors: as
 * azk_table_cursor, and AZK_INVALID if the table is of another database.
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
 * As azk_table_cursor, as this transaction sees the table now: later writes are not in it, and it may
 * outlive the transaction. Errors: as azk_table_cursor, and AZK_INVALID if the table is of another database.
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
 * `value` is NULL the value is not read: azk_cursor_value_len and azk_cursor_value tell of it. After the
 * last record it is AZK_NOT_FOUND, as often as it is called. Errors: AZK_NOT_FOUND, AZK_CORRUPT, AZK_IO,
 * AZK_CLOSED, AZK_FORKED. If it is the value that cannot be read, *key is set, and the cursor can go on.
 */
azk_status azk_cursor_next(azk_cursor *cursor,
                           azk_bytes *key,
                           azk_bytes *value);

/**
 * Goes to the record before and gives its key and value, as azk_cursor_next. A cursor stands between
 * records: after azk_cursor_next this gives the same record once more, and the other way round. Errors: as
 * azk_cursor_next.
 */
azk_status azk_cursor_prev(azk_cursor *cursor,
                           azk_bytes *key,
                           azk_bytes *value);

/**
 * The value of the record that was given last, which is read now if it was not before. It stays until the
 * cursor moves or is freed. Errors: AZK_NOT_FOUND if the cursor stands at no record, AZK_CORRUPT, AZK_IO,
 * AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_cursor_value(azk_cursor *cursor,
                            azk_bytes *value);

/**
 * The length of the value of the record that was given last, without reading it. Errors: AZK_NOT_FOUND if
 * the cursor stands at no record, or as azk_cursor_value if the value was asked for and cannot be read.
 */
azk_status azk_cursor_value_len(azk_cursor *cursor,
                                size_t *len);

/**
 * Goes to a key: azk_cursor_next then gives the first record at or above it, azk_cursor_prev the last below.
 * Ordered tables only. Errors: AZK_WRONG_TYPE for a hash table.
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
 * Frees a cursor. NULL is nothing to free. Errors: none of its own.
 */
azk_status azk_cursor_free(azk_cursor *cursor);

/**
 * Returns when everything committed so far is durable. Errors: AZK_NO_SPACE (what is not durable stays in
 * memory and is tried again), AZK_IO, AZK_POISONED, AZK_CLOSED, AZK_FORKED.
 */
azk_status azk_db_sync(azk_db *db);

/**
 * Writes what is in memory to the file as sorted runs, durably. There is no need to, but it bounds what the
 * next opening has to read. Errors: as azk_db_sync, and AZK_READ_ONLY.
 */
azk_status azk_db_flush(azk_db *db);

/**
 * Flushes, and merges until every table is one sorted run: reads are fastest then. Half a second without
 * commits does the same by itself. On a full disk it goes as far as there is room. Errors: as azk_db_sync,
 * AZK_READ_ONLY, AZK_CORRUPT (what is not damaged is merged all the same).
 */
azk_status azk_db_compact(azk_db *db);

/**
 * Gives all free space back to the file system while the database is in use: compacts, and moves the file's
 * end into its holes. `progress` may be NULL, and so may the places for the file's length in bytes before
 * and after. On a full disk it goes as far as there is room. Errors: as azk_db_compact.
 */
azk_status azk_db_shrink(azk_db *db,
                         azk_progress_fn progress,
                         void *user_data,
                         uint64_t *before_bytes,
                         uint64_t *after_bytes);

/**
 * Reads everything and checks it: checksums, order, counts, large values, the log, and that each part of the
 * file is either in use once or free. If something is wrong it is AZK_CORRUPT, the report is filled all the
 * same, and *problems is a text with a line for each problem, to be freed with azk_free; else *problems is
 * NULL. `progress`, `report` and `problems` may be NULL. Errors: AZK_CORRUPT, AZK_IO, AZK_CLOSED,
 * AZK_FORKED, AZK_NO_MEMORY.
 */
azk_status azk_db_check(azk_db *db,
                        azk_progress_fn progress,
                        void *user_data,
                        azk_check_report *report,
                        char **problems);

/**
 * The database in figures; zeros in a forked child. Errors: AZK_INVALID if `size` was not set.
 */
azk_status azk_db_stats(const azk_db *db,
                        azk_stats *stats);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AZEKURA_H */
