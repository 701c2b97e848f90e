/* Every operation on records, each by itself; tables; options; upkeep. */
#include "check.h"

static void puts_and_gets(azk_table *table)
{
    char buffer[8] = "........";
    size_t len = 99;
    bool is_there = true;
    void *value = buffer;
    OK(azk_table_put(table, TEXT("ada"), TEXT("1815")));
    CHECK(has(table, "ada", "1815"));
    /* Too small a buffer is told the length, and left as it is. */
    IS(AZK_BUFFER_TOO_SMALL, azk_table_get(table, TEXT("ada"), buffer, 3, &len));
    CHECK(len == 4 && buffer[0] == '.');
    IS(AZK_BUFFER_TOO_SMALL, azk_table_get(table, TEXT("ada"), NULL, 0, &len));
    CHECK(len == 4);
    OK(azk_table_get(table, TEXT("ada"), buffer, 4, &len));
    CHECK(len == 4 && memcmp(buffer, "1815....", 8) == 0);
    IS(AZK_NOT_FOUND, azk_table_get(table, TEXT("bob"), buffer, 8, &len));
    CHECK(len == 0);
    IS(AZK_NOT_FOUND, azk_table_get_alloc(table, TEXT("bob"), &value, &len));
    CHECK(value == NULL && len == 0);
    OK(azk_table_get_alloc(table, TEXT("ada"), &value, &len));
    CHECK(len == 4 && memcmp(value, "1815", 4) == 0);
    azk_free(value);
    OK(azk_table_contains(table, TEXT("bob"), &is_there));
    CHECK(!is_there);
    OK(azk_table_contains(table, TEXT("ada"), &is_there));
    CHECK(is_there);
}

static void empty_keys_and_values(azk_table *table)
{
    size_t len = 99;
    void *value = NULL;
    OK(azk_table_put(table, NULL, 0, NULL, 0));
    OK(azk_table_get(table, NULL, 0, NULL, 0, &len));
    CHECK(len == 0);
    OK(azk_table_get_alloc(table, NULL, 0, &value, &len));
    CHECK(value != NULL && len == 0);
    azk_free(value);
    OK(azk_table_put(table, "a\0b", 3, "c\0d", 3));
    OK(azk_table_get_alloc(table, "a\0b", 3, &value, &len));
    CHECK(len == 3 && memcmp(value, "c\0d", 3) == 0);
    azk_free(value);
    OK(azk_table_remove(table, "a\0b", 3));
    OK(azk_table_remove(table, NULL, 0));
    IS(AZK_NOT_FOUND, azk_table_get(table, NULL, 0, NULL, 0, &len));
}

