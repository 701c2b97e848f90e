/* Read and write transactions, savepoints, conflicts, values by reference, cursors and scans. */
#include "check.h"

static void snapshots(azk_db *db, azk_table *table)
{
    azk_read *read = NULL;
    azk_bytes value, keys[2] = {bytes("a"), bytes("z")}, *found = NULL;
    char buffer[8];
    size_t len = 0;
    bool is_there = false;
    uint64_t count = 0;
    void *copy = NULL;
    OK(azk_table_put(table, TEXT("a"), TEXT("old")));
    OK(azk_read_begin(db, &read));
    OK(azk_table_put(table, TEXT("a"), TEXT("new")));
    OK(azk_table_put(table, TEXT("b"), TEXT("later")));
    OK(azk_read_get(read, table, TEXT("a"), buffer, sizeof buffer, &len));
    CHECK(len == 3 && memcmp(buffer, "old", 3) == 0);
    IS(AZK_BUFFER_TOO_SMALL, azk_read_get(read, table, TEXT("a"), NULL, 0, &len));
    IS(AZK_NOT_FOUND, azk_read_get(read, table, TEXT("b"), buffer, sizeof buffer, &len));
    OK(azk_read_get_alloc(read, table, TEXT("a"), &copy, &len));
    CHECK(len == 3 && memcmp(copy, "old", 3) == 0);
    azk_free(copy);
    OK(azk_read_contains(read, table, TEXT("a"), &is_there));
    CHECK(is_there);
    OK(azk_read_count(read, table, &count));
    CHECK(count == 1);
    OK(azk_read_get_many(read, table, keys, 2, &found));
    CHECK(same(found[0], "old") && found[1].data == NULL);
    azk_free(found);
    OK(azk_read_get_ref(read, table, TEXT("a"), &value));
    CHECK(same(value, "old"));
    OK(azk_table_remove(table, TEXT("a")));
    OK(azk_db_compact(db));
    CHECK(same(value, "old"));
    IS(AZK_NOT_FOUND, azk_read_get_ref(read, table, TEXT("z"), &value));
    CHECK(value.data == NULL && value.len == 0);
    OK(azk_read_release_values(read));
    OK(azk_read_get_ref(read, table, TEXT("a"), &value));
    CHECK(same(value, "old"));
    OK(azk_read_end(read));
    OK(azk_table_clear(table));
}

/* A record as it was given: frees it. */
static int gave(azk_status status, azk_bytes key, azk_bytes value, const char *expected_key, const char *expected_value)
{
    int as_expected;
    if (expected_key == NULL)
        return status == AZK_NOT_FOUND && key.data == NULL && value.data == NULL;
    as_expected = status == AZK_OK && same(key, expected_key) && same(value, expected_value);
    azk_free((void *)(size_t)key.data);
    return as_expected;
}

/* Keeps what is below "m"; counts. */
static int32_t low(void *calls, const void *key, size_t key_len, const void *value, size_t value_len)
{
    (void)value;
    CHECK(key_len > 0 && value_len > 0);
    ++*(int *)calls;
    return *(const char *)key < 'm';
}

/* Ends the walk at the second record. */
static int32_t two(void *calls, const void *key, size_t key_len, const void *value, size_t value_len)
{
    (void)key;
    (void)value;
    CHECK(key_len > 0 && value_len > 0);
    return ++*(int *)calls == 2;
}

