/* Indexes: made, looked up, seen by transactions, listed, dropped; what is wrong. */
#include "check.h"

static azk_value null_value(void)
{
    azk_value value;
    memset(&value, 0, sizeof value);
    value.kind = AZK_VALUE_NULL;
    return value;
}

static azk_value text_value(const char *text)
{
    azk_value value = null_value();
    value.kind = AZK_VALUE_TEXT;
    value.bytes = bytes(text);
    return value;
}

static azk_value i64_value(int64_t number)
{
    azk_value value = null_value();
    value.kind = AZK_VALUE_I64;
    value.i64 = number;
    return value;
}

/* The keys that a lookup gives, between blanks; it is freed. */
static const char *keys_of(azk_lookup *lookup, int back)
{
    static char all[4096];
    azk_bytes key, value;
    size_t len = 0;
    int32_t status;
    for (;;) {
        status = back ? azk_lookup_next_back(lookup, &key, NULL) : azk_lookup_next(lookup, &key, &value);
        if (status == AZK_NOT_FOUND)
            break;
        CHECK(status == AZK_OK && len + key.len + 2 < sizeof all);
        memcpy(all + len, key.data, key.len);
        len += key.len;
        all[len++] = ' ';
    }
    all[len] = 0;
    OK(azk_lookup_free(lookup));
    return all;
}

static void told(void *user_data, uint64_t done, uint64_t total)
{
    CHECK(done <= total);
    *(uint64_t *)user_data = done;
}

static void lookups(azk_table *people)
{
    azk_index *index = NULL, *again = NULL;
    azk_lookup *lookup = NULL;
    azk_value values[2], to;
    azk_bytes key, value;
    uint64_t done = 0, count = 99;
    OK(azk_table_create_index(people, "by_city", "v./city:lower, v./born:i64", told, &done, &index));
    CHECK(done == 4);
    OK(azk_table_put(people, TEXT("kurt"), TEXT("{\"city\": \"Wien\", \"born\": 1906}")));
    values[0] = text_value("WIEN");
    values[1] = i64_value(1900);
    OK(azk_index_get(index, values, 1, &lookup));
    CHECK(strcmp(keys_of(lookup, 0), "erwin kurt ") == 0);
    OK(azk_index_get(index, values, 1, &lookup));
    CHECK(strcmp(keys_of(lookup, 1), "kurt erwin ") == 0);
    OK(azk_index_range(index, values, 2, NULL, 0, &lookup));
    CHECK(strcmp(keys_of(lookup, 0), "kurt ") == 0);
    to = text_value("wien");
    OK(azk_index_range(index, NULL, 0, &to, 1, &lookup));
    CHECK(strcmp(keys_of(lookup, 0), "nobody ada alan ") == 0);
    values[0] = text_value("lo");
    OK(azk_index_prefix(index, values, 1, &lookup));
    OK(azk_lookup_next(lookup, &key, &value));
    CHECK(same(key, "ada") && same(value, "{\"city\": \"London\", \"born\": 1815}"));
    OK(azk_lookup_next_back(lookup, &key, &value));
    CHECK(same(key, "alan"));
    IS(AZK_NOT_FOUND, azk_lookup_next(lookup, &key, &value));
    OK(azk_lookup_free(lookup));
    IS(AZK_BAD_HANDLE, azk_lookup_free(lookup));
    values[0] = null_value();
    OK(azk_index_get(index, values, 1, &lookup));
    CHECK(strcmp(keys_of(lookup, 0), "nobody ") == 0);
    OK(azk_index_count(index, NULL, 0, &count));
    CHECK(count == 5);
    OK(azk_table_index(people, "by_city", &again));
    OK(azk_index_count(again, values, 1, &count));
    CHECK(count == 1);
    OK(azk_index_free(again));
    OK(azk_index_free(index));
    OK(azk_index_free(NULL));
}

static void every_kind(azk_db *db)
{
    azk_table *table = table_of(db, "kinds", AZK_HASH);
    azk_index *index = NULL;
    azk_value values[3];
    uint64_t count = 0;
    double half = 0.5;
    OK(azk_table_put(table, TEXT("k"), TEXT("ab 18446744073709551615 0.5")));
    OK(azk_table_create_index(table, "i", "v.split(' ', 0), v.split(' ', 1):u64, v.split(' ', 2):f64", NULL,
                              NULL, &index));
    values[0] = text_value("ab");
    values[0].kind = AZK_VALUE_BYTES;
    values[1] = null_value();
    values[1].kind = AZK_VALUE_U64;
    values[1].u64 = UINT64_MAX;
    values[2] = null_value();
    values[2].kind = AZK_VALUE_F64;
    values[2].f64 = half;
    OK(azk_index_count(index, values, 3, &count));
    CHECK(count == 1);
    OK(azk_index_free(index));
    OK(azk_table_free(table));
}

