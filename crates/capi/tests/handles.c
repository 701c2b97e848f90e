/* Handles that are used wrongly, in one thread, in several, and in a forked child. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void nulls(azk_db *db, azk_table *table)
{
    azk_bytes key;
    size_t len = 0;
    IS(AZK_BAD_HANDLE, azk_table_put(NULL, TEXT("k"), TEXT("v")));
    SAYS("azk_table is expected, found NULL");
    IS(AZK_BAD_HANDLE, azk_db_sync(NULL));
    IS(AZK_BAD_HANDLE, azk_db_close(NULL));
    IS(AZK_BAD_HANDLE, azk_read_get_ref(NULL, table, TEXT("k"), &key));
    IS(AZK_BAD_HANDLE, azk_write_commit(NULL));
    IS(AZK_BAD_HANDLE, azk_cursor_next(NULL, &key, NULL));
    OK(azk_db_free(NULL));
    OK(azk_table_free(NULL));
    OK(azk_read_end(NULL));
    OK(azk_write_rollback(NULL));
    OK(azk_cursor_free(NULL));
    OK(azk_options_free(NULL));
    azk_free(NULL);
    IS(AZK_INVALID, azk_table_put(table, NULL, 1, TEXT("v")));
    SAYS("key is NULL, and its length is 1");
    IS(AZK_INVALID, azk_table_put(table, TEXT("k"), "", (size_t)-1));
    IS(AZK_INVALID, azk_table_get(table, TEXT("k"), NULL, 1, &len));
    IS(AZK_INVALID, azk_table_get(table, TEXT("k"), NULL, 0, NULL));
    IS(AZK_INVALID, azk_table_count(table, NULL));
    IS(AZK_INVALID, azk_db_table(db, NULL, AZK_HASH, &table));
    IS(AZK_INVALID, azk_db_open(NULL, NULL, &db));
    IS(AZK_INVALID, azk_db_open("x", NULL, NULL));
    IS(AZK_INVALID, azk_table_put_many(table, NULL, NULL, 1));
}

static void wrong_ones(azk_db *db, azk_table *table)
{
    azk_read *read = NULL;
    azk_cursor *cursor = NULL;
    azk_bytes key;
    long on_the_stack[4] = {0, 1, 2, 3};
    void *on_the_heap = malloc(64);
    OK(azk_read_begin(db, &read));
    IS(AZK_BAD_HANDLE, azk_table_put((azk_table *)(void *)read, TEXT("k"), TEXT("v")));
    SAYS("azk_table is expected, found an azk_read");
    IS(AZK_BAD_HANDLE, azk_table_put((azk_table *)(void *)on_the_stack, TEXT("k"), TEXT("v")));
    SAYS("no handle of this library");
    IS(AZK_BAD_HANDLE, azk_table_put((azk_table *)on_the_heap, TEXT("k"), TEXT("v")));
    IS(AZK_BAD_HANDLE, azk_table_put((azk_table *)((char *)(void *)table + 1), TEXT("k"), TEXT("v")));
    IS(AZK_BAD_HANDLE, azk_table_put((azk_table *)(uintptr_t)UINT64_MAX, TEXT("k"), TEXT("v")));
    OK(azk_read_end(read));
    IS(AZK_BAD_HANDLE, azk_read_end(read));
    SAYS("freed, closed or ended before");
    IS(AZK_BAD_HANDLE, azk_read_get_ref(read, table, TEXT("k"), &key));
    OK(azk_table_cursor(table, NULL, NULL, &cursor));
    OK(azk_cursor_free(cursor));
    IS(AZK_BAD_HANDLE, azk_cursor_free(cursor));
    IS(AZK_BAD_HANDLE, azk_cursor_next(cursor, &key, NULL));
    free(on_the_heap);
}

/* The next handle has the place of the last one, and not its number. */
static void places_used_again(azk_db *db)
{
    azk_read *first = NULL, *read = NULL;
    int i;
    OK(azk_read_begin(db, &first));
    OK(azk_read_end(first));
    for (i = 0; i < 100000; i++) {
        OK(azk_read_begin(db, &read));
        CHECK(read != first);
        OK(azk_read_end(read));
    }
    IS(AZK_BAD_HANDLE, azk_read_end(first));
}

/* Whether files are mapped here, as the library does it. Valgrind, for one, has no room for that: then they are read. */
static int are_mapped(void)
{
    const size_t window = (size_t)64 << 30;
    FILE *file = tmpfile();
    void *mapping;
    CHECK(file != NULL);
    mapping = mmap(NULL, window, PROT_READ, MAP_SHARED, fileno(file), 0);
    CHECK(fclose(file) == 0);
    return mapping != MAP_FAILED && munmap(mapping, window) == 0;
}

