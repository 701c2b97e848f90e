/*
 * Kyoto Cabinet's functions for C, over Azekura: programs that were written for them are compiled with this
 * header and linked with libazekura_dropin. It is generated from crates/dropin/src; `cargo xtask header` writes
 * it. docs/c.md says what is different.
 *
 * Results. What returns an int32_t returns 0 on failure unless it says otherwise. kcdbecode and kcdbemsg tell
 * why the last call of the thread failed, for each database.
 *
 * Memory. What a function returns is freed with kcfree, unless it says that it is lent.
 *
 * Handles. NULL is an error wherever a handle or a place for a result is asked for. What was freed must not be
 * used. A database may be used by all threads; a cursor, a map or a list by one at a time.
 *
 * Callbacks must not use the database that calls them: that is KCELOGIC. They must return: no longjmp, no
 * exception may leave them.
 */


#ifndef KCLANGC_H
#define KCLANGC_H

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/**
 * No error.
 */
#define KCESUCCESS 0

/**
 * The kind of database cannot do this.
 */
#define KCENOIMPL 1

/**
 * The call has no meaning: the database is not open, or an argument is wrong.
 */
#define KCEINVALID 2

/**
 * There is no such file.
 */
#define KCENOREPOS 3

/**
 * The database was opened for reading, or others have it open.
 */
#define KCENOPERM 4

/**
 * The file is damaged, or no database of Azekura.
 */
#define KCEBROKEN 5

/**
 * There is such a record already.
 */
#define KCEDUPREC 6

/**
 * There is no such record.
 */
#define KCENOREC 7

/**
 * What is there is not what the call needs.
 */
#define KCELOGIC 8

/**
 * The system refused.
 */
#define KCESYSTEM 9

/**
 * Anything else.
 */
#define KCEMISC 15

/**
 * Open for reading.
 */
#define KCOREADER 1

/**
 * Open for reading and writing.
 */
#define KCOWRITER (1 << 1)

/**
 * Make the file if there is none.
 */
#define KCOCREATE (1 << 2)

/**
 * Remove what is in the file.
 */
#define KCOTRUNCATE (1 << 3)

/**
 * Every update is a transaction. Azekura's always are.
 */
#define KCOAUTOTRAN (1 << 4)

/**
 * Every update is durable when its call returns.
 */
#define KCOAUTOSYNC (1 << 5)

/**
 * Do not wait for the file's lock. The lock is taken all the same.
 */
#define KCONOLOCK (1 << 6)

/**
 * Do not wait for the file's lock.
 */
#define KCOTRYLOCK (1 << 7)

/**
 * Do not repair. Azekura never needs to.
 */
#define KCONOREPAIR (1 << 8)

/**
 * Merge: what comes replaces what is there.
 */
#define KCMSET 0

/**
 * Merge: what is there stays.
 */
#define KCMADD 1

/**
 * Merge: what comes replaces what is there, and nothing new is made.
 */
#define KCMREPLACE 2

/**
 * Merge: what comes is appended to what is there.
 */
#define KCMAPPEND 3

/**
 * A database object.
 */
typedef struct {
  /**
   * Of the library.
   */
  void *db;
} KCDB;

/**
 * Called with the path of a database, its records, and the bytes of its file. Returns 0 if it fails.
 */
typedef int32_t (*KCFILEPROC)(const char *path,
                              int64_t count,
                              int64_t size,
                              void *opaque);

/**
 * Bytes.
 */
typedef struct {
  /**
   * The first.
   */
  char *buf;
  /**
   * How many there are.
   */
  size_t size;
} KCSTR;

/**
 * A record.
 */
typedef struct {
  /**
   * Its key.
   */
  KCSTR key;
  /**
   * Its value.
   */
  KCSTR value;
} KCREC;

/**
 * Called with a record that is there. It returns the new value and sets *new_len to its length, or returns
 * KCVISNOP to leave the record, or KCVISREMOVE to remove it.
 */
typedef const char *(*KCVISITFULL)(const char *key,
                                   size_t key_len,
                                   const char *value,
                                   size_t value_len,
                                   size_t *new_len,
                                   void *opaque);

