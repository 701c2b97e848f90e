/* Random calls, compared with an array. This passes with Kyoto Cabinet's own library too, so the array is its
 * model: also of where cursors go. */
#include <kclangc.h>

#include "check.h"

#define KEYS 200
#define CALLS 20000
#define VALUE_MAX 16

/* The records: the length of the value of each key, or -1. A value is a number repeated. */
typedef struct {
    int len[KEYS];
    int byte[KEYS];
} model;

static uint64_t state = 88172645463325252;

static int below(int limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)((state >> 11) % (uint64_t)limit);
}

static char key[8], value[VALUE_MAX];

static void name(int number)
{
    snprintf(key, sizeof key, "key%03d", number);
}

static int next_in(const model *all, int from)
{
    while (from < KEYS && all->len[from] < 0)
        from++;
    return from;
}

static int last_in(const model *all, int from)
{
    while (from >= 0 && all->len[from] < 0)
        from--;
    return from;
}

/* What a visitor is to do, and what it has seen. */
typedef struct {
    int how, len, byte, seen_len, seen_byte;
} order;

static const char *decide(size_t *len, const order *what)
{
    if (what->how == 0)
        return KCVISNOP;
    if (what->how == 1)
        return KCVISREMOVE;
    *len = (size_t)what->len;
    memset(value, what->byte, (size_t)what->len);
    return value;
}

static const char *full(const char *k, size_t k_len, const char *v, size_t v_len, size_t *len, void *opaque)
{
    order *what = opaque;
    (void)k;
    CHECK(k_len == 6);
    what->seen_len = (int)v_len;
    what->seen_byte = v_len > 0 ? v[0] : 0;
    return decide(len, what);
}

static const char *empty(const char *k, size_t k_len, size_t *len, void *opaque)
{
    order *what = opaque;
    (void)k;
    CHECK(k_len == 6);
    what->seen_len = -1;
    return decide(len, what);
}

static void apply(model *all, int number, const order *what)
{
    if (what->how == 1)
        all->len[number] = -1;
    if (what->how >= 2) {
        all->len[number] = what->len;
        all->byte[number] = what->byte;
    }
}

/* The record that a step leads to. Behind a jump or a step back, steps lead back. */
static int beside(const model *all, int at, int back)
{
    at = back ? last_in(all, at - 1) : next_in(all, at + 1);
    return at < 0 ? KEYS : at;
}

/* A step of a random kind at the cursor, which stands at `at`, or at KEYS if it stands nowhere. */
static int at_cursor(KCCUR *cursor, model *all, int at, int *back)
{
    order what = {below(4), below(VALUE_MAX), 'a' + below(26), 0, 0};
    int step = below(2);
    size_t len;
    char *found;

    switch (below(8)) {
    case 0:
        *back = below(2);
        at = *back ? last_in(all, KEYS - 1) : next_in(all, 0);
        at = at < 0 ? KEYS : at;
        CHECK((*back ? kccurjumpback(cursor) : kccurjump(cursor)) == (at < KEYS));
        return at;
    case 1:
        *back = 0;
        at = below(KEYS);
        name(at);
        at = next_in(all, at);
        CHECK(kccurjumpkey(cursor, key, 6) == (at < KEYS));
        return at;
    case 2:
        *back = 1;
        at = below(KEYS);
        name(at);
        at = last_in(all, at);
        CHECK(kccurjumpbackkey(cursor, key, 6) == (at >= 0));
        return at < 0 ? KEYS : at;
    case 3:
        at = next_in(all, at);
        found = kccurgetkey(cursor, &len, step);
        CHECK((found != NULL) == (at < KEYS));
        if (found == NULL)
            return KEYS;
        name(at);
        CHECK(strcmp(found, key) == 0);
        kcfree(found);
        return step ? beside(all, at, *back) : at;
    case 4:
        at = next_in(all, at);
        CHECK(kccuraccept(cursor, full, &what, 1, step) == (at < KEYS));
        if (at == KEYS)
            return KEYS;
        CHECK(what.seen_len == all->len[at] && (what.seen_len == 0 || what.seen_byte == all->byte[at]));
        apply(all, at, &what);
        return step || what.how == 1 ? beside(all, at, *back) : at;
    case 5:
        at = next_in(all, at);
        CHECK(kccurremove(cursor) == (at < KEYS));
        if (at == KEYS)
            return KEYS;
        all->len[at] = -1;
        return beside(all, at, *back);
    default:
        at = next_in(all, at);
        if (at == KEYS)
            return KEYS;
        *back = below(2);
        at = beside(all, at, *back);
        CHECK((*back ? kccurstepback(cursor) : kccurstep(cursor)) == (at < KEYS));
        return at;
    }
}

static void at_key(KCDB *db, model *all, int number)
{
    order what = {below(4), below(VALUE_MAX), 'a' + below(26), 0, 0};
    int was_there = all->len[number] >= 0, done;

    name(number);
    memset(value, what.byte, (size_t)what.len);
    switch (below(5)) {
    case 0:
        CHECK(kcdbset(db, key, 6, value, (size_t)what.len));
        what.how = 2;
        break;
    case 1:
        CHECK(kcdbadd(db, key, 6, value, (size_t)what.len) == !was_there);
        what.how = was_there ? 0 : 2;
        break;
    case 2:
        CHECK(kcdbremove(db, key, 6) == was_there);
        what.how = 1;
        break;
    case 3:
        done = kcdbgetbuf(db, key, 6, value, sizeof value);
        CHECK(done == (was_there ? all->len[number] : -1) && (done <= 0 || value[0] == all->byte[number]));
        what.how = 0;
        break;
    default:
        CHECK(kcdbaccept(db, key, 6, full, empty, &what, 1));
        CHECK(what.seen_len == all->len[number]);
        what.how = !was_there && what.how == 1 ? 0 : what.how;
        break;
    }
    apply(all, number, &what);
}

static void run(const char *path, int ordered)
{
    static model all, before;
    KCDB *db = kcdbnew();
    KCCUR *cursor;
    int call, number, count, in_transaction = 0, at = KEYS, back = 0;

    CHECK(kcdbopen(db, path, KCOWRITER | KCOCREATE));
    for (number = 0; number < KEYS; number++)
        all.len[number] = -1;
    cursor = kcdbcursor(db);
    for (call = 0; call < CALLS; call++) {
        if (ordered && below(3) == 0)
            at = at_cursor(cursor, &all, at, &back);
        else
            at_key(db, &all, below(KEYS));
        if (below(200) != 0)
            continue;
        if (in_transaction) {
            int commit = below(2);
            CHECK(kcdbendtran(db, commit));
            if (!commit)
                all = before;
        } else {
            CHECK(kcdbbegintran(db, below(50) == 0));
            before = all;
        }
        in_transaction = !in_transaction;
        /* Where a cursor stands then is not said. */
        CHECK(kccurjump(cursor) == (next_in(&all, 0) < KEYS));
        at = next_in(&all, 0);
        back = 0;
        for (count = 0, number = 0; number < KEYS; number++)
            count += all.len[number] >= 0;
        CHECK(kcdbcount(db) == count);
    }
    kccurdel(cursor);
    CHECK(kcdbclose(db));
    kcdbdel(db);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    run(path_of(argv[1], "model.kct"), 1);
    run(path_of(argv[1], "model.kch"), 0);
    return 0;
}
