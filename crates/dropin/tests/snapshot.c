/* Dumps a database to a file, or loads it from one: "dump FILE" or "load FILE" on standard input. */
#include <kclangc.h>

#include "check.h"

#define RECORDS 500

/* The record of a number: keys and values of all lengths about where theirs take another byte. */
static void record(int number, char *key, size_t *key_len, char *value, size_t *value_len)
{
    *key_len = (size_t)snprintf(key, 300, "%0*d", 4 + number % 200, number);
    *value_len = (size_t)(number % 3 == 0 ? number * 40 : number % 150);
    memset(value, number % 256, *value_len);
}

int main(void)
{
    static char key[300], value[RECORDS * 40];
    char order[8], path[4000];
    size_t key_len, value_len, len;
    KCDB *db = kcdbnew();
    int i;

    CHECK(scanf("%7s %3999s", order, path) == 2 && kcdbopen(db, "%", KCOWRITER | KCOCREATE));
    if (strcmp(order, "dump") == 0) {
        for (i = 0; i < RECORDS; i++) {
            record(i, key, &key_len, value, &value_len);
            CHECK(kcdbset(db, key, key_len, value, value_len));
        }
        CHECK(kcdbdumpsnap(db, path));
    } else {
        CHECK(kcdbloadsnap(db, path) && kcdbcount(db) == RECORDS);
        for (i = 0; i < RECORDS; i++) {
            char *found;
            record(i, key, &key_len, value, &value_len);
            found = kcdbget(db, key, key_len, &len);
            CHECK(found != NULL && len == value_len && memcmp(found, value, len) == 0);
            kcfree(found);
        }
    }
    CHECK(kcdbclose(db));
    kcdbdel(db);
    return 0;
}