static void changes(azk_table *table)
{
    bool done = true;
    int64_t sum = 0;
    size_t len = 0;
    void *value = NULL;
    azk_bytes old = bytes("1815"), next = bytes("1816");
    OK(azk_table_add(table, TEXT("ada"), TEXT("no"), &done));
    CHECK(!done && has(table, "ada", "1815"));
    OK(azk_table_add(table, TEXT("eve"), TEXT("yes"), &done));
    CHECK(done && has(table, "eve", "yes"));
    OK(azk_table_replace(table, TEXT("none"), TEXT("no"), &done));
    CHECK(!done && has(table, "none", NULL));
    OK(azk_table_replace(table, TEXT("eve"), TEXT("new"), &done));
    CHECK(done && has(table, "eve", "new"));
    uint64_t left = 1;
    OK(azk_table_put_for(table, TEXT("brief"), TEXT("1"), 3600000));
    OK(azk_table_ttl(table, TEXT("brief"), &left));
    CHECK(left > 3000000 && left <= 3600000);
    OK(azk_table_ttl(table, TEXT("eve"), &left));
    CHECK(left == AZK_FOREVER);
    OK(azk_table_expire(table, TEXT("brief"), 0, &done));
    CHECK(done && has(table, "brief", NULL));
    IS(AZK_NOT_FOUND, azk_table_ttl(table, TEXT("brief"), &left));
    OK(azk_table_expire(table, TEXT("brief"), 1, &done));
    CHECK(!done && left == 0);
    OK(azk_table_usual_ttl(table, &left));
    CHECK(left == AZK_FOREVER);
    OK(azk_table_set_usual_ttl(table, 3600000));
    OK(azk_table_usual_ttl(table, &left));
    CHECK(left == 3600000);
    OK(azk_table_put(table, TEXT("brief"), TEXT("1")));
    OK(azk_table_ttl(table, TEXT("brief"), &left));
    CHECK(left > 3000000 && left <= 3600000);
    OK(azk_table_ttl(table, TEXT("eve"), &left));
    CHECK(left == AZK_FOREVER);
    IS(AZK_INVALID, azk_table_set_usual_ttl(table, 0));
    IS(AZK_INVALID, azk_table_usual_ttl(table, NULL));
    OK(azk_table_set_usual_ttl(table, AZK_FOREVER));
    OK(azk_table_remove(table, TEXT("brief")));
    OK(azk_table_append(table, TEXT("eve"), TEXT("er")));
    CHECK(has(table, "eve", "newer"));
    OK(azk_table_increment(table, TEXT("n"), 40, &sum));
    OK(azk_table_increment(table, TEXT("n"), 2, &sum));
    CHECK(sum == 42);
    IS(AZK_WRONG_TYPE, azk_table_increment(table, TEXT("ada"), 1, &sum));
    OK(azk_table_compare_and_swap(table, TEXT("ada"), &next, &old, &done));
    CHECK(!done && has(table, "ada", "1815"));
    OK(azk_table_compare_and_swap(table, TEXT("ada"), &old, &next, &done));
    CHECK(done && has(table, "ada", "1816"));
    OK(azk_table_compare_and_swap(table, TEXT("new"), NULL, &next, &done));
    CHECK(done && has(table, "new", "1816"));
    OK(azk_table_compare_and_swap(table, TEXT("new"), &next, NULL, &done));
    CHECK(done && has(table, "new", NULL));
    OK(azk_table_take(table, TEXT("ada"), &value, &len));
    CHECK(len == 4 && memcmp(value, "1816", 4) == 0 && has(table, "ada", NULL));
    azk_free(value);
    IS(AZK_NOT_FOUND, azk_table_take(table, TEXT("ada"), &value, &len));
    CHECK(value == NULL);
}

static bool is_number(azk_table *table, const char *key, const void *number)
{
    char found[8];
    size_t len = 0;
    OK(azk_table_get(table, key, strlen(key), found, 8, &len));
    return len == 8 && memcmp(found, number, 8) == 0;
}

static bool is_text(azk_table *table, const char *key, const char *text)
{
    char found[64];
    size_t len = 0;
    OK(azk_table_get(table, key, strlen(key), found, sizeof found, &len));
    return len == strlen(text) && memcmp(found, text, len) == 0;
}

