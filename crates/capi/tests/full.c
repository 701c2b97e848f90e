/* Closing on a full disk: AZK_NOT_DURABLE as often as it is tried, and nothing is closed; with room again nothing that
 * was acknowledged is missing. The disk is one in memory, which only this process sees. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <unistd.h>

enum { VALUE_BYTES = 100, PUTS = 20 * 1000, TRIES = 2000 };

static void make(uint64_t n, unsigned char key[8], unsigned char value[VALUE_BYTES])
{
    uint64_t x = n * 0x9e3779b97f4a7c15u + 1;
    memcpy(key, &x, 8);
    for (int i = 0; i < VALUE_BYTES; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        value[i] = (unsigned char)(x >> 32);
    }
}

static azk_status put(azk_table *table, uint64_t n)
{
    unsigned char key[8], value[VALUE_BYTES];
    make(n, key, value);
    return azk_table_put(table, key, sizeof key, value, sizeof value);
}

/* The table has the first `count` records, and no other. */
static void holds(azk_table *table, uint64_t count)
{
    uint64_t found = 0;
    OK(azk_table_count(table, &found));
    CHECK(found == count);
    for (uint64_t n = 0; n < count; n++) {
        unsigned char key[8], value[VALUE_BYTES], got[VALUE_BYTES];
        size_t len = 0;
        make(n, key, value);
        OK(azk_table_get(table, key, sizeof key, got, sizeof got, &len));
        CHECK(len == sizeof value && memcmp(got, value, len) == 0);
    }
}

static bool write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);
    bool done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return done;
}

/* Puts a disk in memory at a directory, for this process alone. It is large enough that the database takes no room
 * before it needs it. */
static bool mount_own_disk(const char *dir)
{
    char user[64], group[64];
    snprintf(user, sizeof user, "0 %ld 1", (long)geteuid());
    snprintf(group, sizeof group, "0 %ld 1", (long)getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_text("/proc/self/uid_map", user)
        && write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/gid_map", group)
        && mount("tmpfs", dir, "tmpfs", 0, "size=192m") == 0;
}

/* Takes what room there is. */
static void fill(const char *path)
{
    static const char block[65536];
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    CHECK(file >= 0);
    for (size_t size = sizeof block; size > 0;) {
        ssize_t done = write(file, block, size);
        CHECK(done > 0 || (done < 0 && errno == ENOSPC));
        if (done < (ssize_t)size)
            size /= 2;
    }
    close(file);
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    const char *dir = arguments[1];
    if (!mount_own_disk(dir)) {
        printf("closing on a full disk: the system gives this process no disk of its own (%s)\n", strerror(errno));
        return 0;
    }
    azk_options *options = NULL;
    azk_db *db = NULL;
    OK(azk_options_create(&options));
    OK(azk_options_set_memory_bytes(options, 16u << 20));
    OK(azk_options_set_durability(options, AZK_DURABILITY_EVENTUAL));
    OK(azk_options_set_eventual_delay_ms(options, 60 * 1000));
    OK(azk_db_open(path_of(dir, "full.azk"), options, &db));
    OK(azk_options_free(options));
    azk_table *table = table_of(db, "t", AZK_ORDERED);
    /* There is room for all of them until another file takes it. */
    uint64_t next = 0;
    while (next < PUTS)
        OK(put(table, next++));
    fill(path_of(dir, "filler"));
    for (int i = 0; i < 3; i++) {
        IS(AZK_NOT_DURABLE, azk_db_close(db));
        SAYS("commits");
        holds(table, next);
        IS(AZK_NO_SPACE, put(table, next));
    }
    CHECK(unlink(path_of(dir, "filler")) == 0);
    azk_status status;
    for (int i = 0; (status = azk_db_close(db)) == AZK_NOT_DURABLE; i++) {
        CHECK(i < TRIES);
        usleep(10 * 1000);
    }
    IS(AZK_OK, status);
    IS(AZK_CLOSED, put(table, next));
    OK(azk_table_free(table));
    db = NULL;
    OK(azk_db_open(path_of(dir, "full.azk"), NULL, &db));
    table = table_of(db, "t", AZK_ORDERED);
    holds(table, next);
    OK(azk_table_free(table));
    OK(azk_db_close(db));
    return 0;
}
