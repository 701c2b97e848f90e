/* Values that a callback changes, values that a write transaction lends, and which file a message is about. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>

/* What a callback is to do, and what it has seen. */
struct order {
    const char *put;
    int32_t answer;
    int calls, was_there;
    size_t old_len;
    char old[32];
    azk_db *db;
    azk_table *table;
    azk_write *write;
    azk_read *read;
};

static void note(struct order *order, const azk_bytes *value)
{
    order->calls++;
    order->was_there = value->data != NULL;
    order->old_len = value->len;
    CHECK(value->len < sizeof order->old);
    if (value->data != NULL)
        memcpy(order->old, value->data, value->len);
    order->old[value->len] = 0;
}

/* Puts what was ordered; "-" removes, NULL leaves the value as it is. */
static int32_t obey(void *user_data, azk_bytes *value)
{
    struct order *order = user_data;
    note(order, value);
    if (order->put != NULL && strcmp(order->put, "-") == 0) {
        value->data = NULL;
        value->len = 0;
    } else if (order->put != NULL) {
        *value = bytes(order->put);
    }
    return order->answer;
}

static int32_t halve(void *user_data, azk_bytes *value)
{
    note(user_data, value);
    value->len /= 2;
    return 0;
}

static int32_t lie(void *user_data, azk_bytes *value)
{
    note(user_data, value);
    value->data = NULL;
    value->len = 3;
    return 0;
}

static void *commit_another(void *user_data)
{
    struct order *order = user_data;
    OK(azk_table_put(order->table, TEXT("k"), TEXT("theirs")));
    return NULL;
}

/* Another thread's commit comes between, the first time. */
static int32_t interrupted(void *user_data, azk_bytes *value)
{
    struct order *order = user_data;
    pthread_t other;
    note(order, value);
    if (order->calls == 1) {
        CHECK(pthread_create(&other, NULL, commit_another, order) == 0);
        CHECK(pthread_join(other, NULL) == 0);
    }
    *value = bytes("mine");
    return 0;
}

/* Commits a change to the key itself. */
static int32_t meddle(void *user_data, azk_bytes *value)
{
    struct order *order = user_data;
    note(order, value);
    OK(azk_table_put(order->table, TEXT("k"), TEXT("meddled")));
    *value = bytes("mine");
    return 0;
}

/* Uses the transaction that calls it. */
static int32_t enter(void *user_data, azk_bytes *value)
{
    struct order *order = user_data;
    azk_bytes found;
    char buffer[8];
    size_t len = 0;
    note(order, value);
    IS(AZK_BUSY, azk_write_put(order->write, order->table, TEXT("k"), TEXT("v")));
    SAYS("the azk_write is in use by a call under way");
    IS(AZK_BUSY, azk_write_get_ref(order->write, order->table, TEXT("k"), &found));
    IS(AZK_BUSY, azk_write_update(order->write, order->table, TEXT("k"), obey, order));
    IS(AZK_BUSY, azk_write_commit(order->write));
    IS(AZK_BUSY, azk_write_rollback(order->write));
    /* Nor can others of the kind be used, and it is said why. */
    IS(AZK_BUSY, azk_read_get(order->read, order->table, TEXT("k"), buffer, sizeof buffer, &len));
    SAYS("the call around this callback keeps another handle");
    /* Tables can. */
    CHECK(has(order->table, "k", "kept"));
    OK(azk_table_put(order->table, TEXT("beside"), TEXT("1")));
    *value = bytes("entered");
    return 0;
}

static int32_t close_it(void *user_data, azk_bytes *value)
{
    struct order *order = user_data;
    note(order, value);
    OK(azk_db_close(order->db));
    *value = bytes("late");
    return 0;
}