static void merges(azk_table *table)
{
    int64_t five = 5, minus = -7, sum = -2;
    uint64_t bits = 12, all = 13, large = UINT64_MAX;
    double cold = -1.25, warm = 3.5;
    OK(azk_table_clear(table));
    OK(azk_table_merge(table, TEXT("i"), AZK_ADD, &five, 8));
    CHECK(is_number(table, "i", &five));
    OK(azk_table_merge(table, TEXT("i"), AZK_ADD, &minus, 8));
    CHECK(is_number(table, "i", &sum));
    OK(azk_table_merge(table, TEXT("i"), AZK_MAX_I64, &five, 8));
    CHECK(is_number(table, "i", &five));
    OK(azk_table_merge(table, TEXT("i"), AZK_MIN_I64, &minus, 8));
    CHECK(is_number(table, "i", &minus));
    OK(azk_table_merge(table, TEXT("i"), AZK_MIN_U64, &five, 8));
    OK(azk_table_merge(table, TEXT("i"), AZK_OR, &bits, 8));
    CHECK(is_number(table, "i", &all));
    OK(azk_table_merge(table, TEXT("i"), AZK_MAX_U64, &large, 8));
    CHECK(is_number(table, "i", &large));
    OK(azk_table_merge(table, TEXT("f"), AZK_MIN_F64, &warm, 8));
    OK(azk_table_merge(table, TEXT("f"), AZK_MIN_F64, &cold, 8));
    CHECK(is_number(table, "f", &cold));
    OK(azk_table_merge(table, TEXT("f"), AZK_MAX_F64, &warm, 8));
    CHECK(is_number(table, "f", &warm));
    OK(azk_table_merge(table, TEXT("f"), AZK_ADD_F64, &cold, 8));
    warm += cold;
    CHECK(is_number(table, "f", &warm));
    IS(AZK_INVALID, azk_table_merge(table, TEXT("i"), AZK_ADD, &five, 4));
    IS(AZK_INVALID, azk_table_merge(table, TEXT("i"), AZK_ADD, NULL, 8));
    IS(AZK_INVALID, azk_table_merge(table, TEXT("i"), 0, &five, 8));
    IS(AZK_INVALID, azk_table_merge(table, TEXT("i"), 12, &five, 8));
    IS(AZK_INVALID, azk_table_merge(table, TEXT("i"), -1, &five, 8));
    IS(AZK_INVALID, azk_table_merge(table, TEXT("i"), INT32_MIN, &five, 8));
    IS(AZK_INVALID, azk_table_merge(table, TEXT("i"), AZK_APPEND + 256, &five, 8));
    IS(AZK_INVALID, azk_table_merge(table, TEXT("i"), AZK_UNION + 256 * 255, &five, 8));
    IS(AZK_INVALID, azk_table_merge(table, TEXT("s"), AZK_UNION + 256 * 2, TEXT("adabo")));
    OK(azk_table_merge(table, TEXT("l"), AZK_APPEND, TEXT("ada")));
    OK(azk_table_merge(table, TEXT("l"), AZK_APPEND, NULL, 0));
    OK(azk_table_merge(table, TEXT("l"), AZK_APPEND, TEXT("bob")));
    OK(azk_table_merge(table, TEXT("s"), AZK_UNION + 256 * 2, TEXT("bobada")));
    OK(azk_table_merge(table, TEXT("s"), AZK_UNION + 256 * 2, TEXT("evebob")));
    CHECK(is_text(table, "l", "adabob") && is_text(table, "s", "adabobeve"));
    azk_bytes keys[3] = {bytes("i"), bytes("m"), bytes("m")}, operands[3] = {{&large, 8}, {&five, 8}, {&five, 8}};
    OK(azk_table_merge_many(table, keys, AZK_ADD, operands, 3));
    large += UINT64_MAX, five += five;
    CHECK(is_number(table, "i", &large) && is_number(table, "m", &five));
    operands[2].len = 7;
    IS(AZK_INVALID, azk_table_merge_many(table, keys, AZK_ADD, operands, 3));
    IS(AZK_INVALID, azk_table_merge_many(table, keys, AZK_ADD, NULL, 3));
    OK(azk_table_merge_many(table, NULL, AZK_ADD, NULL, 0));
    CHECK(is_number(table, "i", &large) && is_number(table, "m", &five));
    IS(AZK_BAD_HANDLE, azk_table_merge(NULL, TEXT("i"), AZK_ADD, &five, 8));
    CHECK(is_number(table, "i", &large));
}