/**
 * Called with the key of a record that is not there. It returns the value of a new record and sets *new_len
 * to its length, or returns KCVISNOP or KCVISREMOVE to make none.
 */
typedef const char *(*KCVISITEMPTY)(const char *key,
                                    size_t key_len,
                                    size_t *new_len,
                                    void *opaque);

/**
 * A cursor.
 */
typedef struct {
  /**
   * Of the library.
   */
  void *cur;
} KCCUR;

/**
 * A database of an index.
 */
typedef struct {
  /**
   * Of the library.
   */
  void *db;
} KCIDX;

/**
 * A map.
 */
typedef struct {
  /**
   * Of the library.
   */
  void *map;
} KCMAP;

/**
 * A walk over a map.
 */
typedef struct {
  /**
   * Of the library.
   */
  void *iter;
} KCMAPITER;

/**
 * A walk over a map in the order of its keys.
 */
typedef struct {
  /**
   * Of the library.
   */
  void *iter;
} KCMAPSORT;

/**
 * A list.
 */
typedef struct {
  /**
   * Of the library.
   */
  void *list;
} KCLIST;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a database object. Free it with kcdbdel.
 */
KCDB *kcdbnew(void);

/**
 * Frees a database object, and closes its database if that is open. NULL is allowed. In a callback of the
 * database this fails with KCELOGIC, and the object stays.
 */
void kcdbdel(KCDB *db);

/**
 * The code of this thread's last error with a database.
 */
int32_t kcdbecode(KCDB *db);

/**
 * The text of this thread's last error with a database. It stays until the next one.
 */
const char *kcdbemsg(KCDB *db);

/**
 * What an error code means.
 */
const char *kcecodename(int32_t code);

/**
 * How many records there are, or -1. This is a scan unless the table is settled.
 */
int64_t kcdbcount(KCDB *db);

/**
 * The length of the file, or -1.
 */
int64_t kcdbsize(KCDB *db);

/**
 * The path of the database, without parameters, or "" if it is not open. Free it with kcfree.
 */
char *kcdbpath(KCDB *db);

/**
 * Lines of a name, a tab and a value, or NULL. Free it with kcfree.
 */
char *kcdbstatus(KCDB *db);

/**
 * Makes everything durable, whether `hard` is set or not. Then calls `proc`, if there is one, while all
 * others wait. Returns 0 on failure.
 */
int32_t kcdbsync(KCDB *db,
                 int32_t hard,
                 KCFILEPROC proc,
                 void *opaque);

/**
 * Calls `proc`, if there is one, while all others wait. Returns 0 on failure.
 */
int32_t kcdboccupy(KCDB *db,
                   int32_t writable,
                   KCFILEPROC proc,
                   void *opaque);

/**
 * Copies what is committed to a file of its own, over one that is there. Returns 0 on failure.
 */
int32_t kcdbcopy(KCDB *db,
                 const char *dest);

/**
 * Removes all records. Returns 0 on failure.
 */
int32_t kcdbclear(KCDB *db);

/**
 * Opens a database. The name is a file with the ending .kch, .kcd (a hash table), .kct or .kcf (an ordered
 * table), or one of "-", "*", ":" (a hash table in memory), "+" and "%" (an ordered table in memory). It may
 * go on with parameters, as in "a.kct#type=kct#psiz=4096". Parameters that only tune have no effect; those
 * that would change what a program sees are KCENOIMPL. Returns 0 on failure.
 */
int32_t kcdbopen(KCDB *db,
                 const char *path,
                 uint32_t mode);

/**
 * Closes a database. A transaction under way is rolled back. Returns 0 on failure. If the disk is full and
 * what is not durable would be lost, that is KCESYSTEM, and the database stays open.
 */
int32_t kcdbclose(KCDB *db);

/**
 * Sets a record. Returns 0 on failure.
 */
int32_t kcdbset(KCDB *db,
                const char *key,
                size_t key_len,
                const char *value,
                size_t value_len);