static void of_another_database(const char *dir, azk_db *db, azk_table *table)
{
    azk_db *other = open_new(dir, "other.azk");
    azk_read *read = NULL, *none = NULL;
    azk_table *theirs = table_of(other, "t", AZK_ORDERED);
    azk_bytes value;
    OK(azk_read_begin(other, &read));
    IS(AZK_INVALID, azk_read_get_ref(read, table, TEXT("k"), &value));
    SAYS("handles.azk");
    /* What outlives its database says so, and can still be freed. */
    OK(azk_table_put(theirs, TEXT("k"), TEXT("v")));
    OK(azk_read_end(read));
    OK(azk_read_begin(other, &read));
    OK(azk_read_get_ref(read, theirs, TEXT("k"), &value));
    OK(azk_db_close(other));
    IS(AZK_BAD_HANDLE, azk_db_close(other));
    IS(AZK_BAD_HANDLE, azk_read_begin(other, &none));
    CHECK(none == NULL);
    IS(AZK_CLOSED, azk_table_put(theirs, TEXT("k"), TEXT("v")));
    CHECK(same(value, "v"));
    OK(azk_table_free(theirs));
    /* Its value is read in the file, so that the lock goes with it. */
    if (are_mapped())
        IS(AZK_LOCKED, azk_db_open(path_of(dir, "other.azk"), NULL, &other));
    OK(azk_read_end(read));
    OK(azk_db_open(path_of(dir, "other.azk"), NULL, &other));
    IS(AZK_LOCKED, azk_db_open(path_of(dir, "other.azk"), NULL, &db));
    CHECK(db == NULL);
    /* Without a close, the last handle to go closes it. */
    theirs = table_of(other, "t", AZK_ORDERED);
    OK(azk_db_free(other));
    CHECK(has(theirs, "k", "v"));
    OK(azk_table_free(theirs));
    OK(azk_db_open(path_of(dir, "other.azk"), NULL, &other));
    OK(azk_db_close(other));
}

struct shared {
    azk_db *db;
    azk_table *table;
    azk_read *read;
    azk_cursor *cursor;
    int go_on;
};

static int going_on(struct shared *shared)
{
    return __atomic_load_n(&shared->go_on, __ATOMIC_ACQUIRE);
}

static void *reader(void *arg)
{
    struct shared *shared = arg;
    char buffer[8];
    size_t len = 0;
    while (going_on(shared)) {
        azk_table *table = __atomic_load_n(&shared->table, __ATOMIC_ACQUIRE);
        int32_t status = azk_table_get(table, TEXT("k"), buffer, sizeof buffer, &len);
        CHECK(status == AZK_OK || status == AZK_BAD_HANDLE || status == AZK_BUSY);
        CHECK(status != AZK_OK || (len == 1 && buffer[0] == 'v'));
    }
    return NULL;
}

static void *walker(void *arg)
{
    struct shared *shared = arg;
    azk_bytes key, value;
    size_t len = 0;
    char buffer[8];
    while (going_on(shared)) {
        azk_cursor *cursor = __atomic_load_n(&shared->cursor, __ATOMIC_ACQUIRE);
        azk_read *read = __atomic_load_n(&shared->read, __ATOMIC_ACQUIRE);
        azk_table *table = __atomic_load_n(&shared->table, __ATOMIC_ACQUIRE);
        int32_t status = azk_cursor_next(cursor, &key, &value);
        CHECK(status == AZK_OK || status == AZK_BAD_HANDLE || status == AZK_BUSY || status == AZK_NOT_FOUND);
        CHECK(status != AZK_OK || (key.len == 1 && value.len == 1));
        status = azk_read_get(read, table, TEXT("k"), buffer, sizeof buffer, &len);
        CHECK(status == AZK_OK || status == AZK_BAD_HANDLE || status == AZK_BUSY);
    }
    return NULL;
}