/* Both ends of a table, what a callback refuses, and ranges that are removed with their records. */
static void edges(azk_db *db, azk_table *table)
{
    azk_bytes key, value, from = bytes("b"), to = bytes("d");
    azk_read *read = NULL;
    azk_write *write = NULL;
    const char *keys[5] = {"a", "b", "c", "x", "z"};
    int i, calls = 0;
    uint64_t removed = 9;
    bool done = true;
    azk_table_figures figures;
    OK(azk_table_clear(table));
    CHECK(gave(azk_table_first(table, &key, &value), key, value, NULL, NULL));
    CHECK(gave(azk_table_pop_last(table, &key, &value), key, value, NULL, NULL));
    for (i = 0; i < 5; i++)
        OK(azk_table_put(table, TEXT(keys[i]), TEXT("v")));
    OK(azk_read_begin(db, &read));
    CHECK(gave(azk_table_first(table, &key, &value), key, value, "a", "v"));
    CHECK(gave(azk_table_last(table, &key, &value), key, value, "z", "v"));
    CHECK(gave(azk_table_pop_first(table, &key, &value), key, value, "a", "v"));
    CHECK(gave(azk_table_pop_last(table, &key, &value), key, value, "z", "v"));
    CHECK(gave(azk_read_first(read, table, &key, &value), key, value, "a", "v"));
    CHECK(gave(azk_read_last(read, table, &key, &value), key, value, "z", "v"));
    OK(azk_read_end(read));
    IS(AZK_INVALID, azk_table_first(table, NULL, &value));
    OK(azk_write_begin(db, 0, 0, &write));
    OK(azk_write_put(write, table, TEXT("aa"), TEXT("w")));
    CHECK(gave(azk_write_first(write, table, &key, &value), key, value, "aa", "w"));
    CHECK(gave(azk_write_pop_first(write, table, &key, &value), key, value, "aa", "w"));
    CHECK(gave(azk_write_last(write, table, &key, &value), key, value, "x", "v"));
    CHECK(gave(azk_write_pop_last(write, table, &key, &value), key, value, "x", "v"));
    OK(azk_write_remove_existing(write, table, TEXT("x"), &done));
    CHECK(!done);
    IS(AZK_STOPPED, azk_write_drain(write, table, &from, &to, two, &calls));
    CHECK(calls == 2 && gave(azk_write_first(write, table, &key, &value), key, value, NULL, NULL));
    OK(azk_write_rollback(write));
    OK(azk_table_remove_existing(table, TEXT("none"), &done));
    CHECK(!done);
    OK(azk_table_put(table, TEXT("y"), TEXT("v")));
    calls = 0;
    OK(azk_table_retain(table, &to, NULL, low, &calls, &removed));
    CHECK(calls == 2 && removed == 2 && has(table, "b", "v") && has(table, "x", NULL) && has(table, "y", NULL));
    IS(AZK_INVALID, azk_table_retain(table, NULL, NULL, NULL, NULL, NULL));
    IS(AZK_INVALID, azk_table_drain(table, NULL, NULL, NULL, NULL));
    figures.size = sizeof figures;
    OK(azk_table_stats(table, &figures));
    CHECK(figures.memory_bytes > 0);
    figures.size = 0;
    IS(AZK_INVALID, azk_table_stats(table, &figures));
    calls = 0;
    IS(AZK_STOPPED, azk_table_drain(table, NULL, NULL, two, &calls));
    CHECK(calls == 2 && gave(azk_table_first(table, &key, &value), key, value, NULL, NULL));
    OK(azk_table_put(table, TEXT("k"), TEXT("v")));
    OK(azk_table_remove_existing(table, TEXT("k"), &done));
    CHECK(done && has(table, "k", NULL));
}

/* Many references at once, to small values and large ones, of which some are read while others are given out. */
static void references(azk_db *db, azk_table *table)
{
    enum { N = 500, BYTES = 3000 };
    azk_bytes values[N];
    azk_read *read = NULL;
    char *text = malloc(BYTES);
    int i;
    CHECK(text != NULL);
    for (i = 0; i < N; i++) {
        memset(text, 'a' + i % 26, BYTES);
        OK(azk_table_put(table, &i, sizeof i, text, i % 3 ? 10 : BYTES));
        if (i == N / 2)
            OK(azk_db_flush(db));
    }
    OK(azk_read_begin(db, &read));
    for (i = 0; i < N; i++)
        OK(azk_read_get_ref(read, table, &i, sizeof i, &values[i]));
    OK(azk_table_clear(table));
    OK(azk_db_compact(db));
    for (i = 0; i < N; i++) {
        memset(text, 'a' + i % 26, BYTES);
        CHECK(values[i].len == (i % 3 ? 10 : BYTES) && memcmp(values[i].data, text, values[i].len) == 0);
    }
    OK(azk_read_end(read));
    free(text);
}