/**
 * Makes a record. If there is one it stays, and this fails with KCEDUPREC. Returns 0 on failure.
 */
int32_t kcdbadd(KCDB *db,
                const char *key,
                size_t key_len,
                const char *value,
                size_t value_len);

/**
 * Sets a record that is there. If there is none this fails with KCENOREC. Returns 0 on failure.
 */
int32_t kcdbreplace(KCDB *db,
                    const char *key,
                    size_t key_len,
                    const char *value,
                    size_t value_len);

/**
 * Appends to a record, or makes it. Returns 0 on failure.
 */
int32_t kcdbappend(KCDB *db,
                   const char *key,
                   size_t key_len,
                   const char *value,
                   size_t value_len);

/**
 * Sets a record if its value is the old one. NULL as the old value means that there is no record, as the new
 * one that it is removed. If the value is another one this fails with KCELOGIC. Returns 0 on failure.
 */
int32_t kcdbcas(KCDB *db,
                const char *key,
                size_t key_len,
                const char *old,
                size_t old_len,
                const char *new_,
                size_t new_len);

/**
 * Removes a record. If there is none this fails with KCENOREC. Returns 0 on failure.
 */
int32_t kcdbremove(KCDB *db,
                   const char *key,
                   size_t key_len);

/**
 * The value of a record with a zero byte behind it, or NULL. Free it with kcfree.
 */
char *kcdbget(KCDB *db,
              const char *key,
              size_t key_len,
              size_t *value_len);

/**
 * The length of the value of a record, or -1.
 */
int32_t kcdbcheck(KCDB *db,
                  const char *key,
                  size_t key_len);

/**
 * Copies the value of a record to a buffer, as much as there is room for. Returns the length of the value,
 * or -1.
 */
int32_t kcdbgetbuf(KCDB *db,
                   const char *key,
                   size_t key_len,
                   char *buffer,
                   size_t buffer_len);

/**
 * Removes a record. Returns its value with a zero byte behind it, or NULL. Free it with kcfree.
 */
char *kcdbseize(KCDB *db,
                const char *key,
                size_t key_len,
                size_t *value_len);

/**
 * Adds to a number of eight bytes in big-endian order. `origin` is what is added to if there is no record;
 * the least number means that this fails then. The largest one means that the record is set to `number`
 * whatever it was. Returns the sum, or the least number on failure.
 */
int64_t kcdbincrint(KCDB *db,
                    const char *key,
                    size_t key_len,
                    int64_t number,
                    int64_t origin);

/**
 * Adds to a number of sixteen bytes: the whole part, and the rest in parts of 10^15, each in big-endian
 * order. `origin` is as with kcdbincrint, with negative and positive infinity. Returns the sum, or
 * not-a-number on failure.
 */
double kcdbincrdouble(KCDB *db,
                      const char *key,
                      size_t key_len,
                      double number,
                      double origin);

/**
 * Not a number.
 */
double kcnan(void);

/**
 * Infinity.
 */
double kcinf(void);

/**
 * Whether this is not a number.
 */
int32_t kcchknan(double number);

/**
 * Whether this is infinity, of either sign.
 */
int32_t kcchkinf(double number);

/**
 * Sets records. If `atomic`, all are set or none. Returns how many are set, or -1.
 */
int64_t kcdbsetbulk(KCDB *db,
                    const KCREC *recs,
                    size_t count,
                    int32_t atomic);

/**
 * Removes records. If `atomic`, all are removed or none. Returns how many were there, or -1.
 */
int64_t kcdbremovebulk(KCDB *db,
                       const KCSTR *keys,
                       size_t count,
                       int32_t atomic);

/**
 * Gets records, and sets the elements of `recs` to those that are there. Free each key and each value with
 * kcfree. If `atomic`, no other thread uses the database meanwhile. Returns how many there are, or -1.
 */
int64_t kcdbgetbulk(KCDB *db,
                    const KCSTR *keys,
                    size_t count,
                    KCREC *recs,
                    int32_t atomic);

/**
 * Writes the records of other databases to this one, in their order. `mode` is one of KCMSET and so on.
 * Returns 0 on failure.
 */