static void of_tables(azk_db *db, azk_table *table)
{
    struct order order = {"new", 0, 0, 0, 0, "", db, table, NULL, NULL};
    uint64_t left = 0;
    OK(azk_table_update(table, TEXT("k"), obey, &order));
    CHECK(order.calls == 1 && !order.was_there && has(table, "k", "new"));
    order.put = "newer";
    OK(azk_table_update(table, TEXT("k"), obey, &order));
    CHECK(order.was_there && strcmp(order.old, "new") == 0 && has(table, "k", "newer"));
    order.answer = 7;
    order.put = "stopped";
    IS(AZK_STOPPED, azk_table_update(table, TEXT("k"), obey, &order));
    order.put = "-";
    IS(AZK_STOPPED, azk_table_update(table, TEXT("k"), obey, &order));
    order.answer = 0;
    order.put = NULL;
    OK(azk_table_update(table, TEXT("k"), obey, &order));
    CHECK(has(table, "k", "newer"));
    OK(azk_table_update(table, TEXT("none"), obey, &order));
    CHECK(!order.was_there && has(table, "none", NULL));
    /* A part of the old value, down to nothing; an empty value is there. */
    OK(azk_table_update(table, TEXT("k"), halve, &order));
    CHECK(has(table, "k", "ne"));
    OK(azk_table_update(table, TEXT("k"), halve, &order));
    OK(azk_table_update(table, TEXT("k"), halve, &order));
    CHECK(has(table, "k", ""));
    order.put = NULL;
    OK(azk_table_update(table, TEXT("k"), obey, &order));
    CHECK(order.was_there && order.old_len == 0);
    order.put = "-";
    OK(azk_table_update(table, TEXT("k"), obey, &order));
    CHECK(has(table, "k", NULL));
    OK(azk_table_update(table, TEXT("k"), obey, &order));
    IS(AZK_INVALID, azk_table_update(table, TEXT("k"), lie, &order));
    SAYS("the new value is NULL, and its length is 3");
    CHECK(has(table, "k", NULL));
    /* The time of a record stays. */
    OK(azk_table_put_for(table, TEXT("short"), TEXT("lived"), 3600 * 1000));
    order.put = "changed";
    OK(azk_table_update(table, TEXT("short"), obey, &order));
    OK(azk_table_ttl(table, TEXT("short"), &left));
    CHECK(has(table, "short", "changed") && left > 3500 * 1000 && left <= 3600 * 1000);
    OK(azk_table_remove(table, TEXT("short")));
}

static void misused(azk_db *db, azk_table *table)
{
    struct order order = {"x", 0, 0, 0, 0, "", db, table, NULL, NULL};
    azk_table *stale = table_of(db, "stale", AZK_HASH);
    azk_write *write = NULL;
    azk_bytes value;
    IS(AZK_INVALID, azk_table_update(table, TEXT("k"), NULL, NULL));
    SAYS("callback is NULL");
    IS(AZK_BAD_HANDLE, azk_table_update(NULL, TEXT("k"), obey, &order));
    IS(AZK_INVALID, azk_table_update(table, NULL, 1, obey, &order));
    OK(azk_table_free(stale));
    IS(AZK_BAD_HANDLE, azk_table_update(stale, TEXT("k"), obey, &order));
    IS(AZK_BAD_HANDLE, azk_write_update(NULL, table, TEXT("k"), obey, &order));
    IS(AZK_BAD_HANDLE, azk_write_get_ref(NULL, table, TEXT("k"), &value));
    OK(azk_write_begin(db, 0, 0, &write));
    IS(AZK_INVALID, azk_write_update(write, table, TEXT("k"), NULL, NULL));
    IS(AZK_BAD_HANDLE, azk_write_update(write, stale, TEXT("k"), obey, &order));
    IS(AZK_INVALID, azk_write_get_ref(write, table, TEXT("k"), NULL));
    IS(AZK_BAD_HANDLE, azk_write_get_ref(write, stale, TEXT("k"), &value));
    CHECK(value.data == NULL && value.len == 0);
    OK(azk_write_rollback(write));
    IS(AZK_BAD_HANDLE, azk_write_update(write, table, TEXT("k"), obey, &order));
    IS(AZK_BAD_HANDLE, azk_write_get_ref(write, table, TEXT("k"), &value));
    CHECK(order.calls == 0);
    /* It would be called for ever. */
    IS(AZK_INVALID, azk_table_update(table, TEXT("k"), meddle, &order));
    CHECK(has(table, "k", "meddled"));
    order.calls = 0;
    OK(azk_table_update(table, TEXT("k"), interrupted, &order));
    CHECK(order.calls == 2 && strcmp(order.old, "theirs") == 0 && has(table, "k", "mine"));
    OK(azk_table_remove(table, TEXT("k")));
}