static void writes(azk_db *db, azk_table *table)
{
    azk_write *write = NULL, *other = NULL;
    azk_bytes keys[2] = {bytes("k1"), bytes("k2")}, values[2] = {bytes("v1"), bytes("v2")}, *found = NULL;
    azk_bytes none = {NULL, 0}, old = bytes("v1");
    char buffer[8];
    size_t len = 0;
    uint64_t first = 0, second = 0, count = 0;
    int64_t sum = 0, one = 1, two = 2;
    uint64_t left = 0;
    bool done = false;
    void *copy = NULL;
    OK(azk_write_begin(db, AZK_DURABILITY_SYNC, AZK_SNAPSHOT, &write));
    OK(azk_write_put_many(write, table, keys, values, 2));
    CHECK(has(table, "k1", NULL));
    OK(azk_write_get(write, table, TEXT("k1"), buffer, sizeof buffer, &len));
    CHECK(len == 2 && memcmp(buffer, "v1", 2) == 0);
    OK(azk_write_savepoint(write, &first));
    OK(azk_write_put(write, table, TEXT("k3"), TEXT("v3")));
    OK(azk_write_savepoint(write, &second));
    OK(azk_write_clear(write, table));
    OK(azk_write_rollback_to(write, second));
    OK(azk_write_contains(write, table, TEXT("k3"), &done));
    CHECK(done);
    OK(azk_write_rollback_to(write, first));
    IS(AZK_INVALID, azk_write_rollback_to(write, second));
    OK(azk_write_begin(db, 0, 0, &other));
    IS(AZK_INVALID, azk_write_rollback_to(other, first));
    OK(azk_write_rollback(other));
    OK(azk_write_add(write, table, TEXT("k1"), TEXT("x"), &done));
    CHECK(!done);
    OK(azk_write_replace(write, table, TEXT("k1"), TEXT("v1"), &done));
    CHECK(done);
    OK(azk_write_append(write, table, TEXT("k2"), TEXT("+")));
    OK(azk_write_set_usual_ttl(write, table, 60000));
    OK(azk_write_put(write, table, TEXT("brief"), TEXT("1")));
    OK(azk_write_ttl(write, table, TEXT("brief"), &left));
    CHECK(left > 50000 && left <= 60000);
    IS(AZK_INVALID, azk_write_set_usual_ttl(write, table, 0));
    OK(azk_write_set_usual_ttl(write, table, AZK_FOREVER));
    OK(azk_write_put_for(write, table, TEXT("brief"), TEXT("1"), 60000));
    OK(azk_write_ttl(write, table, TEXT("brief"), &left));
    CHECK(left > 50000 && left <= 60000);
    OK(azk_write_expire(write, table, TEXT("brief"), AZK_FOREVER, &done));
    OK(azk_write_ttl(write, table, TEXT("brief"), &left));
    CHECK(done && left == AZK_FOREVER);
    OK(azk_write_expire(write, table, TEXT("brief"), 0, &done));
    IS(AZK_NOT_FOUND, azk_write_ttl(write, table, TEXT("brief"), &left));
    IS(AZK_INVALID, azk_write_ttl(write, table, TEXT("brief"), NULL));
    sum = 4;
    OK(azk_write_merge(write, table, TEXT("n"), AZK_ADD, &sum, sizeof sum));
    IS(AZK_WRONG_TYPE, azk_write_merge(write, table, TEXT("k1"), AZK_ADD, &sum, sizeof sum));
    IS(AZK_INVALID, azk_write_merge(write, table, TEXT("n"), AZK_ADD, &sum, 7));
    azk_bytes twice[2] = {bytes("n"), bytes("n")}, numbers[2] = {{&one, 8}, {&two, 8}};
    OK(azk_write_merge_many(write, table, twice, AZK_ADD, numbers, 2));
    numbers[1].len = 7;
    IS(AZK_INVALID, azk_write_merge_many(write, table, twice, AZK_ADD, numbers, 2));
    OK(azk_write_increment(write, table, TEXT("n"), -5, &sum));
    CHECK(sum == 2);
    OK(azk_write_compare_and_swap(write, table, TEXT("k1"), &old, &none, &done));
    CHECK(done);
    OK(azk_write_take(write, table, TEXT("n"), &copy, &len));
    CHECK(len == 8);
    azk_free(copy);
    OK(azk_write_get_alloc(write, table, TEXT("k1"), &copy, &len));
    CHECK(copy != NULL && len == 0);
    azk_free(copy);
    OK(azk_write_get_many(write, table, keys, 2, &found));
    CHECK(same(found[0], "") && found[0].data != NULL && same(found[1], "v2+"));
    azk_free(found);
    OK(azk_write_count(write, table, &count));
    CHECK(count == 2);
    OK(azk_write_remove(write, table, TEXT("k1")));
    OK(azk_write_remove_range(write, table, &keys[0], &keys[1]));
    OK(azk_write_commit(write));
    CHECK(has(table, "k1", NULL) && has(table, "k2", "v2+") && has(table, "k3", NULL));
    OK(azk_write_begin(db, 0, 0, &write));
    OK(azk_write_put(write, table, TEXT("k9"), TEXT("never")));
    OK(azk_write_rollback(write));
    CHECK(has(table, "k9", NULL));
    IS(AZK_INVALID, azk_write_begin(db, 9, 0, &write));
    IS(AZK_INVALID, azk_write_begin(db, 0, 9, &write));
    CHECK(write == NULL);
    OK(azk_table_clear(table));
}