int32_t kcdbmerge(KCDB *db,
                  KCDB **sources,
                  size_t count,
                  uint32_t mode);

/**
 * Calls `fullproc` for the record of a key, or `emptyproc` if there is none. No other thread changes the
 * record meanwhile. If `writable` is 0 what they return has no effect. Returns 0 on failure.
 */
int32_t kcdbaccept(KCDB *db,
                   const char *key,
                   size_t key_len,
                   KCVISITFULL fullproc,
                   KCVISITEMPTY emptyproc,
                   void *opaque,
                   int32_t writable);

/**
 * As kcdbaccept, for several keys. No other thread uses the database meanwhile, and all changes are made or
 * none. Returns 0 on failure.
 */
int32_t kcdbacceptbulk(KCDB *db,
                       const KCSTR *keys,
                       size_t count,
                       KCVISITFULL fullproc,
                       KCVISITEMPTY emptyproc,
                       void *opaque,
                       int32_t writable);

/**
 * Calls `fullproc` for every record. No other thread uses the database meanwhile. If `writable` is 0 what it
 * returns has no effect. Returns 0 on failure.
 */
int32_t kcdbiterate(KCDB *db,
                    KCVISITFULL fullproc,
                    void *opaque,
                    int32_t writable);

/**
 * Calls `fullproc` for every record, in several threads at once, which must be a callback for that. What it
 * returns has no effect. Returns 0 on failure.
 */
int32_t kcdbscanpara(KCDB *db,
                     KCVISITFULL fullproc,
                     void *opaque,
                     size_t threads);

/**
 * Begins a transaction. While another one is under way it waits for its end. If `hard` is set it will be
 * durable when its end returns. Returns 0 on failure.
 */
int32_t kcdbbegintran(KCDB *db,
                      int32_t hard);

/**
 * As kcdbbegintran, but fails with KCELOGIC while another transaction is under way.
 */
int32_t kcdbbegintrantry(KCDB *db,
                         int32_t hard);

/**
 * Ends the transaction: all that was written since its beginning is there, or nothing if `commit` is 0.
 * Returns 0 on failure, and nothing is there then.
 */
int32_t kcdbendtran(KCDB *db,
                    int32_t commit);

/**
 * Writes all records to a file, over one that is there, which stays until this has succeeded. It must be no
 * database that is open. Kyoto Cabinet can load it. Returns 0 on failure.
 */
int32_t kcdbdumpsnap(KCDB *db,
                     const char *dest);

/**
 * Sets all records of a file, which kcdbdumpsnap has written, here or in Kyoto Cabinet. Returns 0 on
 * failure; the records before the one that is damaged or cannot be set are set then.
 */
int32_t kcdbloadsnap(KCDB *db,
                     const char *src);

/**
 * Keys that begin with a prefix, `max` of them at most, to the elements of `keys`. Free each with kcfree.
 * Returns how many there are, or -1.
 */
int64_t kcdbmatchprefix(KCDB *db,
                        const char *prefix,
                        char **keys,
                        size_t max);

/**
 * Keys that match a regular expression: an extended one of POSIX. Else as kcdbmatchprefix.
 */
int64_t kcdbmatchregex(KCDB *db,
                       const char *regex,
                       char **keys,
                       size_t max);

/**
 * Keys whose distance to a text is `range` at most: how many bytes, or characters if `utf` is set, must be
 * changed, added or removed. The nearest come first. Else as kcdbmatchprefix.
 */
int64_t kcdbmatchsimilar(KCDB *db,
                         const char *origin,
                         uint32_t range,
                         int32_t utf,
                         char **keys,
                         size_t max);

/**
 * The distance of two texts: how many bytes, or characters if `utf` is set, must be changed, added or
 * removed.
 */
size_t kclevdist(const void *a,
                 size_t a_len,
                 const void *b,
                 size_t b_len,
                 int32_t utf);

/**
 * A cursor for a database, which stands at no record yet; NULL if `db` is. Free it with kccurdel.
 */
KCCUR *kcdbcursor(KCDB *db);