static void many(azk_table *table, int32_t kind)
{
    azk_bytes keys[4] = {bytes("a"), bytes("b"), bytes("c"), bytes("d")};
    azk_bytes values[3] = {bytes("1"), {NULL, 0}, bytes("333")};
    azk_bytes from = bytes("b"), to = bytes("c");
    azk_bytes *found = NULL;
    uint64_t count = 99;
    OK(azk_table_clear(table));
    OK(azk_table_count(table, &count));
    CHECK(count == 0);
    OK(azk_table_put_many(table, keys, values, 3));
    OK(azk_table_get_many(table, keys, 4, &found));
    CHECK(same(found[0], "1") && same(found[1], "") && found[1].data != NULL && same(found[2], "333"));
    CHECK(found[3].data == NULL && found[3].len == 0);
    azk_free(found);
    OK(azk_table_get_many(table, NULL, 0, &found));
    CHECK(found != NULL);
    azk_free(found);
    if (kind == AZK_ORDERED) {
        OK(azk_table_remove_range(table, &from, &to));
        OK(azk_table_count(table, &count));
        CHECK(count == 2 && has(table, "b", NULL) && has(table, "c", "333"));
        OK(azk_table_remove_range(table, NULL, NULL));
    } else {
        IS(AZK_WRONG_TYPE, azk_table_remove_range(table, &from, &to));
        OK(azk_table_clear(table));
    }
    OK(azk_table_count(table, &count));
    CHECK(count == 0);
}

static void large(azk_table *table)
{
    size_t n = 3u << 20, len = 0;
    char *value = malloc(n), *back = malloc(n);
    CHECK(value != NULL && back != NULL);
    memset(value, 'x', n);
    OK(azk_table_put(table, TEXT("film"), value, n));
    OK(azk_table_get(table, TEXT("film"), back, n, &len));
    CHECK(len == n && memcmp(value, back, n) == 0);
    IS(AZK_TOO_LARGE, azk_table_put(table, value, 65537, NULL, 0));
    SAYS("65537");
    OK(azk_table_put(table, value, 65536, NULL, 0));
    IS(AZK_INVALID, azk_table_put(table, TEXT("k"), value, (size_t)-1));
    free(value);
    free(back);
}

static void tables(azk_db *db, azk_table *ordered)
{
    azk_table *table = NULL;
    azk_table_info *list = NULL;
    azk_kind kind;
    char *name = NULL;
    size_t count = 0;
    OK(azk_table_kind(ordered, &kind));
    CHECK(kind == AZK_ORDERED);
    IS(AZK_TABLE_EXISTS, azk_db_create_table(db, "ordered", AZK_ORDERED, &table));
    IS(AZK_WRONG_TYPE, azk_db_table(db, "ordered", AZK_HASH, &table));
    IS(AZK_INVALID, azk_db_table(db, "third", 3, &table));
    IS(AZK_INVALID, azk_db_table(db, "\xff", AZK_HASH, &table));
    IS(AZK_NO_SUCH_TABLE, azk_db_open_table(db, "third", &table));
    CHECK(table == NULL);
    OK(azk_db_create_table(db, "third", AZK_HASH, &table));
    OK(azk_db_rename_table(db, "third", "fourth"));
    OK(azk_table_name(table, &name));
    CHECK(strcmp(name, "fourth") == 0);
    azk_free(name);
    OK(azk_db_tables(db, &list, &count));
    CHECK(count == 3 && strcmp(list[0].name, "fourth") == 0 && list[0].kind == AZK_HASH);
    CHECK(strcmp(list[2].name, "ordered") == 0 && list[2].kind == AZK_ORDERED && list[2].name_len == 7);
    azk_free(list);
    OK(azk_db_drop_table(db, "fourth"));
    IS(AZK_NO_SUCH_TABLE, azk_table_put(table, TEXT("k"), TEXT("v")));
    OK(azk_table_free(table));
}

static void count_calls(void *calls, uint64_t done, uint64_t total)
{
    CHECK(done <= total);
    ++*(int *)calls;
}