static void conflicts(azk_db *db, azk_table *table)
{
    azk_write *write = NULL;
    bool done = false;
    OK(azk_write_begin(db, 0, AZK_SERIALIZABLE, &write));
    OK(azk_write_contains(write, table, TEXT("seat"), &done));
    OK(azk_table_put(table, TEXT("seat"), TEXT("taken")));
    OK(azk_write_put(write, table, TEXT("seat"), TEXT("mine")));
    IS(AZK_CONFLICT, azk_write_commit(write));
    SAYS("ordered");
    /* It is gone all the same. */
    IS(AZK_BAD_HANDLE, azk_write_rollback(write));
    CHECK(has(table, "seat", "taken"));
    OK(azk_table_clear(table));
}

/* Tables that a transaction makes, renames and drops. */
static void tables(azk_db *db)
{
    azk_write *write = NULL, *other = NULL;
    azk_table *made = NULL, *again = NULL, *old = NULL;
    azk_table_info *list = NULL;
    uint64_t savepoint = 0, count = 0;
    size_t tables = 0;
    char *name = NULL;
    bool done = false;
    OK(azk_db_create_table(db, "old", AZK_ORDERED, &old));
    OK(azk_table_put(old, TEXT("k"), TEXT("v")));
    OK(azk_write_begin(db, AZK_DURABILITY_EVENTUAL, 0, &write));
    OK(azk_write_create_table(write, "made", AZK_HASH, &made));
    OK(azk_write_put(write, made, TEXT("k"), TEXT("v")));
    OK(azk_write_contains(write, made, TEXT("k"), &done));
    CHECK(done);
    /* Nobody else has it. */
    IS(AZK_NO_SUCH_TABLE, azk_table_put(made, TEXT("k"), TEXT("w")));
    SAYS("made");
    IS(AZK_NO_SUCH_TABLE, azk_db_open_table(db, "made", &again));
    OK(azk_table_name(made, &name));
    CHECK(strcmp(name, "") == 0);
    azk_free(name);
    IS(AZK_TABLE_EXISTS, azk_write_create_table(write, "made", AZK_HASH, &again));
    CHECK(again == NULL);
    IS(AZK_WRONG_TYPE, azk_write_table(write, "made", AZK_ORDERED, &again));
    OK(azk_write_table(write, "made", AZK_HASH, &again));
    OK(azk_write_count(write, again, &count));
    CHECK(count == 1);
    OK(azk_table_free(again));
    IS(AZK_INVALID, azk_write_create_table(write, "", AZK_HASH, &again));
    IS(AZK_INVALID, azk_write_create_table(write, "new", 7, &again));
    IS(AZK_INVALID, azk_write_create_table(write, NULL, AZK_HASH, &again));
    IS(AZK_INVALID, azk_write_create_table(write, "new", AZK_HASH, NULL));
    IS(AZK_NO_SUCH_TABLE, azk_write_open_table(write, "new", &again));
    IS(AZK_NO_SUCH_TABLE, azk_write_rename_table(write, "new", "newer"));
    IS(AZK_NO_SUCH_TABLE, azk_write_drop_table(write, "new"));
    IS(AZK_TABLE_EXISTS, azk_write_rename_table(write, "old", "made"));
    OK(azk_write_savepoint(write, &savepoint));
    OK(azk_write_drop_table(write, "old"));
    IS(AZK_NO_SUCH_TABLE, azk_write_contains(write, old, TEXT("k"), &done));
    OK(azk_write_rename_table(write, "made", "old"));
    OK(azk_write_open_table(write, "old", &again));
    OK(azk_table_free(again));
    OK(azk_write_rollback_to(write, savepoint));
    OK(azk_write_contains(write, old, TEXT("k"), &done));
    CHECK(done);
    OK(azk_write_rename_table(write, "old", "older"));
    /* One that is slower. */
    OK(azk_write_begin(db, 0, 0, &other));
    OK(azk_write_create_table(other, "made", AZK_ORDERED, &again));
    OK(azk_write_put(other, again, TEXT("k"), TEXT("w")));
    OK(azk_write_commit(write));
    IS(AZK_CONFLICT, azk_write_commit(other));
    SAYS("made");
    IS(AZK_NO_SUCH_TABLE, azk_table_put(again, TEXT("k"), TEXT("w")));
    OK(azk_table_free(again));
    CHECK(has(made, "k", "v") && has(old, "k", "v"));
    OK(azk_table_name(old, &name));
    CHECK(strcmp(name, "older") == 0);
    azk_free(name);
    OK(azk_db_tables(db, &list, &tables));
    CHECK(tables == 4);
    azk_free(list);
    OK(azk_write_begin(db, 0, 0, &write));
    OK(azk_write_drop_table(write, "made"));
    OK(azk_write_drop_table(write, "older"));
    OK(azk_write_commit(write));
    IS(AZK_NO_SUCH_TABLE, azk_table_put(made, TEXT("k"), TEXT("w")));
    IS(AZK_BAD_HANDLE, azk_write_create_table(write, "late", AZK_HASH, &again));
    OK(azk_table_free(made));
    OK(azk_table_free(old));
}