/**
 * Frees a cursor. NULL is allowed. In a callback of its database this fails with KCELOGIC, and the cursor
 * stays.
 */
void kccurdel(KCCUR *cursor);

/**
 * Calls `fullproc` for the record of a cursor, as kcdbaccept. With `step` the cursor goes to the next
 * record, and also if the record is removed. Returns 0 on failure.
 */
int32_t kccuraccept(KCCUR *cursor,
                    KCVISITFULL fullproc,
                    void *opaque,
                    int32_t writable,
                    int32_t step);

/**
 * Sets the value of the record of a cursor. With `step` the cursor goes to the next record. Returns 0 on
 * failure.
 */
int32_t kccursetvalue(KCCUR *cursor,
                      const char *value,
                      size_t value_len,
                      int32_t step);

/**
 * Removes the record of a cursor, which goes to the next one. Returns 0 on failure.
 */
int32_t kccurremove(KCCUR *cursor);

/**
 * The key of the record of a cursor, with a zero byte behind it, or NULL. Free it with kcfree. With `step`
 * the cursor goes to the next record.
 */
char *kccurgetkey(KCCUR *cursor,
                  size_t *key_len,
                  int32_t step);

/**
 * The value of the record of a cursor, with a zero byte behind it, or NULL. Free it with kcfree. With `step`
 * the cursor goes to the next record.
 */
char *kccurgetvalue(KCCUR *cursor,
                    size_t *value_len,
                    int32_t step);

/**
 * The key and the value of the record of a cursor, each with a zero byte behind it, or NULL. They are one
 * block: free the key with kcfree. With `step` the cursor goes to the next record.
 */
char *kccurget(KCCUR *cursor,
               size_t *key_len,
               const char **value,
               size_t *value_len,
               int32_t step);

/**
 * As kccurget, and removes the record. The cursor goes to the next one.
 */
char *kccurseize(KCCUR *cursor,
                 size_t *key_len,
                 const char **value,
                 size_t *value_len);

/**
 * Goes to the first record. Returns 0 on failure.
 */
int32_t kccurjump(KCCUR *cursor);

/**
 * Goes to the record of a key. In an ordered table, if there is none, to the first one above. Returns 0 on
 * failure.
 */
int32_t kccurjumpkey(KCCUR *cursor,
                     const char *key,
                     size_t key_len);

/**
 * Goes to the last record. KCENOIMPL for the kinds kch, kcd, "*" and ":". Returns 0 on failure.
 */
int32_t kccurjumpback(KCCUR *cursor);

/**
 * Goes to the record of a key. In an ordered table, if there is none, to the last one below. Else as
 * kccurjumpback.
 */
int32_t kccurjumpbackkey(KCCUR *cursor,
                         const char *key,
                         size_t key_len);

/**
 * Goes to the next record. If there is none, the cursor stands at none. Returns 0 on failure.
 */
int32_t kccurstep(KCCUR *cursor);

/**
 * Goes to the record before, as kccurstep. KCENOIMPL for the kinds kch, kcd, "*" and ":".
 */
int32_t kccurstepback(KCCUR *cursor);

/**
 * The database object of a cursor.
 */
KCDB *kccurdb(KCCUR *cursor);

/**
 * As kcdbecode, for the database of a cursor.
 */
int32_t kccurecode(KCCUR *cursor);

/**
 * As kcdbemsg, for the database of a cursor.
 */
const char *kccuremsg(KCCUR *cursor);

/**
 * Makes an index. Free it with kcidxdel.
 */
KCIDX *kcidxnew(void);

/**
 * As kcdbdel.
 */
void kcidxdel(KCIDX *index);

/**
 * The database object of an index. It is freed with the index. NULL for NULL.
 */
KCDB *kcidxrevealinnerdb(KCIDX *index);

/**
 * As kcdbopen.
 */
int32_t kcidxopen(KCIDX *index,
                  const char *path,
                  uint32_t mode);

/**
 * As kcdbclose.
 */
int32_t kcidxclose(KCIDX *index);

/**
 * As kcdbecode.
 */
