/* The feed of changes: what is told, cursors, waiting, what is gone. */
#include "check.h"

static void told(azk_feed *feed, int32_t kind, const char *key, const char *value, const char *old)
{
    azk_change change;
    OK(azk_feed_next(feed, &change));
    CHECK(change.kind == kind && same(change.table, "t") && change.time_ms > 1600000000000u);
    CHECK(key == NULL ? change.key.data == NULL : same(change.key, key));
    CHECK(value == NULL ? change.value.data == NULL : change.value.data != NULL && same(change.value, value));
    CHECK(old == NULL ? change.old.data == NULL : change.old.data != NULL && same(change.old, old));
}

int main(int count, char **arguments)
{
    azk_db *db;
    azk_table *table;
    azk_write *write;
    azk_feed *feed, *other;
    azk_feed_info info;
    azk_change change;
    uint64_t commit = 0, begin;
    CHECK(count == 2);
    OK(azk_db_open(path_of(arguments[1], "feed.azk"), NULL, &db));
    OK(azk_db_table(db, "t", AZK_ORDERED, &table));

    IS(AZK_NOT_FOUND, azk_db_feed_info(db, &info));
    IS(AZK_INVALID, azk_db_feed(db, 0, &feed));
    CHECK(feed == NULL);
    SAYS("feeds no table");
    IS(AZK_INVALID, azk_table_set_feed(table, 4));
    OK(azk_table_set_feed(table, AZK_FEED_BOTH));
    IS(AZK_INVALID, azk_db_set_feed_limits(db, 1, 0));
    OK(azk_db_set_feed_limits(db, 1 << 20, 3600 * 1000));
    OK(azk_db_feed_info(db, &info));
    CHECK(info.bytes_max == 1 << 20 && info.age_max_ms == 3600 * 1000 && info.bytes > 0);
    CHECK(info.oldest < info.newest);
    begin = info.newest;

    OK(azk_db_feed(db, info.oldest, &feed));
    OK(azk_feed_next(feed, &change));
    CHECK(change.kind == AZK_CHANGE_BEGIN && change.content == AZK_FEED_BOTH && change.key.data == NULL);
    IS(AZK_NOT_FOUND, azk_feed_next(feed, &change));
    IS(AZK_NOT_FOUND, azk_feed_wait(feed, 1));
    OK(azk_table_put(table, TEXT("a"), TEXT("1")));
    OK(azk_table_put(table, TEXT("a"), TEXT("")));
    OK(azk_table_put(table, TEXT("a"), TEXT("2")));
    OK(azk_table_remove(table, TEXT("a")));
    OK(azk_feed_wait(feed, 60000));
    told(feed, AZK_CHANGE_PUT, "a", "1", NULL);
    told(feed, AZK_CHANGE_PUT, "a", "", "1");
    told(feed, AZK_CHANGE_PUT, "a", "2", "");
    told(feed, AZK_CHANGE_REMOVE, "a", NULL, "2");
    IS(AZK_NOT_FOUND, azk_feed_next(feed, &change));
    OK(azk_feed_position(feed, &commit));
    CHECK(commit > begin);

    IS(AZK_NOT_FOUND, azk_db_feed_cursor(db, "search", &commit));
    OK(azk_db_set_feed_cursor(db, "search", &begin));
    OK(azk_write_begin(db, AZK_DURABILITY_DEFAULT, AZK_SERIALIZABLE, &write));
    OK(azk_write_put(write, table, TEXT("b"), TEXT("3")));
    OK(azk_write_set_feed_cursor(write, "search", &commit));
    OK(azk_write_commit(write));
    OK(azk_db_feed_cursor(db, "search", &begin));
    CHECK(begin == commit);
    told(feed, AZK_CHANGE_PUT, "b", "3", NULL);
    OK(azk_db_set_feed_cursor(db, "search", NULL));
    IS(AZK_NOT_FOUND, azk_db_feed_cursor(db, "search", &commit));
    IS(AZK_INVALID, azk_db_set_feed_cursor(db, "", &commit));

    OK(azk_table_set_feed(table, AZK_FEED_NOTHING));
    told(feed, AZK_CHANGE_STOP, NULL, NULL, NULL);
    IS(AZK_FEED_GAP, azk_db_feed(db, 0, &other));
    IS(AZK_INVALID, azk_db_feed(db, 1000000, &other));
    IS(AZK_BAD_HANDLE, azk_feed_next((azk_feed *)db, &change));
    SAYS("an azk_feed is expected, found an azk_db");
    OK(azk_db_close(db));
    IS(AZK_CLOSED, azk_feed_next(feed, &change));
    OK(azk_feed_free(feed));
    IS(AZK_BAD_HANDLE, azk_feed_free(feed));
    OK(azk_feed_free(NULL));
    OK(azk_table_free(table));
    return 0;
}