static void in_transactions(azk_db *db, azk_table *people)
{
    azk_index *index = NULL;
    azk_lookup *lookup = NULL;
    azk_read *read = NULL;
    azk_write *write = NULL;
    azk_value wien = text_value("wien"), part;
    OK(azk_table_index(people, "by_city", &index));
    OK(azk_read_begin(db, &read));
    OK(azk_write_begin(db, AZK_DURABILITY_DEFAULT, AZK_SERIALIZABLE, &write));
    OK(azk_write_put(write, people, TEXT("max"), TEXT("{\"city\": \"Wien\"}")));
    OK(azk_write_index_get(write, index, &wien, 1, &lookup));
    CHECK(strcmp(keys_of(lookup, 0), "max erwin kurt ") == 0);
    OK(azk_write_index_range(write, index, &wien, 1, NULL, 0, &lookup));
    CHECK(strcmp(keys_of(lookup, 1), "kurt erwin max ") == 0);
    part = text_value("Wi");
    OK(azk_write_index_prefix(write, index, &part, 1, &lookup));
    CHECK(strcmp(keys_of(lookup, 0), "max erwin kurt ") == 0);
    OK(azk_write_commit(write));
    OK(azk_read_index_prefix(read, index, &part, 1, &lookup));
    CHECK(strcmp(keys_of(lookup, 1), "kurt erwin ") == 0);
    IS(AZK_INVALID, azk_read_index_prefix(read, index, NULL, 0, &lookup));
    CHECK(lookup == NULL);
    OK(azk_read_index_get(read, index, &wien, 1, &lookup));
    CHECK(strcmp(keys_of(lookup, 0), "erwin kurt ") == 0);
    OK(azk_read_index_range(read, index, NULL, 0, &wien, 1, &lookup));
    OK(azk_read_end(read));
    CHECK(strcmp(keys_of(lookup, 0), "nobody ada alan ") == 0);
    OK(azk_index_free(index));
}

static void what_is_wrong(azk_table *people)
{
    azk_index *index = NULL;
    azk_index_info *all = NULL;
    azk_lookup *lookup = NULL;
    azk_value values[3];
    size_t count = 0;
    IS(AZK_INVALID, azk_table_create_index(people, "x", "v./a:u63", NULL, NULL, &index));
    SAYS("column 6");
    IS(AZK_NOT_UNIQUE, azk_table_create_index(people, "x", "v./city unique", NULL, NULL, &index));
    IS(AZK_NO_SUCH_INDEX, azk_table_index(people, "x", &index));
    CHECK(index == NULL);
    OK(azk_table_create_index(people, "unique", "v./born:i64 unique where present", NULL, NULL, &index));
    IS(AZK_NOT_UNIQUE, azk_table_put(people, TEXT("twin"), TEXT("{\"born\": 1815}")));
    CHECK(has(people, "twin", NULL));
    OK(azk_table_indexes(people, &all, &count));
    CHECK(count == 2 && strcmp(all[0].name, "by_city") == 0 && all[0].is_ready);
    CHECK(strcmp(all[1].spec, "v./born:i64 unique where present") == 0);
    azk_free(all);
    values[0] = values[1] = values[2] = text_value("x");
    IS(AZK_INVALID, azk_index_get(index, values, 3, &lookup));
    IS(AZK_INVALID, azk_index_get(index, NULL, 1, &lookup));
    values[0].kind = 6;
    IS(AZK_INVALID, azk_index_get(index, values, 1, &lookup));
    SAYS("azk_value_kind");
    values[0] = text_value("\xff");
    IS(AZK_INVALID, azk_index_get(index, values, 1, &lookup));
    CHECK(lookup == NULL);
    IS(AZK_BAD_HANDLE, azk_index_get((azk_index *)people, NULL, 0, &lookup));
    OK(azk_table_drop_index(people, "unique"));
    IS(AZK_NO_SUCH_INDEX, azk_index_get(index, NULL, 0, &lookup));
    IS(AZK_NO_SUCH_INDEX, azk_table_drop_index(people, "unique"));
    OK(azk_table_put(people, TEXT("twin"), TEXT("{\"born\": 1815}")));
    OK(azk_index_free(index));
}

int main(int argc, char **argv)
{
    azk_db *db;
    azk_table *people;
    CHECK(argc == 2);
    db = open_new(argv[1], "indexes.azk");
    people = table_of(db, "people", AZK_ORDERED);
    OK(azk_table_put(people, TEXT("ada"), TEXT("{\"city\": \"London\", \"born\": 1815}")));
    OK(azk_table_put(people, TEXT("alan"), TEXT("{\"city\": \"London\", \"born\": 1912}")));
    OK(azk_table_put(people, TEXT("erwin"), TEXT("{\"city\": \"Wien\", \"born\": 1887}")));
    OK(azk_table_put(people, TEXT("nobody"), TEXT("{}")));
    lookups(people);
    every_kind(db);
    in_transactions(db, people);
    what_is_wrong(people);
    OK(azk_table_free(people));
    OK(azk_db_close(db));
    return 0;
}