static void of_transactions(azk_db *db, azk_table *table)
{
    struct order order = {"new", 0, 0, 0, 0, "", db, table, NULL, NULL};
    azk_write *write = NULL;
    azk_bytes value;
    OK(azk_table_put(table, TEXT("k"), TEXT("kept")));
    OK(azk_read_begin(db, &order.read));
    OK(azk_write_begin(db, 0, 0, &write));
    order.write = write;
    OK(azk_write_update(write, table, TEXT("k"), enter, &order));
    CHECK(order.calls == 1 && strcmp(order.old, "kept") == 0);
    OK(azk_write_get_ref(write, table, TEXT("k"), &value));
    CHECK(same(value, "entered") && has(table, "k", "kept"));
    order.answer = 1;
    IS(AZK_STOPPED, azk_write_update(write, table, TEXT("k"), obey, &order));
    IS(AZK_STOPPED, azk_write_update(write, table, TEXT("absent"), obey, &order));
    order.answer = 0;
    IS(AZK_INVALID, azk_write_update(write, table, TEXT("k"), lie, &order));
    OK(azk_write_get_ref(write, table, TEXT("k"), &value));
    CHECK(same(value, "entered"));
    order.put = "-";
    OK(azk_write_update(write, table, TEXT("k"), obey, &order));
    IS(AZK_NOT_FOUND, azk_write_get_ref(write, table, TEXT("k"), &value));
    order.put = "put";
    OK(azk_write_update(write, table, TEXT("k"), obey, &order));
    CHECK(!order.was_there);
    OK(azk_write_commit(write));
    CHECK(has(table, "k", "put") && has(table, "absent", NULL) && has(table, "beside", "1"));
    /* What is read counts: the commit fails if somebody else has changed it. */
    OK(azk_write_begin(db, 0, 0, &write));
    order.put = NULL;
    OK(azk_write_update(write, table, TEXT("k"), obey, &order));
    OK(azk_write_put(write, table, TEXT("beside"), TEXT("2")));
    OK(azk_table_put(table, TEXT("k"), TEXT("theirs")));
    IS(AZK_CONFLICT, azk_write_commit(write));
    OK(azk_read_end(order.read));
    OK(azk_table_clear(table));
}

/* Lent values stay until the transaction is changed, wherever they stand. */
static void lent(azk_db *db, azk_table *table)
{
    static char large[100000], text[32];
    azk_write *write = NULL;
    azk_bytes own, stored, big, value, found[50];
    uint64_t savepoint = 0;
    bool is_there = false;
    int i;
    for (i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "stored %02d", i);
        OK(azk_table_put(table, text + 7, 2, TEXT(text)));
    }
    memset(large, 'x', sizeof large);
    OK(azk_table_put(table, TEXT("large"), large, sizeof large));
    OK(azk_db_flush(db));
    OK(azk_table_put(table, TEXT("late"), TEXT("in memory")));
    OK(azk_write_begin(db, 0, 0, &write));
    OK(azk_write_put(write, table, TEXT("own"), TEXT("mine")));
    OK(azk_write_get_ref(write, table, TEXT("own"), &own));
    OK(azk_write_get_ref(write, table, TEXT("late"), &stored));
    OK(azk_write_get_ref(write, table, TEXT("large"), &big));
    for (i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "stored %02d", i);
        OK(azk_write_get_ref(write, table, text + 7, 2, &found[i]));
    }
    /* Others write meanwhile, and reading calls leave them. */
    OK(azk_table_put(table, TEXT("late"), TEXT("another")));
    OK(azk_table_remove(table, TEXT("large")));
    OK(azk_db_compact(db));
    OK(azk_write_contains(write, table, TEXT("own"), &is_there));
    IS(AZK_NOT_FOUND, azk_write_get_ref(write, table, TEXT("none"), &value));
    CHECK(value.data == NULL && value.len == 0);
    CHECK(is_there && same(own, "mine") && same(stored, "in memory"));
    CHECK(big.len == sizeof large && memcmp(big.data, large, sizeof large) == 0);
    for (i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "stored %02d", i);
        CHECK(same(found[i], text));
    }
    /* Each of these ends the loan, and the transaction goes on. */
    OK(azk_write_put(write, table, TEXT("own"), TEXT("mine too")));
    OK(azk_write_get_ref(write, table, TEXT("own"), &own));
    CHECK(same(own, "mine too"));
    OK(azk_write_savepoint(write, &savepoint));
    OK(azk_write_get_ref(write, table, TEXT("own"), &own));
    OK(azk_write_remove(write, table, TEXT("own")));
    OK(azk_write_get_ref(write, table, TEXT("01"), &value));
    OK(azk_write_rollback_to(write, savepoint));
    OK(azk_write_get_ref(write, table, TEXT("own"), &own));
    CHECK(same(own, "mine too"));
    /* A savepoint of nobody changes nothing, so the loan goes on. */
    IS(AZK_INVALID, azk_write_rollback_to(write, savepoint + 1));
    CHECK(same(own, "mine too"));
    OK(azk_write_rollback(write));
    OK(azk_write_begin(db, 0, AZK_SNAPSHOT, &write));
    OK(azk_write_put(write, table, TEXT("own"), TEXT("kept")));
    OK(azk_write_get_ref(write, table, TEXT("own"), &own));
    OK(azk_write_commit(write));
    CHECK(has(table, "own", "kept"));
    OK(azk_table_clear(table));
}