int32_t kcidxecode(KCIDX *index);

/**
 * As kcdbemsg.
 */
const char *kcidxemsg(KCIDX *index);

/**
 * As kcdbset.
 */
int32_t kcidxset(KCIDX *index,
                 const char *key,
                 size_t key_len,
                 const char *value,
                 size_t value_len);

/**
 * As kcdbadd.
 */
int32_t kcidxadd(KCIDX *index,
                 const char *key,
                 size_t key_len,
                 const char *value,
                 size_t value_len);

/**
 * As kcdbreplace.
 */
int32_t kcidxreplace(KCIDX *index,
                     const char *key,
                     size_t key_len,
                     const char *value,
                     size_t value_len);

/**
 * As kcdbappend.
 */
int32_t kcidxappend(KCIDX *index,
                    const char *key,
                    size_t key_len,
                    const char *value,
                    size_t value_len);

/**
 * As kcdbremove.
 */
int32_t kcidxremove(KCIDX *index,
                    const char *key,
                    size_t key_len);

/**
 * As kcdbget.
 */
char *kcidxget(KCIDX *index,
               const char *key,
               size_t key_len,
               size_t *value_len);

/**
 * As kcdbsync.
 */
int32_t kcidxsync(KCIDX *index,
                  int32_t hard,
                  KCFILEPROC proc,
                  void *opaque);

/**
 * As kcdbclear.
 */
int32_t kcidxclear(KCIDX *index);

/**
 * As kcdbcount.
 */
int64_t kcidxcount(KCIDX *index);

/**
 * As kcdbsize.
 */
int64_t kcidxsize(KCIDX *index);

/**
 * As kcdbpath.
 */
char *kcidxpath(KCIDX *index);

/**
 * As kcdbstatus.
 */
char *kcidxstatus(KCIDX *index);

/**
 * Makes a map. `buckets` has no effect. Free it with kcmapdel.
 */
KCMAP *kcmapnew(size_t buckets);

/**
 * Frees a map. NULL is allowed.
 */
void kcmapdel(KCMAP *map);

/**
 * Sets a record.
 */
void kcmapset(KCMAP *map,
              const char *key,
              size_t key_len,
              const char *value,
              size_t value_len);

/**
 * Makes a record. Returns 0 if there is one, which stays.
 */
int32_t kcmapadd(KCMAP *map,
                 const char *key,
                 size_t key_len,
                 const char *value,
                 size_t value_len);

/**
 * Sets a record that is there. Returns 0 if there is none.
 */
int32_t kcmapreplace(KCMAP *map,
                     const char *key,
                     size_t key_len,
                     const char *value,
                     size_t value_len);

/**
 * Appends to a record, or makes it.
 */
void kcmapappend(KCMAP *map,
                 const char *key,
                 size_t key_len,
                 const char *value,
                 size_t value_len);

/**
 * Removes a record. Returns 0 if there is none.
 */
int32_t kcmapremove(KCMAP *map,
                    const char *key,
                    size_t key_len);

/**
 * The value of a record with a zero byte behind it, or NULL. It is lent until the record changes.
 */
const char *kcmapget(KCMAP *map,
                     const char *key,
                     size_t key_len,
                     size_t *value_len);

/**
 * Removes all records.
 */
void kcmapclear(KCMAP *map);

/**
 * How many records there are.
 */
size_t kcmapcount(KCMAP *map);

/**
 * A walk over the records that the map has now, in any order. It must be freed with kcmapiterdel.
 */
KCMAPITER *kcmapiterator(KCMAP *map);

/**
 * Frees a walk. NULL is allowed.
 */
void kcmapiterdel(KCMAPITER *walk);

/**
 * The key of the record, or NULL at the end. It is lent until the walk goes on.
 */
const char *kcmapitergetkey(KCMAPITER *walk,
                            size_t *key_len);

/**
 * The value of the record, or NULL at the end. It is lent until the walk goes on.
 */
const char *kcmapitergetvalue(KCMAPITER *walk,
                              size_t *value_len);

