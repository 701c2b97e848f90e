/* Random operations beside a simple model of what they should do, over several openings. */
#include "check.h"

enum { KEYS = 200, ROUNDS = 6, STEPS = 1500, VALUE_MAX = 1500 };

/* What the table should hold: a value for each number, or none. */
struct model {
    int is_there[KEYS];
    size_t len[KEYS];
    unsigned char value[KEYS][VALUE_MAX];
};

static struct model now, begun, marked;
static uint64_t state = 1;

static unsigned random_below(unsigned end)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % end;
}

/* Keys in the order of their numbers, of several lengths. */
static size_t key_of(unsigned i, char *key)
{
    return (size_t)sprintf(key, "%03u%.*s", i, (int)(i % 40), "........................................");
}

static size_t value_of(unsigned char *value)
{
    size_t len = random_below(8) ? random_below(40) : random_below(VALUE_MAX), i;
    for (i = 0; i < len; i++)
        value[i] = (unsigned char)random_below(256);
    return len;
}

static void set(unsigned i, const unsigned char *value, size_t len)
{
    now.is_there[i] = 1;
    now.len[i] = len;
    memcpy(now.value[i], value, len);
}

/* One change, within a transaction or without. */
static void change(azk_table *table, azk_write *write)
{
    unsigned char value[VALUE_MAX];
    char key[64], end[64];
    unsigned i = random_below(KEYS), what = random_below(10), j;
    size_t key_len = key_of(i, key), len = value_of(value);
    bool done = false;
    azk_bytes from, to;
    if (what < 5) {
        OK(write ? azk_write_put(write, table, key, key_len, value, len)
                 : azk_table_put(table, key, key_len, value, len));
        set(i, value, len);
    } else if (what < 7) {
        OK(write ? azk_write_remove(write, table, key, key_len) : azk_table_remove(table, key, key_len));
        now.is_there[i] = 0;
    } else if (what == 7) {
        OK(write ? azk_write_add(write, table, key, key_len, value, len, &done)
                 : azk_table_add(table, key, key_len, value, len, &done));
        CHECK(done == !now.is_there[i]);
        if (done)
            set(i, value, len);
    } else if (what == 8) {
        OK(write ? azk_write_replace(write, table, key, key_len, value, len, &done)
                 : azk_table_replace(table, key, key_len, value, len, &done));
        CHECK(done == now.is_there[i]);
        if (done)
            set(i, value, len);
    } else {
        unsigned last = i + random_below(10);
        if (last >= KEYS)
            last = KEYS - 1;
        from.data = key;
        from.len = key_len;
        to.data = end;
        to.len = key_of(last, end);
        OK(write ? azk_write_remove_range(write, table, &from, &to) : azk_table_remove_range(table, &from, &to));
        for (j = i; j < last; j++)
            now.is_there[j] = 0;
    }
}

/* A transaction, which is committed or not, and may go back to a savepoint on its way. */
static void transact(azk_db *db, azk_table *table)
{
    azk_write *write = NULL;
    uint64_t savepoint = 0;
    unsigned steps = random_below(20);
    begun = now;
    OK(azk_write_begin(db, AZK_DURABILITY_DEFAULT, (int32_t)random_below(2), &write));
    while (steps-- > 0) {
        unsigned what = random_below(8);
        if (what == 0) {
            OK(azk_write_savepoint(write, &savepoint));
            marked = now;
        } else if (what == 1 && savepoint != 0) {
            OK(azk_write_rollback_to(write, savepoint));
            now = marked;
        } else {
            change(table, write);
        }
    }
    if (random_below(3)) {
        OK(azk_write_commit(write));
    } else {
        OK(azk_write_rollback(write));
        now = begun;
    }
}

/* Everything in the table is in the model and the other way round, walked this way. */
static void compare(azk_table *table, int forward)
{
    azk_cursor *cursor = NULL;
    azk_bytes key, value;
    char expected[64];
    int step;
    OK(azk_table_cursor(table, NULL, NULL, &cursor));
    if (!forward)
        OK(azk_cursor_seek_last(cursor));
    for (step = 0; step < KEYS; step++) {
        int i = forward ? step : KEYS - 1 - step;
        size_t len = key_of((unsigned)i, expected);
        if (!now.is_there[i])
            continue;
        OK(forward ? azk_cursor_next(cursor, &key, &value) : azk_cursor_prev(cursor, &key, &value));
        CHECK(key.len == len && memcmp(key.data, expected, len) == 0);
        CHECK(value.len == now.len[i] && memcmp(value.data, now.value[i], value.len) == 0);
    }
    IS(AZK_NOT_FOUND, forward ? azk_cursor_next(cursor, &key, &value) : azk_cursor_prev(cursor, &key, &value));
    OK(azk_cursor_free(cursor));
}

static void look_up(azk_table *table)
{
    unsigned char value[VALUE_MAX];
    char key[64];
    unsigned i = random_below(KEYS);
    size_t len = 0;
    IS(now.is_there[i] ? AZK_OK : AZK_NOT_FOUND,
       azk_table_get(table, key, key_of(i, key), value, sizeof value, &len));
    CHECK(!now.is_there[i] || (len == now.len[i] && memcmp(value, now.value[i], len) == 0));
}

int main(int argc, char **argv)
{
    azk_options *options = NULL;
    int round, step;
    CHECK(argc == 2);
    OK(azk_options_create(&options));
    OK(azk_options_set_memory_bytes(options, 8u << 20));
    OK(azk_options_set_memtable_bytes(options, 64u << 10));
    OK(azk_options_set_durability(options, AZK_DURABILITY_EVENTUAL));
    for (round = 0; round < ROUNDS; round++) {
        azk_db *db = NULL;
        azk_table *table;
        OK(azk_db_open(path_of(argv[1], "model.azk"), options, &db));
        table = table_of(db, "t", AZK_ORDERED);
        compare(table, 1);
        for (step = 0; step < STEPS; step++) {
            if (random_below(6) == 0)
                transact(db, table);
            else
                change(table, NULL);
            look_up(table);
            if (step % 500 == 250)
                compare(table, (int)random_below(2));
            if (random_below(400) == 0)
                OK(azk_db_flush(db));
        }
        compare(table, 0);
        OK(azk_db_check(db, NULL, NULL, NULL, NULL));
        OK(azk_table_free(table));
        OK(azk_db_close(db));
    }
    OK(azk_options_free(options));
    return 0;
}