static void upkeep(azk_db *db)
{
    azk_stats stats;
    azk_check_report report;
    struct {
        size_t size;
        uint64_t file_bytes, after;
    } small = {2 * sizeof(uint64_t), 0, 77};
    char *problems = (char *)&report;
    uint64_t before = 0, after = 0;
    int calls = 0;
    OK(azk_db_sync(db));
    OK(azk_db_flush(db));
    OK(azk_db_compact(db));
    OK(azk_db_shrink(db, count_calls, &calls, &before, &after));
    /* One that is small already may find another place for its manifest. */
    CHECK(after > 0 && after <= before + (512u << 10));
    OK(azk_db_shrink(db, NULL, NULL, NULL, NULL));
    report.size = sizeof report;
    OK(azk_db_check(db, count_calls, &calls, &report, &problems));
    CHECK(report.size == sizeof report && report.tables == 2 && report.problems == 0 && problems == NULL && calls > 0);
    OK(azk_db_check(db, NULL, NULL, NULL, NULL));
    stats.size = sizeof stats;
    OK(azk_db_stats(db, &stats));
    CHECK(stats.size == sizeof stats && stats.file_bytes > 0 && stats.file_bytes <= before + (512u << 10) && stats.flushes > 0 && stats.user_bytes > 3u << 20);
    /* A caller with an older header gets what it knows of. */
    OK(azk_db_stats(db, (azk_stats *)(void *)&small));
    CHECK(small.file_bytes == stats.file_bytes && small.after == 77);
    stats.size = 0;
    IS(AZK_INVALID, azk_db_stats(db, &stats));
}

/* One byte of a file, changed and changed back. */
static void flip(const char *path, long offset)
{
    FILE *file = fopen(path, "r+b");
    int byte;
    CHECK(file != NULL && fseek(file, offset, SEEK_SET) == 0);
    byte = fgetc(file);
    CHECK(byte != EOF && fseek(file, offset, SEEK_SET) == 0 && fputc(byte ^ 0x55, file) != EOF && fclose(file) == 0);
}