/**
 * The key and the value of the record, or NULL at the end. They are lent until the walk goes on.
 */
const char *kcmapiterget(KCMAPITER *walk,
                         size_t *key_len,
                         const char **value,
                         size_t *value_len);

/**
 * Goes to the next record.
 */
void kcmapiterstep(KCMAPITER *walk);

/**
 * A walk over the records that the map has now, in the order of their keys. It must be freed with
 * kcmapsortdel.
 */
KCMAPSORT *kcmapsorter(KCMAP *map);

/**
 * As kcmapiterdel.
 */
void kcmapsortdel(KCMAPSORT *walk);

/**
 * As kcmapitergetkey.
 */
const char *kcmapsortgetkey(KCMAPSORT *walk,
                            size_t *key_len);

/**
 * As kcmapitergetvalue.
 */
const char *kcmapsortgetvalue(KCMAPSORT *walk,
                              size_t *value_len);

/**
 * As kcmapiterget.
 */
const char *kcmapsortget(KCMAPSORT *walk,
                         size_t *key_len,
                         const char **value,
                         size_t *value_len);

/**
 * As kcmapiterstep.
 */
void kcmapsortstep(KCMAPSORT *walk);

/**
 * Makes a list. Free it with kclistdel.
 */
KCLIST *kclistnew(void);

/**
 * Frees a list. NULL is allowed.
 */
void kclistdel(KCLIST *list);

/**
 * Adds a record at the end.
 */
void kclistpush(KCLIST *list,
                const char *data,
                size_t len);

/**
 * Removes the record at the end. Returns 0 if there is none.
 */
int32_t kclistpop(KCLIST *list);

/**
 * Adds a record at the beginning.
 */
void kclistunshift(KCLIST *list,
                   const char *data,
                   size_t len);

/**
 * Removes the record at the beginning. Returns 0 if there is none.
 */
int32_t kclistshift(KCLIST *list);

/**
 * Adds a record so that it has this index. Nothing happens if the list is shorter than that.
 */
void kclistinsert(KCLIST *list,
                  const char *data,
                  size_t len,
                  size_t index);

/**
 * Removes the record with an index. Nothing happens if there is none.
 */
void kclistremove(KCLIST *list,
                  size_t index);

/**
 * The record with an index and a zero byte behind it, or NULL. It is lent until the list changes.
 */
const char *kclistget(KCLIST *list,
                      size_t index,
                      size_t *len);

/**
 * Removes all records.
 */
void kclistclear(KCLIST *list);

/**
 * How many records there are.
 */
size_t kclistcount(KCLIST *list);

/**
 * The integer at the beginning of a text; 0 if there is none. What is too large wraps.
 */
int64_t kcatoi(const char *text);

/**
 * The number at the beginning of a text, with a unit of K, M, G, T, P or E behind it, each 1,024 times the
 * one before. Returns an integer: the nearest towards zero, or the largest or the least there is.
 */
int64_t kcatoix(const char *text);

/**
 * The number at the beginning of a text, also with an exponent, "inf" or "nan"; 0 if there is none.
 */
double kcatof(const char *text);

/**
 * The time in seconds since 1970.
 */
double kctime(void);

/**
 * MurmurHash64A of bytes, with Kyoto Cabinet's seed.
 */
uint64_t kchashmurmur(const void *data,
                      size_t len);

/**
 * The FNV-1a hash of bytes, with Kyoto Cabinet's factor.
 */
uint64_t kchashfnv(const void *data,
                   size_t len);

/**
 * Allocates memory. Free it with kcfree.
 */
void *kcmalloc(size_t size);

/**
 * Frees what a function of this library has returned. NULL is allowed.
 */
void kcfree(void *memory);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* KCLANGC_H */

#ifdef __cplusplus
extern "C" {
#endif

/** The version of Kyoto Cabinet whose functions these are. */
extern const char *const KCVERSION;
/** What a visitor returns to leave a record as it is. */
extern const char *const KCVISNOP;
/** What a visitor returns to remove a record. */
extern const char *const KCVISREMOVE;

#ifdef __cplusplus
}
#endif
