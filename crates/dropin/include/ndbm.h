/*
 * ndbm's functions over Azekura: link with libazekura_dropin. docs/c.md says what is different.
 *
 * A database NAME is the file NAME.pag. NAME.dir is empty: programs lock it, by the descriptor that dbm_dirfno
 * gives them. What is lent stays until the next call with the same database. One thread at a time uses one.
 */
#ifndef AZEKURA_NDBM_H
#define AZEKURA_NDBM_H

#include <fcntl.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A database. */
typedef struct DBM DBM;

/** Bytes of a key or a value. dptr is NULL if there is no such record. */
typedef struct {
    void *dptr;
    size_t dsize;
} datum;

/** dbm_store: a record that is there stays. */
#define DBM_INSERT 0
/** dbm_store: a record that is there is replaced. */
#define DBM_REPLACE 1

/**
 * Opens a database. `flags` and `mode` are as with open(2); O_WRONLY is as O_RDWR. Returns NULL and sets errno on
 * failure: EAGAIN if it is open in this process, EACCES if in another one.
 */
DBM *dbm_open(const char *file, int flags, mode_t mode);

/** Closes a database. NULL is allowed. */
void dbm_close(DBM *db);

/**
 * Writes a record; `how` is DBM_INSERT or DBM_REPLACE. Returns 0, or 1 if DBM_INSERT has met a record, or a
 * negative number on failure.
 */
int dbm_store(DBM *db, datum key, datum content, int how);

/** The value of a record. It is lent until the next call. */
datum dbm_fetch(DBM *db, datum key);

/** Removes a record. Returns 0, or a negative number if there is none, or on failure. */
int dbm_delete(DBM *db, datum key);

/** The first key, in no order. It is lent until the next call. */
datum dbm_firstkey(DBM *db);

/** The next key. It is lent until the next call. Records may be changed and removed meanwhile. */
datum dbm_nextkey(DBM *db);

/** Whether a call has failed since dbm_clearerr, other than for want of a record. */
int dbm_error(DBM *db);

/** Forgets a failure. */
int dbm_clearerr(DBM *db);

/** A descriptor for locking the database among programs that agree on it: of NAME.dir. */
int dbm_dirfno(DBM *db);

/** As dbm_dirfno, for the library has locked NAME.pag itself. */
int dbm_pagfno(DBM *db);

#ifdef __cplusplus
}
#endif

#endif