static void walks(azk_db *db, azk_table *table)
{
    azk_cursor *cursor = NULL;
    azk_read *read = NULL;
    azk_write *write = NULL;
    azk_bytes key, value, from = bytes("b"), to = bytes("d");
    size_t len = 0;
    char *film = calloc(1, 100000);
    CHECK(film != NULL);
    OK(azk_table_put(table, TEXT("a"), TEXT("1")));
    OK(azk_table_put(table, TEXT("b"), TEXT("2")));
    OK(azk_table_put(table, TEXT("ba"), film, 100000));
    OK(azk_table_put(table, TEXT("c"), TEXT("3")));
    OK(azk_table_put(table, TEXT("d"), TEXT("4")));
    OK(azk_table_cursor(table, NULL, NULL, &cursor));
    IS(AZK_NOT_FOUND, azk_cursor_value(cursor, &value));
    IS(AZK_NOT_FOUND, azk_cursor_value_len(cursor, &len));
    IS(AZK_NOT_FOUND, azk_cursor_prev(cursor, &key, &value));
    OK(azk_cursor_next(cursor, &key, &value));
    CHECK(same(key, "a") && same(value, "1"));
    OK(azk_cursor_seek(cursor, TEXT("b0")));
    IS(AZK_NOT_FOUND, azk_cursor_value(cursor, &value));
    OK(azk_cursor_next(cursor, &key, NULL));
    OK(azk_cursor_value_len(cursor, &len));
    CHECK(same(key, "ba") && len == 100000);
    OK(azk_cursor_value(cursor, &value));
    CHECK(value.len == 100000 && memcmp(value.data, film, 100000) == 0 && same(key, "ba"));
    OK(azk_cursor_value(cursor, &value));
    CHECK(value.len == 100000);
    OK(azk_cursor_value_len(cursor, &len));
    CHECK(len == 100000);
    OK(azk_cursor_seek_last(cursor));
    OK(azk_cursor_prev(cursor, &key, &value));
    CHECK(same(key, "d") && same(value, "4"));
    /* It stands between records. */
    OK(azk_cursor_next(cursor, &key, &value));
    CHECK(same(key, "d") && same(value, "4"));
    IS(AZK_NOT_FOUND, azk_cursor_next(cursor, &key, &value));
    IS(AZK_NOT_FOUND, azk_cursor_next(cursor, &key, &value));
    OK(azk_cursor_seek_first(cursor));
    OK(azk_cursor_next(cursor, &key, NULL));
    CHECK(same(key, "a"));
    OK(azk_cursor_free(cursor));
    OK(azk_read_begin(db, &read));
    OK(azk_write_begin(db, 0, 0, &write));
    OK(azk_write_remove(write, table, TEXT("ba")));
    OK(azk_write_cursor(write, table, &from, &to, &cursor));
    OK(azk_write_commit(write));
    OK(azk_cursor_next(cursor, &key, &value));
    CHECK(same(key, "b"));
    OK(azk_cursor_next(cursor, &key, &value));
    CHECK(same(key, "c"));
    IS(AZK_NOT_FOUND, azk_cursor_next(cursor, &key, &value));
    OK(azk_cursor_free(cursor));
    OK(azk_read_prefix_cursor(read, table, TEXT("b"), &cursor));
    OK(azk_read_end(read));
    OK(azk_cursor_next(cursor, &key, &value));
    OK(azk_cursor_next(cursor, &key, &value));
    CHECK(same(key, "ba"));
    IS(AZK_NOT_FOUND, azk_cursor_next(cursor, &key, &value));
    OK(azk_cursor_free(cursor));
    free(film);
}

