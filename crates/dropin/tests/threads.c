/* Several threads at one database: visitors are atomic, and a transaction waits for another's end. */
#define _XOPEN_SOURCE 600

#include <kclangc.h>
#include <pthread.h>
#include <time.h>

#include "check.h"

#define THREADS 4
#define TURNS 2000

static KCDB *db;

static const char *add_one(const char *key, size_t key_len, const char *value, size_t value_len, size_t *len, void *opaque)
{
    unsigned *number = opaque;
    (void)key;
    CHECK(key_len == 7 && value_len == sizeof *number);
    memcpy(number, value, sizeof *number);
    ++*number;
    *len = sizeof *number;
    return (const char *)number;
}

static const char *begin(const char *key, size_t key_len, size_t *len, void *opaque)
{
    (void)key;
    (void)key_len;
    *(unsigned *)opaque = 1;
    *len = sizeof(unsigned);
    return opaque;
}

static void *count_up(void *own)
{
    unsigned number;
    int turn;
    KCCUR *cursor = kcdbcursor(db);
    for (turn = 0; turn < TURNS; turn++) {
        CHECK(kcdbaccept(db, "counter", 7, add_one, begin, &number, 1));
        CHECK(kcdbincrint(db, "number", 6, 1, 0) > 0);
        if (turn % 64 != 0)
            continue;
        /* Two records change together, or not at all. */
        CHECK(kcdbbegintran(db, 0) && kcdbincrint(db, "left", 4, 1, 0) > 0 && kcdbincrint(db, "right", 5, -1, 0) < 0);
        CHECK(kcdbendtran(db, turn % 128 == 0) && kcdbecode(db) == KCESUCCESS);
        CHECK(kccurjump(cursor) && kccurstep(cursor));
    }
    kccurdel(cursor);
    return own;
}

static const char *count(const char *key, size_t key_len, const char *value, size_t value_len, size_t *len, void *opaque)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    (void)key;
    (void)key_len;
    (void)value;
    (void)value_len;
    (void)len;
    pthread_mutex_lock(&lock);
    ++*(int *)opaque;
    pthread_mutex_unlock(&lock);
    return KCVISREMOVE;
}

static volatile int is_set;

static void *set_held(void *own)
{
    CHECK(kcdbset(db, "held", 4, "new", 3));
    is_set = 1;
    return own;
}

/* Gives another thread time to change the record, which it must not do before this returns. */
static const char *hold(const char *key, size_t key_len, size_t *len, void *opaque)
{
    struct timespec pause = {0, 50000000};
    (void)key;
    (void)key_len;
    (void)len;
    CHECK(pthread_create(opaque, NULL, set_held, NULL) == 0);
    nanosleep(&pause, NULL);
    CHECK(!is_set);
    return KCVISNOP;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    unsigned number;
    int i, seen = 0;

    CHECK(argc == 2);
    db = kcdbnew();
    CHECK(kcdbopen(db, path_of(argv[1], "threads.kct"), KCOWRITER | KCOCREATE));
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, count_up, NULL) == 0);
    for (i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    /* What is written while another thread's transaction is under way goes with it, so some may be gone. */
    CHECK(kcdbgetbuf(db, "counter", 7, (char *)&number, sizeof number) == sizeof number && number <= THREADS * TURNS && number >= TURNS / 2);
    CHECK(kcdbincrint(db, "left", 4, 0, 0) == -kcdbincrint(db, "right", 5, 0, 0));
    /* A visitor that only reads holds its record too. */
    CHECK(kcdbaccept(db, "held", 4, NULL, hold, &threads[0], 0) && pthread_join(threads[0], NULL) == 0);
    CHECK(is_set && kcdbremove(db, "held", 4));
    for (i = 0; i < 1000; i++)
        CHECK(kcdbset(db, (const char *)&i, sizeof i, "v", 1));
    CHECK(kcdbscanpara(db, count, &seen, THREADS) && seen == 1004 && kcdbcount(db) == 1004);
    CHECK(kcdbclose(db));
    kcdbdel(db);
    return 0;
}