/* Handles are freed and made anew while other threads use them: they meet errors, and nothing else. */
static void freed_under_way(azk_db *db)
{
    struct shared shared = {NULL, NULL, NULL, NULL, 1};
    pthread_t threads[2];
    azk_bytes key;
    int i;
    shared.table = table_of(db, "t", AZK_ORDERED);
    OK(azk_table_put(shared.table, TEXT("k"), TEXT("v")));
    OK(azk_read_begin(db, &shared.read));
    OK(azk_table_cursor(shared.table, NULL, NULL, &shared.cursor));
    CHECK(pthread_create(&threads[0], NULL, reader, &shared) == 0);
    CHECK(pthread_create(&threads[1], NULL, walker, &shared) == 0);
    for (i = 0; i < 2000; i++) {
        azk_table *old = shared.table, *table = table_of(db, "t", AZK_ORDERED);
        azk_read *old_read = shared.read, *read = NULL;
        azk_cursor *old_cursor = shared.cursor, *cursor = NULL;
        OK(azk_read_begin(db, &read));
        OK(azk_table_cursor(table, NULL, NULL, &cursor));
        /* A shared handle stays with its old users until they look again. */
        while (azk_table_free(old) == AZK_BUSY)
            ;
        while (azk_read_end(old_read) == AZK_BUSY)
            ;
        while (azk_cursor_free(old_cursor) == AZK_BUSY)
            ;
        IS(AZK_BAD_HANDLE, azk_table_free(old));
        IS(AZK_BAD_HANDLE, azk_cursor_next(old_cursor, &key, NULL));
        __atomic_store_n(&shared.table, table, __ATOMIC_RELEASE);
        __atomic_store_n(&shared.read, read, __ATOMIC_RELEASE);
        __atomic_store_n(&shared.cursor, cursor, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&shared.go_on, 0, __ATOMIC_RELEASE);
    CHECK(pthread_join(threads[0], NULL) == 0);
    CHECK(pthread_join(threads[1], NULL) == 0);
    OK(azk_table_free(shared.table));
    OK(azk_read_end(shared.read));
    OK(azk_cursor_free(shared.cursor));
}

static void *commits(void *write)
{
    OK(azk_write_commit(write));
    CHECK(strcmp(azk_error_message(), "") == 0);
    return NULL;
}

/* A transaction may be handed to another thread. */
static void handed_on(azk_db *db, azk_table *table)
{
    azk_write *write = NULL;
    pthread_t thread;
    OK(azk_write_begin(db, 0, 0, &write));
    OK(azk_write_put(write, table, TEXT("handed"), TEXT("on")));
    CHECK(pthread_create(&thread, NULL, commits, write) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(has(table, "handed", "on"));
    IS(AZK_BAD_HANDLE, azk_write_rollback(write));
}

static int32_t frees(void *table, const void *key, size_t key_len, const void *value, size_t value_len)
{
    (void)key, (void)key_len, (void)value, (void)value_len;
    OK(azk_table_free(table));
    return 0;
}

static void freed_in_a_callback(azk_db *db)
{
    azk_table *table = table_of(db, "single", AZK_HASH);
    OK(azk_table_put(table, TEXT("k"), TEXT("v")));
    OK(azk_table_scan(table, NULL, NULL, frees, table));
    IS(AZK_BAD_HANDLE, azk_table_free(table));
}

static void forked(azk_db *db, azk_table *table)
{
    azk_read *read = NULL;
    azk_cursor *cursor = NULL;
    azk_bytes key;
    int status = 0;
    pid_t child;
    OK(azk_read_begin(db, &read));
    OK(azk_table_cursor(table, NULL, NULL, &cursor));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        IS(AZK_FORKED, azk_table_put(table, TEXT("k"), TEXT("child")));
        IS(AZK_FORKED, azk_cursor_next(cursor, &key, NULL));
        IS(AZK_FORKED, azk_read_get_ref(read, table, TEXT("k"), &key));
        IS(AZK_FORKED, azk_db_close(db));
        OK(azk_cursor_free(cursor));
        OK(azk_read_end(read));
        OK(azk_table_free(table));
        OK(azk_db_free(db));
        /* It exits not: at the exit valgrind looks for what is lost, and what only the parent's other threads know
         * is lost here. */
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    OK(azk_cursor_next(cursor, &key, NULL));
    OK(azk_cursor_free(cursor));
    OK(azk_read_end(read));
    OK(azk_table_put(table, TEXT("k"), TEXT("parent")));
}

int main(int argc, char **argv)
{
    azk_db *db;
    azk_table *table;
    CHECK(argc == 2);
    db = open_new(argv[1], "handles.azk");
    table = table_of(db, "main", AZK_ORDERED);
    nulls(db, table);
    wrong_ones(db, table);
    places_used_again(db);
    of_another_database(argv[1], db, table);
    handed_on(db, table);
    freed_in_a_callback(db);
    freed_under_way(db);
    forked(db, table);
    OK(azk_table_free(table));
    OK(azk_db_close(db));
    return 0;
}