struct seen {
    azk_table *table;
    int count, end_at;
};

static int32_t see(void *user_data, const void *key, size_t key_len, const void *value, size_t value_len)
{
    struct seen *seen = user_data;
    size_t len = 0;
    (void)value;
    /* The same table may be used. */
    IS(value_len ? AZK_BUFFER_TOO_SMALL : AZK_OK, azk_table_get(seen->table, key, key_len, NULL, 0, &len));
    CHECK(len == value_len);
    return ++seen->count == seen->end_at;
}

static void scans(azk_table *table, azk_table *hash)
{
    struct seen seen = {NULL, 0, 0};
    azk_bytes from = bytes("b");
    azk_cursor *cursor = NULL;
    seen.table = table;
    OK(azk_table_scan(table, NULL, NULL, see, &seen));
    CHECK(seen.count == 4);
    seen.end_at = 6;
    IS(AZK_STOPPED, azk_table_scan(table, &from, NULL, see, &seen));
    CHECK(seen.count == 6);
    IS(AZK_INVALID, azk_table_scan(table, NULL, NULL, NULL, NULL));
    IS(AZK_WRONG_TYPE, azk_table_scan(hash, &from, NULL, see, &seen));
    IS(AZK_WRONG_TYPE, azk_table_prefix_cursor(hash, TEXT("a"), &cursor));
    CHECK(cursor == NULL);
    OK(azk_table_put(hash, TEXT("one"), TEXT("1")));
    seen.table = hash;
    seen.count = seen.end_at = 0;
    OK(azk_table_scan(hash, NULL, NULL, see, &seen));
    CHECK(seen.count == 1);
    OK(azk_table_cursor(hash, NULL, NULL, &cursor));
    IS(AZK_WRONG_TYPE, azk_cursor_seek(cursor, TEXT("a")));
    OK(azk_cursor_free(cursor));
}

/* Frees the cursor that it is called for. */
static int32_t free_cursor(void *user_data, const void *key, size_t key_len, const void *value, size_t value_len)
{
    (void)key, (void)key_len, (void)value, (void)value_len;
    OK(azk_cursor_free(user_data));
    return 0;
}

