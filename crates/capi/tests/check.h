/* What the tests in C share. Each is a program that gets a directory of its own, and ends with 1 where it fails. */
#ifndef CHECK_H
#define CHECK_H

#include "azekura.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            fprintf(stderr, "%s:%d: %s\n  last message: %s\n", __FILE__, __LINE__, #condition,              \
                    azk_error_message());                                                                  \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

/* The call returns this status. */
#define IS(status, call)                                                                                   \
    do {                                                                                                   \
        int32_t got_ = (call);                                                                             \
        if (got_ != (status)) {                                                                            \
            fprintf(stderr, "%s:%d: %s is %s, not %s\n  last message: %s\n", __FILE__, __LINE__, #call,     \
                    azk_status_name(got_), #status, azk_error_message());                                  \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

#define OK(call) IS(AZK_OK, call)

/* The last message has this in it. */
#define SAYS(text) CHECK(strstr(azk_error_message(), (text)) != NULL)

/* A text as pointer and length. */
#define TEXT(text) (text), strlen(text)

static inline azk_bytes bytes(const char *text)
{
    azk_bytes all;
    all.data = text;
    all.len = strlen(text);
    return all;
}

static inline int same(azk_bytes found, const char *text)
{
    return found.len == strlen(text) && memcmp(found.data, text, found.len) == 0;
}

/* The path of a file in the test's directory; it is there until the next call. */
static inline const char *path_of(const char *dir, const char *name)
{
    static char path[4096];
    CHECK((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) < sizeof path);
    return path;
}

/* A database in a new file, with commits that wait for no disk. */
static inline azk_db *open_new(const char *dir, const char *name)
{
    azk_options *options = NULL;
    azk_db *db = NULL;
    OK(azk_options_create(&options));
    OK(azk_options_set_exclusive(options, 1));
    OK(azk_options_set_memory_bytes(options, 16u << 20));
    OK(azk_options_set_durability(options, AZK_DURABILITY_EVENTUAL));
    OK(azk_db_open(path_of(dir, name), options, &db));
    OK(azk_options_free(options));
    return db;
}

static inline azk_table *table_of(azk_db *db, const char *name, int32_t kind)
{
    azk_table *table = NULL;
    OK(azk_db_table(db, name, kind, &table));
    return table;
}

/* The value of a key is this text; NULL: there is none. */
static inline int has(azk_table *table, const char *key, const char *value)
{
    char buffer[256];
    size_t len = 0;
    int32_t status = azk_table_get(table, TEXT(key), buffer, sizeof buffer, &len);
    if (value == NULL)
        return status == AZK_NOT_FOUND;
    return status == AZK_OK && len == strlen(value) && memcmp(buffer, value, len) == 0;
}

#endif
