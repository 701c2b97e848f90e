/* A set of shards, which the test has made: its path comes from the standard input. Version 1 has ten thousand
   records, "key N" with the value "N"; version 2 has "new" for "key 7". */
#include "check.h"

int main(void)
{
    char path[4096], text[32], buffer[8];
    azk_shards *shards = NULL, *old = NULL, *none = NULL;
    azk_bytes keys[10001], *values = NULL;
    static char names[10001][16];
    void *value = NULL;
    size_t len = 0, i;
    uint32_t version = 0;
    uint64_t records = 0;
    bool is_newer = true;

    CHECK(fgets(path, sizeof path, stdin) != NULL);
    path[strcspn(path, "\n")] = 0;
    CHECK(azk_shards_open("nothing.azs", 0, &none) == AZK_OPEN && none == NULL);
    CHECK(azk_shards_open(path, 9, &none) == AZK_OPEN && none == NULL);
    OK(azk_shards_open(path, 1, &old));
    OK(azk_shards_open(path, 0, &shards));
    OK(azk_shards_version(shards, &version, &records));
    CHECK(version == 2 && records == 10000);
    OK(azk_shards_version(old, &version, NULL));
    CHECK(version == 1);
    OK(azk_shards_refresh(shards, &is_newer));
    CHECK(!is_newer);

    OK(azk_shards_get(shards, "key 7", 5, buffer, sizeof buffer, &len));
    CHECK(len == 3 && memcmp(buffer, "new", 3) == 0);
    OK(azk_shards_get(old, "key 7", 5, buffer, sizeof buffer, &len));
    CHECK(len == 1 && buffer[0] == '7');
    CHECK(azk_shards_get(old, "key 77", 6, buffer, 1, &len) == AZK_BUFFER_TOO_SMALL && len == 2);
    CHECK(azk_shards_get(old, "key x", 5, buffer, sizeof buffer, &len) == AZK_NOT_FOUND);
    OK(azk_shards_get_alloc(shards, "key 9999", 8, &value, &len));
    CHECK(len == 4 && memcmp(value, "9999", 4) == 0);
    azk_free(value);

    for (i = 0; i < 10001; i++) {
        snprintf(names[i], sizeof names[i], "key %u", (unsigned)i);
        keys[i] = bytes(names[i]);
    }
    OK(azk_shards_get_many(old, keys, 10001, &values));
    for (i = 0; i < 10000; i++) {
        snprintf(text, sizeof text, "%u", (unsigned)i);
        CHECK(values[i].len == strlen(text) && memcmp(values[i].data, text, values[i].len) == 0);
    }
    CHECK(values[10000].data == NULL);
    azk_free(values);

    CHECK(azk_shards_version((azk_shards *)&version, &version, NULL) == AZK_BAD_HANDLE);
    OK(azk_shards_free(old));
    CHECK(azk_shards_free(old) == AZK_BAD_HANDLE);
    OK(azk_shards_free(shards));
    OK(azk_shards_free(NULL));
    return 0;
}