/* A check of a damaged file says what is wrong, and where. */
static void damage(const char *dir)
{
    enum { N = 3000, PLACES = 12 };
    azk_options *options = NULL;
    azk_db *db = open_new(dir, "damage.azk");
    azk_table *table = table_of(db, "t", AZK_ORDERED);
    azk_check_report report;
    FILE *file;
    long size;
    uint32_t value[16], random = 1;
    char *problems = NULL;
    int i, j, found = 0;
    for (i = 0; i < N; i++) {
        for (j = 0; j < 16; j++)
            value[j] = random = random * 1664525u + 1013904223u;
        OK(azk_table_put(table, &i, sizeof i, value, sizeof value));
    }
    OK(azk_table_free(table));
    OK(azk_db_close(db));
    file = fopen(path_of(dir, "damage.azk"), "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    size = ftell(file);
    CHECK(size > N * (long)sizeof value && fclose(file) == 0);
    OK(azk_options_create(&options));
    OK(azk_options_set_read_only(options, 1));
    for (i = 0; i < PLACES; i++) {
        long offset = size / PLACES * i + 5000;
        flip(path_of(dir, "damage.azk"), offset);
        if (azk_db_open(path_of(dir, "damage.azk"), options, &db) == AZK_OK) {
            report.size = sizeof report;
            if (azk_db_check(db, NULL, NULL, &report, &problems) != AZK_OK) {
                SAYS("file offset");
                CHECK(report.problems > 0 && problems != NULL && strstr(problems, "file offset") != NULL);
                azk_free(problems);
                found++;
            }
            OK(azk_db_close(db));
        }
        flip(path_of(dir, "damage.azk"), offset);
    }
    CHECK(found >= PLACES / 2);
    OK(azk_options_free(options));
}

/* Copies, and a repository of backups, one file of which is damaged in the end. */
static void backups(const char *dir)
{
    char saved[4200], path[4300];
    azk_db *db = open_new(dir, "source.azk"), *again = NULL;
    azk_table *table = table_of(db, "t", AZK_ORDERED);
    azk_backup_report report;
    azk_verify_report verified;
    azk_point *points = NULL, point;
    uint64_t kept = 0, removed = 0;
    size_t count = 7;
    char *problems = NULL;
    azk_status status;

    snprintf(saved, sizeof saved, "%s", path_of(dir, "saved"));
    snprintf(path, sizeof path, "%s", path_of(dir, "restored.azk"));
    report.size = sizeof report;
    verified.size = sizeof verified;
    IS(AZK_OPEN, azk_repository_points(saved, &points, &count));
    CHECK(points == NULL && count == 0);
    OK(azk_table_put(table, TEXT("ada"), TEXT("1815")));
    OK(azk_db_backup(db, saved, NULL, NULL, &report));
    CHECK(report.point == 1 && report.commit > 0 && report.new_bytes == report.bytes);
    OK(azk_table_put(table, TEXT("ada"), TEXT("1816")));
    OK(azk_db_backup(db, saved, NULL, NULL, NULL));
    OK(azk_db_copy(db, path_of(dir, "copied.azk"), NULL, NULL));
    IS(AZK_OPEN, azk_db_copy(db, path_of(dir, "copied.azk"), NULL, NULL));
    OK(azk_db_copy_paced(db, path_of(dir, "paced.azk"), 1 << 20, NULL, NULL));
    IS(AZK_INVALID, azk_db_copy_paced(db, path_of(dir, "too slow.azk"), 4095, NULL, NULL));
    IS(AZK_INVALID, azk_db_backup_paced(db, saved, 1, NULL, NULL, NULL));
    OK(azk_db_backup_paced(db, saved, 1 << 20, NULL, NULL, &report));
    CHECK(report.point == 3 && report.new_bytes <= report.bytes);
    OK(azk_repository_points(saved, &points, &count));
    CHECK(count == 3 && points[0].number == 1 && points[1].commit > points[0].commit && points[1].tables == 1);
    CHECK(points[0].first_commit == points[0].commit && points[0].last_time_ms == points[0].time_ms);
    azk_free(points);
    OK(azk_repository_verify(saved, NULL, NULL, &verified, &problems));
    CHECK(verified.points == 3 && verified.problems == 0 && problems == NULL);

    OK(azk_repository_restore(saved, AZK_POINT, 1, path, NULL, NULL, &point));
    CHECK(point.number == 1 && point.time_ms > 0);
    IS(AZK_OPEN, azk_repository_restore(saved, AZK_NEWEST, 0, path, NULL, NULL, NULL));
    IS(AZK_INVALID, azk_repository_restore(saved, AZK_POINT, 9, path_of(dir, "other.azk"), NULL, NULL, NULL));
    IS(AZK_INVALID, azk_repository_restore(saved, 9, 0, path_of(dir, "other.azk"), NULL, NULL, NULL));
    OK(azk_table_free(table));
    OK(azk_db_open(path, NULL, &again));
    OK(azk_db_open_table(again, "t", &table));
    CHECK(has(table, "ada", "1815"));
    /* It has a lineage of its own. */
    IS(AZK_INVALID, azk_db_backup(again, saved, NULL, NULL, NULL));
    OK(azk_table_free(table));
    OK(azk_db_close(again));

    IS(AZK_INVALID, azk_repository_prune(saved, "some", NULL, NULL, NULL, NULL));
    OK(azk_repository_prune(saved, "1", NULL, NULL, &kept, &removed));
    CHECK(kept == 1 && removed == 2);
    OK(azk_db_close(db));
    snprintf(path, sizeof path, "%s/points/3", saved);
    flip(path, 40);
    status = azk_repository_verify(saved, NULL, NULL, &verified, &problems);
    IS(AZK_CORRUPT, status);
    CHECK(verified.problems > 0 && problems != NULL && strlen(problems) > 10);
    azk_free(problems);
    IS(AZK_CORRUPT, azk_repository_points(saved, &points, &count));
    CHECK(points != NULL && count == 0);
    azk_free(points);
}

static void options(const char *dir)
{
    azk_options *options = NULL;
    azk_db *db = NULL;
    azk_table *table = NULL;
    OK(azk_options_create(&options));
    OK(azk_options_set_memory_bytes(options, 1));
    IS(AZK_INVALID, azk_db_open(path_of(dir, "o.azk"), options, &db));
    CHECK(db == NULL);
    OK(azk_options_set_memory_bytes(options, 32u << 20));
    OK(azk_options_set_memtable_bytes(options, 1u << 20));
    OK(azk_options_set_eventual_delay_ms(options, 50));
    OK(azk_options_set_large_value_bytes(options, 100));
    OK(azk_options_set_background_merges(options, 0));
    OK(azk_options_set_mapped(options, 0));
    OK(azk_options_set_threads(options, 0));
    IS(AZK_INVALID, azk_options_set_durability(options, 7));
    OK(azk_options_set_durability(options, AZK_DURABILITY_SYNC));
    OK(azk_options_set_create(options, 0));
    IS(AZK_OPEN, azk_db_open(path_of(dir, "o.azk"), options, &db));
    OK(azk_options_set_create(options, 1));
    OK(azk_db_open(path_of(dir, "o.azk"), options, &db));
    table = table_of(db, "t", AZK_HASH);
    OK(azk_table_put(table, TEXT("k"), TEXT("v")));
    OK(azk_table_free(table));
    OK(azk_db_close(db));
    OK(azk_options_set_read_only(options, 1));
    OK(azk_db_open(path_of(dir, "o.azk"), options, &db));
    OK(azk_db_open_table(db, "t", &table));
    CHECK(has(table, "k", "v"));
    IS(AZK_READ_ONLY, azk_table_put(table, TEXT("k"), TEXT("v")));
    OK(azk_table_free(table));
    OK(azk_db_close(db));
    OK(azk_options_free(options));
}

/* A second handle reads while the first one writes. */
static void followers(const char *dir)
{
    azk_options *options = NULL;
    azk_db *db = NULL, *log = NULL, *checkpoints = NULL, *locked = NULL;
    azk_table *table = NULL, *seen = NULL, *old = NULL;
    azk_read *snapshot = NULL;
    azk_stats stats;
    azk_pin *pins = NULL;
    char key[16], value[400], room[400];
    size_t len, count = 0;
    int i, round, too_old = 0;
    OK(azk_options_create(&options));
    OK(azk_options_set_pinned_bytes_max(options, 0));
    OK(azk_options_set_pinned_age_max_ms(options, 60000));
    OK(azk_db_open(path_of(dir, "f.azk"), options, &db));
    table = table_of(db, "t", AZK_HASH);
    OK(azk_db_flush(db));
    OK(azk_options_free(options));
    OK(azk_options_create(&options));
    IS(AZK_INVALID, azk_options_set_follow(options, 3));
    OK(azk_options_set_follow(options, AZK_FOLLOW_LOG));
    OK(azk_db_open(path_of(dir, "f.azk"), options, &log));
    OK(azk_options_set_follow(options, AZK_FOLLOW_CHECKPOINTS));
    OK(azk_db_open(path_of(dir, "f.azk"), options, &checkpoints));
    OK(azk_options_set_follow(options, AZK_FOLLOW_NOTHING));
    IS(AZK_LOCKED, azk_db_open(path_of(dir, "f.azk"), options, &locked));
    OK(azk_options_free(options));
    OK(azk_db_open_table(log, "t", &seen));
    OK(azk_db_open_table(checkpoints, "t", &old));
    OK(azk_table_put(table, TEXT("k"), TEXT("v")));
    CHECK(has(seen, "k", "v"));
    IS(AZK_NOT_FOUND, azk_table_get(old, TEXT("k"), room, sizeof room, &len));
    IS(AZK_READ_ONLY, azk_table_put(seen, TEXT("k"), TEXT("w")));
    OK(azk_db_flush(db));
    CHECK(has(old, "k", "v"));
    for (round = 0; round < 4; round++) {
        for (i = 0; i < 2000; i++) {
            snprintf(key, sizeof key, "%d", i);
            memset(value, 'a' + round, sizeof value);
            OK(azk_table_put(table, TEXT(key), value, sizeof value));
        }
        OK(azk_db_compact(db));
        if (round == 0)
            OK(azk_read_begin(checkpoints, &snapshot));
    }
    for (i = 0; i < 2000; i++) {
        azk_status status;
        snprintf(key, sizeof key, "%d", i);
        status = azk_read_get(snapshot, old, TEXT(key), room, sizeof room, &len);
        too_old += status == AZK_SNAPSHOT_TOO_OLD;
        CHECK(status == AZK_SNAPSHOT_TOO_OLD || (status == AZK_OK && len == sizeof room && room[9] == 'a'));
        OK(azk_table_get(old, TEXT(key), room, sizeof room, &len));
        CHECK(len == sizeof room && room[9] == 'd');
    }
    CHECK(too_old > 0 && strcmp(azk_status_name(22), "AZK_SNAPSHOT_TOO_OLD") == 0);
    stats.size = sizeof stats;
    OK(azk_db_stats(db, &stats));
    CHECK(stats.pins == 1 && stats.pinned_bytes == 0 && stats.checkpoint > 4);
    OK(azk_db_pins(db, &pins, &count));
    CHECK(count == 1 && pins[0].checkpoint > 4 && pins[0].age_ns < UINT64_MAX && pins[0].bytes < UINT64_MAX);
    azk_free(pins);
    /* From outside the snapshot's pin is seen, and that it was revoked. */
    OK(azk_db_pins(log, &pins, &count));
    CHECK(count == 2 && pins[0].checkpoint < pins[1].checkpoint);
    CHECK(pins[0].age_ns == UINT64_MAX && pins[0].bytes == 0);
    azk_free(pins);
    IS(AZK_INVALID, azk_db_pins(db, NULL, &count));
    IS(AZK_BAD_HANDLE, azk_db_pins(NULL, &pins, &count));
    CHECK(pins == NULL && count == 0);
    OK(azk_read_end(snapshot));
    OK(azk_table_free(seen));
    OK(azk_table_free(old));
    OK(azk_db_close(log));
    OK(azk_db_close(checkpoints));
    OK(azk_table_free(table));
    OK(azk_db_close(db));
}

int main(int argc, char **argv)
{
    int32_t kinds[2] = {AZK_ORDERED, AZK_HASH};
    const char *names[2] = {"ordered", "hash"};
    azk_table *table[2];
    azk_db *db;
    int i;
    CHECK(argc == 2);
    CHECK(strchr(azk_version(), '.') != NULL);
    CHECK(strcmp(azk_status_name(AZK_NOT_DURABLE), "AZK_NOT_DURABLE") == 0);
    CHECK(strcmp(azk_status_name(12345), "unknown status") == 0);
    db = open_new(argv[1], "records.azk");
    for (i = 0; i < 2; i++) {
        table[i] = table_of(db, names[i], kinds[i]);
        puts_and_gets(table[i]);
        empty_keys_and_values(table[i]);
        changes(table[i]);
        merges(table[i]);
        many(table[i], kinds[i]);
        large(table[i]);
    }
    tables(db, table[0]);
    upkeep(db);
    OK(azk_table_free(table[0]));
    OK(azk_table_free(table[1]));
    OK(azk_db_close(db));
    options(argv[1]);
    followers(argv[1]);
    damage(argv[1]);
    backups(argv[1]);
    return 0;
}
