/* ndbm's functions. */
#define _XOPEN_SOURCE 600

#include <ndbm.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static datum of(const char *text)
{
    datum made;
    made.dptr = (void *)(size_t)text;
    made.dsize = strlen(text);
    return made;
}

static int is(datum found, const char *text)
{
    return found.dptr != NULL && found.dsize == strlen(text) && memcmp(found.dptr, text, found.dsize) == 0;
}

int main(int argc, char **argv)
{
    char name[4200], file[4300], key[16];
    struct stat status;
    datum found, bad = {NULL, 4};
    DBM *db;
    int i, seen = 0;

    CHECK(argc == 2);
    snprintf(name, sizeof name, "%s", path_of(argv[1], "people"));
    errno = 0;
    CHECK(dbm_open(name, O_RDWR, 0600) == NULL && errno == ENOENT);
    umask(022);
    db = dbm_open(name, O_RDWR | O_CREAT | O_EXCL, 0640);
    CHECK(db != NULL);
    snprintf(file, sizeof file, "%s.pag", name);
    CHECK(stat(file, &status) == 0 && (status.st_mode & 0777) == 0640);
    snprintf(file, sizeof file, "%s.dir", name);
    CHECK(stat(file, &status) == 0 && status.st_size == 0);
    errno = 0;
    CHECK(dbm_open(name, O_RDWR, 0600) == NULL && errno == EAGAIN && dbm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600) == NULL);

    CHECK(dbm_store(db, of("ada"), of("1815"), DBM_INSERT) == 0 && dbm_store(db, of("ada"), of("1816"), DBM_INSERT) == 1);
    CHECK(is(dbm_fetch(db, of("ada")), "1815") && dbm_store(db, of("ada"), of("1852"), DBM_REPLACE) == 0 && is(dbm_fetch(db, of("ada")), "1852"));
    CHECK(dbm_fetch(db, of("none")).dptr == NULL && dbm_delete(db, of("none")) < 0 && dbm_error(db) == 0);
    CHECK(dbm_store(db, of("empty"), of(""), DBM_REPLACE) == 0);
    found = dbm_fetch(db, of("empty"));
    CHECK(found.dptr != NULL && found.dsize == 0 && dbm_delete(db, of("empty")) == 0 && dbm_delete(db, of("ada")) == 0);
    CHECK(dbm_firstkey(db).dptr == NULL && dbm_nextkey(db).dptr == NULL);

    for (i = 0; i < 300; i++) {
        snprintf(key, sizeof key, "key %d", i);
        CHECK(dbm_store(db, of(key), of(key + 4), DBM_INSERT) == 0);
    }
    /* Every second record goes while the walk is on it. */
    for (found = dbm_firstkey(db); found.dptr != NULL; found = dbm_nextkey(db), seen++) {
        CHECK(found.dsize < sizeof key);
        memcpy(key, found.dptr, found.dsize);
        key[found.dsize] = '\0';
        if (seen % 2 == 0)
            CHECK(dbm_delete(db, of(key)) == 0);
        else
            CHECK(is(dbm_fetch(db, of(key)), key + 4));
    }
    CHECK(seen == 300 && dbm_error(db) == 0);
    for (seen = 0, found = dbm_firstkey(db); found.dptr != NULL; found = dbm_nextkey(db))
        seen++;
    CHECK(seen == 150);

    CHECK(dbm_dirfno(db) >= 0 && dbm_pagfno(db) >= 0 && lockf(dbm_dirfno(db), F_TLOCK, 0) == 0);
    CHECK(dbm_store(db, bad, of("v"), DBM_REPLACE) < 0 && dbm_error(db) != 0 && dbm_clearerr(db) == 0 && dbm_error(db) == 0);
    CHECK(dbm_store(db, of("k"), of("v"), 7) < 0 && errno == EINVAL);
    CHECK(dbm_store(NULL, of("k"), of("v"), 1) < 0 && dbm_fetch(NULL, of("k")).dptr == NULL && dbm_error(NULL) != 0 && dbm_dirfno(NULL) < 0);
    dbm_close(db);
    dbm_close(NULL);

    db = dbm_open(name, O_RDONLY, 0);
    CHECK(db != NULL && dbm_firstkey(db).dptr != NULL && dbm_store(db, of("k"), of("v"), DBM_REPLACE) < 0 && errno == EACCES && dbm_error(db) != 0);
    dbm_close(db);
    db = dbm_open(name, O_RDWR | O_TRUNC, 0);
    CHECK(db != NULL && dbm_firstkey(db).dptr == NULL);
    dbm_close(db);
    return 0;
}