/* Uses the transaction that it is called for. */
static int32_t roll_back(void *user_data, const void *key, size_t key_len, const void *value, size_t value_len)
{
    (void)key, (void)key_len, (void)value, (void)value_len;
    IS(AZK_BUSY, azk_write_rollback(user_data));
    return 0;
}

/* Refuses every record, and counts. */
static int32_t refuse(void *user_data, const void *key, size_t key_len, const void *value, size_t value_len)
{
    (void)key, (void)key_len, (void)value, (void)value_len;
    ++*(int *)user_data;
    return 0;
}

/* Snapshots and transactions are walked by their cursors, and a transaction keeps what a callback lets it. */
static void scans_of_transactions(azk_db *db, azk_table *table)
{
    struct seen seen = {NULL, 0, 0};
    azk_bytes from = bytes("y"), to = bytes("z");
    azk_cursor *cursor = NULL;
    azk_read *read;
    azk_write *write;
    uint64_t count = 7;
    int refused = 0;
    seen.table = table;
    OK(azk_table_put(table, TEXT("y1"), TEXT("one")));
    OK(azk_table_put(table, TEXT("y2"), TEXT("")));
    OK(azk_read_begin(db, &read));
    OK(azk_write_begin(db, AZK_DURABILITY_EVENTUAL, AZK_SERIALIZABLE, &write));
    OK(azk_write_put(write, table, TEXT("y3"), TEXT("new")));
    OK(azk_read_cursor(read, table, &from, &to, &cursor));
    OK(azk_cursor_scan(cursor, see, &seen));
    CHECK(seen.count == 2);
    OK(azk_cursor_scan(cursor, see, &seen));
    CHECK(seen.count == 2);
    OK(azk_cursor_seek_first(cursor));
    seen.end_at = 3;
    IS(AZK_STOPPED, azk_cursor_scan(cursor, see, &seen));
    seen.end_at = 0;
    OK(azk_cursor_scan(cursor, see, &seen));
    CHECK(seen.count == 4);
    IS(AZK_INVALID, azk_cursor_scan(cursor, NULL, NULL));
    OK(azk_cursor_seek_first(cursor));
    IS(AZK_BAD_HANDLE, azk_cursor_scan(cursor, free_cursor, cursor));
    IS(AZK_BAD_HANDLE, azk_cursor_scan(cursor, see, &seen));
    OK(azk_read_end(read));

    OK(azk_write_prefix_cursor(write, table, TEXT("y"), &cursor));
    OK(azk_cursor_scan(cursor, refuse, &refused));
    CHECK(refused == 3);
    OK(azk_cursor_free(cursor));
    IS(AZK_INVALID, azk_write_retain(write, table, NULL, NULL, NULL, NULL, NULL));
    OK(azk_write_retain(write, table, &from, &to, refuse, &refused, &count));
    CHECK(count == 3 && refused == 6);
    OK(azk_write_retain(write, table, &from, &to, refuse, &refused, NULL));
    CHECK(refused == 6);
    OK(azk_write_put(write, table, TEXT("y4"), TEXT("")));
    OK(azk_write_retain(write, table, &from, &to, roll_back, write, &count));
    CHECK(count == 1);
    OK(azk_write_rollback(write));
    refused = 0;
    OK(azk_table_cursor(table, &from, &to, &cursor));
    OK(azk_cursor_scan(cursor, refuse, &refused));
    CHECK(refused == 2);
    OK(azk_cursor_free(cursor));
    OK(azk_table_remove(table, TEXT("y1")));
    OK(azk_table_remove(table, TEXT("y2")));
}

int main(int argc, char **argv)
{
    azk_table *table, *hash;
    azk_db *db;
    CHECK(argc == 2);
    db = open_new(argv[1], "transactions.azk");
    table = table_of(db, "ordered", AZK_ORDERED);
    hash = table_of(db, "hash", AZK_HASH);
    snapshots(db, table);
    snapshots(db, hash);
    references(db, table);
    references(db, hash);
    writes(db, table);
    conflicts(db, table);
    tables(db);
    walks(db, table);
    scans(table, hash);
    scans_of_transactions(db, table);
    edges(db, table);
    OK(azk_table_free(hash));
    OK(azk_table_free(table));
    OK(azk_db_close(db));
    return 0;
}
