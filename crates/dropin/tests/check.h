/* What the tests in C share. Each is a program that gets a directory of its own, and ends with 1 where it fails. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : failed_at(__FILE__, __LINE__, #condition))

static inline void failed_at(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, condition);
    exit(1);
}

/* A text as pointer and length. */
#define TEXT(text) (text), strlen(text)

/* A path in the test's directory; it is there until the next call. */
static inline const char *path_of(const char *dir, const char *name)
{
    static char path[4096];
    CHECK((size_t)snprintf(path, sizeof path, "%s/%s", dir, name) < sizeof path);
    return path;
}

#endif