/* A message says of which file it is. */
static void files(const char *dir, azk_table *table)
{
    azk_db *other = open_new(dir, "other.azk"), *none = NULL;
    azk_table *theirs = table_of(other, "t", AZK_ORDERED), *missing = NULL;
    azk_write *write = NULL;
    azk_cursor *cursor = NULL;
    azk_read *read = NULL;
    azk_bytes key, number = bytes("1");
    int64_t sum = 0;
    IS(AZK_NO_SUCH_TABLE, azk_db_open_table(other, "none", &missing));
    SAYS("other.azk: no table named \"none\"");
    OK(azk_table_put(theirs, TEXT("k"), TEXT("no number")));
    IS(AZK_WRONG_TYPE, azk_table_increment(theirs, TEXT("k"), 1, &sum));
    SAYS("other.azk: wrong type");
    OK(azk_table_put(table, TEXT("k"), TEXT("no number")));
    IS(AZK_WRONG_TYPE, azk_table_increment(table, TEXT("k"), 1, &sum));
    SAYS("updates.azk: wrong type");
    OK(azk_write_begin(other, 0, 0, &write));
    IS(AZK_WRONG_TYPE, azk_write_increment(write, theirs, TEXT("k"), 1, &sum));
    SAYS("other.azk: ");
    OK(azk_read_begin(other, &read));
    OK(azk_table_cursor(theirs, NULL, NULL, &cursor));
    /* What opens names the file that it cannot open, and no other one. */
    IS(AZK_OPEN, azk_db_open(path_of(dir, "none/none.azk"), NULL, &none));
    SAYS("none.azk");
    CHECK(strstr(azk_error_message(), "other.azk") == NULL);
    /* Arguments are of no file. */
    IS(AZK_INVALID, azk_table_put(theirs, NULL, 1, number.data, number.len));
    CHECK(strstr(azk_error_message(), "other.azk") == NULL);
    OK(azk_db_close(other));
    IS(AZK_CLOSED, azk_write_commit(write));
    SAYS("other.azk: the database is closed");
    IS(AZK_CLOSED, azk_cursor_next(cursor, &key, NULL));
    SAYS("other.azk: the database is closed");
    OK(azk_cursor_free(cursor));
    OK(azk_read_end(read));
    OK(azk_table_free(theirs));
    OK(azk_table_clear(table));
}

/* A callback may use the handles of another database; the message is of the one that was called. */
static int32_t look_elsewhere(void *user_data, const void *key, size_t key_len, const void *value, size_t value_len)
{
    struct order *order = user_data;
    (void)key, (void)key_len, (void)value, (void)value_len;
    CHECK(has(order->table, "none", NULL));
    return order->db != NULL && azk_db_close(order->db) != AZK_OK;
}

static void files_of_callbacks(const char *dir, azk_table *table)
{
    azk_db *other = open_new(dir, "third.azk");
    azk_table *theirs = table_of(other, "t", AZK_ORDERED);
    struct order order = {NULL, 0, 0, 0, 0, "", other, table, NULL, NULL};
    OK(azk_table_put(theirs, TEXT("a"), TEXT("1")));
    OK(azk_table_put(theirs, TEXT("b"), TEXT("2")));
    IS(AZK_CLOSED, azk_table_scan(theirs, NULL, NULL, look_elsewhere, &order));
    SAYS("third.azk: the database is closed");
    OK(azk_table_free(theirs));
}

static void closed_within(const char *dir)
{
    struct order order = {NULL, 0, 0, 0, 0, "", NULL, NULL, NULL, NULL};
    azk_db *db = open_new(dir, "closed.azk");
    azk_table *table = table_of(db, "t", AZK_ORDERED);
    order.db = db;
    IS(AZK_CLOSED, azk_table_update(table, TEXT("k"), close_it, &order));
    CHECK(order.calls == 1);
    OK(azk_table_free(table));
}

int main(int argc, char **argv)
{
    azk_table *table, *hash;
    azk_db *db;
    CHECK(argc == 2);
    db = open_new(argv[1], "updates.azk");
    table = table_of(db, "ordered", AZK_ORDERED);
    hash = table_of(db, "hash", AZK_HASH);
    of_tables(db, table);
    of_tables(db, hash);
    misused(db, table);
    of_transactions(db, table);
    of_transactions(db, hash);
    lent(db, table);
    lent(db, hash);
    files(argv[1], table);
    files_of_callbacks(argv[1], table);
    closed_within(argv[1]);
    OK(azk_table_free(hash));
    OK(azk_table_free(table));
    OK(azk_db_close(db));
    return 0;
}
