/* What programs for Kyoto Cabinet rely on. This passes with Kyoto Cabinet's own library too. */
#include <kclangc.h>

#include "check.h"

static KCDB *db;

/* The call fails with this code. */
#define FAILS(code, failed, call)                                                                          \
    do {                                                                                                   \
        CHECK((call) == (failed));                                                                         \
        if (kcdbecode(db) != (code)) {                                                                     \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, kcdbemsg(db));                   \
            exit(1);                                                                                       \
        }                                                                                                  \
    } while (0)

/* A record has this value; NULL: it is not there. */
static int has(const char *key, const char *value)
{
    size_t len;
    int same;
    char *found = kcdbget(db, TEXT(key), &len);
    if (found == NULL || value == NULL)
        return found == NULL && value == NULL;
    same = len == strlen(value) && strcmp(found, value) == 0;
    kcfree(found);
    return same;
}

static int stands_at(KCCUR *cursor, const char *key)
{
    size_t len;
    int same;
    char *found = kccurgetkey(cursor, &len, 0);
    if (found == NULL || key == NULL)
        return found == NULL && key == NULL;
    same = len == strlen(key) && strcmp(found, key) == 0;
    kcfree(found);
    return same;
}

static void single(void)
{
    size_t len;
    char buffer[4] = "...";
    char *taken;

    CHECK(kcdbset(db, TEXT("a"), TEXT("1")));
    FAILS(KCEDUPREC, 0, kcdbadd(db, TEXT("a"), TEXT("2")));
    CHECK(kcdbadd(db, TEXT("b"), TEXT("2")) && has("b", "2") && has("a", "1"));
    FAILS(KCENOREC, 0, kcdbreplace(db, TEXT("c"), TEXT("3")));
    CHECK(kcdbreplace(db, TEXT("b"), TEXT("two")) && has("b", "two"));
    CHECK(kcdbappend(db, TEXT("b"), TEXT("+")) && kcdbappend(db, TEXT("c"), TEXT("+")) && has("b", "two+") && has("c", "+"));
    FAILS(KCENOREC, 0, kcdbremove(db, TEXT("none")));
    CHECK(kcdbremove(db, TEXT("c")) && has("c", NULL) && kcdbecode(db) == KCENOREC);
    CHECK(kcdbcheck(db, TEXT("b")) == 4);
    FAILS(KCENOREC, -1, kcdbcheck(db, TEXT("none")));
    CHECK(kcdbgetbuf(db, TEXT("b"), buffer, 2) == 4 && strcmp(buffer, "tw.") == 0);
    taken = kcdbseize(db, TEXT("b"), &len);
    CHECK(taken != NULL && len == 4 && strcmp(taken, "two+") == 0 && has("b", NULL));
    kcfree(taken);
    CHECK(kcdbset(db, "", 0, "", 0) && kcdbcheck(db, "", 0) == 0 && kcdbremove(db, "", 0));

    FAILS(KCELOGIC, 0, kcdbcas(db, TEXT("a"), TEXT("2"), TEXT("3")));
    FAILS(KCELOGIC, 0, kcdbcas(db, TEXT("a"), NULL, 0, TEXT("3")));
    CHECK(kcdbcas(db, TEXT("a"), TEXT("1"), TEXT("3")) && has("a", "3"));
    CHECK(kcdbcas(db, TEXT("n"), NULL, 0, TEXT("new")) && has("n", "new"));
    CHECK(kcdbcas(db, TEXT("n"), TEXT("new"), NULL, 0) && has("n", NULL) && kcdbcas(db, TEXT("n"), NULL, 0, NULL, 0));
    CHECK(kcdbremove(db, TEXT("a")) && kcdbcount(db) == 0);
}

static void numbers(void)
{
    size_t len;
    char *bytes;
    static const unsigned char fixed[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                            0xff, 0xff, 0x1c, 0xa0, 0x56, 0xce, 0x60, 0x00};

    FAILS(KCELOGIC, INT64_MIN, kcdbincrint(db, TEXT("i"), 5, INT64_MIN));
    CHECK(kcdbincrint(db, TEXT("i"), 5, 7) == 12 && kcdbincrint(db, TEXT("i"), -2, 0) == 10);
    CHECK(kcdbincrint(db, TEXT("i"), 5, INT64_MAX) == 5 && kcdbcheck(db, TEXT("i")) == 8);
    bytes = kcdbget(db, TEXT("i"), &len);
    CHECK(bytes != NULL && len == 8 && bytes[7] == 5 && bytes[0] == 0);
    kcfree(bytes);
    CHECK(kcdbset(db, TEXT("t"), TEXT("text")));
    FAILS(KCELOGIC, INT64_MIN, kcdbincrint(db, TEXT("t"), 1, 0));
    CHECK(kcchknan(kcdbincrdouble(db, TEXT("t"), 1, 0)) && has("t", "text"));
    CHECK(kcchknan(kcdbincrdouble(db, TEXT("f"), 1, -kcinf())) && kcdbecode(db) == KCELOGIC);
    CHECK(kcdbincrdouble(db, TEXT("f"), 5.25, 0.5) == 5.75 && kcdbincrdouble(db, TEXT("f"), -7, 0) == -1.25);
    CHECK(kcdbincrdouble(db, TEXT("f"), -1.25, kcinf()) == -1.25);
    bytes = kcdbget(db, TEXT("f"), &len);
    CHECK(bytes != NULL && len == 16 && memcmp(bytes, fixed, 16) == 0);
    kcfree(bytes);
    CHECK(kcdbclear(db) && kcdbcount(db) == 0);
}

static void bulk(void)
{
    KCREC in[3] = {{{(char *)"x", 1}, {(char *)"1", 1}}, {{(char *)"y", 1}, {(char *)"2", 1}}, {{(char *)"x", 1}, {(char *)"3", 1}}};
    KCSTR keys[3] = {{(char *)"y", 1}, {(char *)"none", 4}, {(char *)"x", 1}};
    KCREC out[3];
    int64_t i, count;

    CHECK(kcdbsetbulk(db, in, 3, 1) == 2 && kcdbsetbulk(db, in, 2, 0) == 2);
    for (i = 0; i < 2; i++) {
        count = kcdbgetbulk(db, keys, 3, out, (int32_t)i);
        CHECK(count == 2);
        while (count-- > 0) {
            CHECK(out[count].key.size == 1 && strlen(out[count].key.buf) == 1);
            CHECK(out[count].value.size == 1 && *out[count].value.buf == (*out[count].key.buf == 'x' ? '1' : '2'));
            kcfree(out[count].key.buf);
            kcfree(out[count].value.buf);
        }
    }
    CHECK(kcdbremovebulk(db, keys, 3, 1) == 2 && kcdbremovebulk(db, keys, 3, 0) == 0 && kcdbcount(db) == 0);
}

/* A visitor: counts, and answers by the first character of the key. */
static char answer[64];

static const char *visit(const char *key, size_t key_len, const char *value, size_t value_len, size_t *len, void *opaque)
{
    ++*(int *)opaque;
    if (key_len > 0 && key[0] == 'r')
        return KCVISREMOVE;
    if (key_len > 0 && key[0] == 's') {
        *len = (size_t)snprintf(answer, sizeof answer, "%.*s!", (int)value_len, value);
        return answer;
    }
    return KCVISNOP;
}

static const char *visit_empty(const char *key, size_t key_len, size_t *len, void *opaque)
{
    *(int *)opaque += 100;
    if (key_len > 0 && key[0] == 's') {
        *len = 3;
        return "new";
    }
    return KCVISREMOVE;
}

static int32_t refuse(const char *path, int64_t count, int64_t size, void *opaque)
{
    (void)size;
    *(int64_t *)opaque = count;
    return path == NULL;
}

static void visitors(void)
{
    int calls = 0;
    int64_t count = 0;
    KCSTR keys[3] = {{(char *)"stay", 4}, {(char *)"s2", 2}, {(char *)"gone", 4}};

    CHECK(kcdbset(db, TEXT("keep"), TEXT("k")) && kcdbset(db, TEXT("r1"), TEXT("r")) && kcdbset(db, TEXT("stay"), TEXT("s")));
    CHECK(kcdbaccept(db, TEXT("keep"), visit, visit_empty, &calls, 1) && calls == 1 && has("keep", "k"));
    CHECK(kcdbaccept(db, TEXT("r1"), visit, visit_empty, &calls, 1) && calls == 2 && has("r1", NULL));
    CHECK(kcdbaccept(db, TEXT("r1"), visit, visit_empty, &calls, 1) && calls == 102 && has("r1", NULL));
    CHECK(kcdbaccept(db, TEXT("s2"), visit, visit_empty, &calls, 1) && calls == 202 && has("s2", "new"));
    CHECK(kcdbaccept(db, TEXT("keep"), visit, visit_empty, &calls, 0) && calls == 203);
    calls = 0;
    CHECK(kcdbacceptbulk(db, keys, 3, visit, visit_empty, &calls, 1) && calls == 102);
    CHECK(has("stay", "s!") && has("s2", "new!") && has("gone", NULL));
    CHECK(kcdbset(db, TEXT("r2"), TEXT("r")));
    calls = 0;
    CHECK(kcdbscanpara(db, visit, &calls, 1) && calls == 4 && kcdbcount(db) == 4);
    CHECK(kcdbiterate(db, visit, &calls, 1) && calls == 8 && kcdbcount(db) == 3);
    CHECK(has("stay", "s!!") && has("s2", "new!!") && has("keep", "k") && has("r2", NULL));
    CHECK(kcdbsync(db, 1, NULL, NULL) && kcdboccupy(db, 1, NULL, NULL));
    FAILS(KCELOGIC, 0, kcdbsync(db, 0, refuse, &count));
    CHECK(count == 3);
    FAILS(KCELOGIC, 0, kcdboccupy(db, 0, refuse, &count));
    CHECK(kcdbclear(db) && kcdbcount(db) == 0);
}

static void transactions(void)
{
    KCCUR *cursor = kcdbcursor(db);
    FAILS(KCEINVALID, 0, kcdbendtran(db, 1));
    CHECK(kcdbset(db, TEXT("a"), TEXT("1")) && kcdbset(db, TEXT("b"), TEXT("1")) && kcdbbegintran(db, 0));
    FAILS(KCELOGIC, 0, kcdbbegintrantry(db, 0));
    CHECK(kcdbset(db, TEXT("a"), TEXT("2")) && kcdbremove(db, TEXT("b")) && kcdbset(db, TEXT("c"), TEXT("2")));
    CHECK(has("a", "2") && has("b", NULL) && has("c", "2") && kcdbcount(db) == 2);
    CHECK(kccurjump(cursor) && kccurremove(cursor) && kcdbcount(db) == 1);
    CHECK(kcdbendtran(db, 0) && has("a", "1") && has("b", "1") && has("c", NULL) && kcdbcount(db) == 2);
    CHECK(kcdbbegintrantry(db, 1) && kcdbincrint(db, TEXT("n"), 1, 0) == 1 && kcdbincrint(db, TEXT("n"), 1, 0) == 2);
    CHECK(kcdbendtran(db, 1) && kcdbcheck(db, TEXT("n")) == 8 && kcdbclear(db));
    kccurdel(cursor);
}

static void any_cursor(void)
{
    KCCUR *cursor = kcdbcursor(db);
    size_t key_len, value_len;
    const char *value;
    char *key;
    int seen = 0, calls = 0;
    char keys[3][4];

    FAILS(KCENOREC, 0, kccurjump(cursor));
    FAILS(KCENOREC, 0, kccurstep(cursor));
    CHECK(kccurdb(cursor) == db && kccurecode(cursor) == KCENOREC && stands_at(cursor, NULL));
    CHECK(kcdbset(db, TEXT("k1"), TEXT("1")) && kcdbset(db, TEXT("k2"), TEXT("2")) && kcdbset(db, TEXT("k3"), TEXT("3")));
    for (CHECK(kccurjump(cursor)); (key = kccurget(cursor, &key_len, &value, &value_len, 1)) != NULL; kcfree(key)) {
        CHECK(key_len == 2 && value_len == 1 && strlen(key) == 2 && key[1] == value[0] && value[1] == '\0' && seen < 3);
        strcpy(keys[seen++], key);
    }
    CHECK(seen == 3 && kccurecode(cursor) == KCENOREC);
    /* Steps, and what others remove. */
    CHECK(kccurjump(cursor) && stands_at(cursor, keys[0]) && kccurstep(cursor) && stands_at(cursor, keys[1]));
    CHECK(kcdbremove(db, TEXT(keys[1])) && stands_at(cursor, keys[2]));
    FAILS(KCENOREC, 0, kccurstep(cursor));
    CHECK(stands_at(cursor, NULL) && kcdbset(db, TEXT(keys[1]), TEXT("x")));
    /* Writing at a cursor. */
    CHECK(kccurjumpkey(cursor, TEXT("k2")) && stands_at(cursor, "k2") && kccursetvalue(cursor, TEXT("new"), 0));
    CHECK(stands_at(cursor, "k2") && has("k2", "new"));
    key = kccurgetvalue(cursor, &value_len, 0);
    CHECK(key != NULL && strcmp(key, "new") == 0 && value_len == 3);
    kcfree(key);
    CHECK(kccuraccept(cursor, visit, &calls, 1, 0) && calls == 1 && has("k2", "new"));
    for (CHECK(kccurjump(cursor)); kccursetvalue(cursor, TEXT("all"), 1);)
        calls++;
    CHECK(calls == 4 && has("k1", "all") && has("k2", "all") && has("k3", "all"));
    CHECK(kccurjumpkey(cursor, TEXT("k3")));
    key = kccurseize(cursor, &key_len, &value, &value_len);
    CHECK(key != NULL && strcmp(key, "k3") == 0 && strcmp(value, "all") == 0 && has("k3", NULL));
    kcfree(key);
    CHECK(kccurjump(cursor) && kccurremove(cursor) && kccurremove(cursor) && !kccurremove(cursor) && kcdbcount(db) == 0);
    kccurdel(cursor);
}

static void ordered_cursor(void)
{
    KCCUR *cursor = kcdbcursor(db);
    const char *keys[5] = {"b", "d", "f", "h", "j"};
    int i;

    for (i = 0; i < 5; i++)
        CHECK(kcdbset(db, TEXT(keys[i]), TEXT("v")));
    CHECK(kccurjumpkey(cursor, TEXT("d")) && stands_at(cursor, "d") && kccurjumpkey(cursor, TEXT("e")) && stands_at(cursor, "f"));
    FAILS(KCENOREC, 0, kccurjumpkey(cursor, TEXT("k")));
    CHECK(stands_at(cursor, NULL) && kccurjumpback(cursor) && stands_at(cursor, "j"));
    CHECK(kccurjumpbackkey(cursor, TEXT("f")) && stands_at(cursor, "f") && kccurjumpbackkey(cursor, TEXT("e")) && stands_at(cursor, "d"));
    FAILS(KCENOREC, 0, kccurjumpbackkey(cursor, TEXT("a")));
    for (i = 0, CHECK(kccurjump(cursor)); i < 5; i++)
        CHECK(stands_at(cursor, keys[i]) && kccurstep(cursor) == (i < 4));
    for (i = 4, CHECK(kccurjumpback(cursor)); i >= 0; i--)
        CHECK(stands_at(cursor, keys[i]) && kccurstepback(cursor) == (i > 0));
    /* There and back, and a record that comes between. */
    CHECK(kccurjumpkey(cursor, TEXT("d")) && kccurstep(cursor) && kccurstepback(cursor) && stands_at(cursor, "d"));
    CHECK(kccurstepback(cursor) && kccurstep(cursor) && kccurstep(cursor) && stands_at(cursor, "f"));
    CHECK(kcdbset(db, TEXT("g"), TEXT("v")) && kccurstep(cursor) && stands_at(cursor, "g"));
    CHECK(kcdbremove(db, TEXT("g")) && stands_at(cursor, "h") && kccurstepback(cursor) && stands_at(cursor, "f"));
    CHECK(kcdbclear(db));
    kccurdel(cursor);
}

static int64_t freed(int64_t count, char **keys, const char *first)
{
    int64_t i;
    CHECK(count < 1 || first == NULL || strcmp(keys[0], first) == 0);
    for (i = 0; i < count; i++)
        kcfree(keys[i]);
    return count;
}

static void matching(void)
{
    const char *all[6] = {"abcd", "abce", "ab", "zbcd", "ABCD", "abcdef"};
    char *keys[10];
    int i;

    for (i = 0; i < 6; i++)
        CHECK(kcdbset(db, TEXT(all[i]), TEXT("v")));
    CHECK(freed(kcdbmatchprefix(db, "abc", keys, 10), keys, NULL) == 3);
    CHECK(freed(kcdbmatchprefix(db, "abc", keys, 2), keys, NULL) == 2 && kcdbmatchprefix(db, "none", keys, 10) == 0);
    CHECK(freed(kcdbmatchregex(db, "^[a-z]bc(d|e)$", keys, 10), keys, NULL) == 3);
    CHECK(freed(kcdbmatchregex(db, "", keys, 10), keys, NULL) == 6);
    FAILS(KCELOGIC, -1, kcdbmatchregex(db, "ab[", keys, 10));
    CHECK(freed(kcdbmatchsimilar(db, "abcd", 1, 0, keys, 10), keys, "abcd") == 3);
    CHECK(freed(kcdbmatchsimilar(db, "abcd", 2, 1, keys, 10), keys, "abcd") == 5);
    CHECK(freed(kcdbmatchsimilar(db, "abcd", 2, 0, keys, 1), keys, "abcd") == 1);
    CHECK(kcdbclear(db));
}

static void merging(void)
{
    KCDB *other = kcdbnew();
    CHECK(kcdbopen(other, "%", KCOWRITER | KCOCREATE) && kcdbset(other, TEXT("a"), TEXT("2")) && kcdbset(other, TEXT("b"), TEXT("2")));
    CHECK(kcdbset(db, TEXT("a"), TEXT("1")) && kcdbmerge(db, &other, 1, KCMREPLACE) && has("a", "2") && has("b", NULL));
    CHECK(kcdbset(db, TEXT("a"), TEXT("1")) && kcdbmerge(db, &other, 1, KCMADD) && has("a", "1") && has("b", "2"));
    CHECK(kcdbmerge(db, &other, 1, KCMAPPEND) && has("a", "12") && has("b", "22"));
    CHECK(kcdbmerge(db, &other, 1, KCMSET) && has("a", "2") && has("b", "2") && kcdbmerge(db, &other, 0, KCMSET));
    CHECK(kcdbclose(other) && kcdbclear(db));
    kcdbdel(other);
}

static void texts(void)
{
    CHECK(kcatoi(" -12x") == -12 && kcatoi("+7") == 7 && kcatoi("x") == 0);
    CHECK(kcatoix("2k") == 2048 && kcatoix("-1.5M") == -1572864 && kcatoix("9E") == INT64_MAX && kcatoix("12 k") == 12288);
    CHECK(kcatof("1.5e3") == 1500 && kcatof(" -2.25x") == -2.25 && kcchkinf(kcatof("-inf")) && kcchknan(kcatof("nan")) && kcatof("abc") == 0);
    CHECK(kchashmurmur("abc", 3) == UINT64_C(0xeb8f6874776fdd26) && kchashfnv("abc", 3) == UINT64_C(0x18815c99447a7543));
    CHECK(kclevdist(TEXT("kitten"), TEXT("sitting"), 0) == 3 && kclevdist("\xc3\xa9", 2, "e", 1, 1) == 1);
    CHECK(strcmp(kcecodename(KCENOREC), "no record") == 0 && strcmp(kcecodename(99), "miscellaneous error") == 0);
    CHECK(kctime() > 1e9 && kcchknan(kcnan()) && !kcchknan(kcinf()) && strlen(KCVERSION) > 4);
    kcfree(kcmalloc(0));
}

static void helpers(void)
{
    KCMAP *map = kcmapnew(0);
    KCLIST *list = kclistnew();
    KCMAPITER *walk;
    KCMAPSORT *sorted;
    const char *key, *value;
    size_t key_len, value_len;
    int i;

    kcmapset(map, "b", 1, "1", 1);
    CHECK(!kcmapadd(map, "b", 1, "2", 1) && kcmapadd(map, "a", 1, "2", 1) && !kcmapreplace(map, "c", 1, "3", 1));
    CHECK(kcmapreplace(map, "b", 1, "3", 1) && kcmapcount(map) == 2);
    kcmapappend(map, "b", 1, "4", 1);
    kcmapappend(map, "c", 1, "5", 1);
    CHECK(memcmp(kcmapget(map, "b", 1, &value_len), "34", 2) == 0 && value_len == 2 && kcmapget(map, "x", 1, &value_len) == NULL);
    CHECK(kcmapremove(map, "a", 1) && !kcmapremove(map, "a", 1) && kcmapcount(map) == 2);
    for (i = 0, walk = kcmapiterator(map); (key = kcmapiterget(walk, &key_len, &value, &value_len)) != NULL; i++, kcmapiterstep(walk))
        CHECK(key_len == 1 && value_len == (*key == 'b' ? 2u : 1u) && *kcmapitergetkey(walk, &key_len) == *key && *kcmapitergetvalue(walk, &key_len) == *value);
    CHECK(i == 2 && kcmapitergetkey(walk, &key_len) == NULL);
    kcmapiterdel(walk);
    sorted = kcmapsorter(map);
    CHECK(*kcmapsortgetkey(sorted, &key_len) == 'b' && *kcmapsortgetvalue(sorted, &key_len) == '3');
    kcmapsortstep(sorted);
    CHECK(*kcmapsortget(sorted, &key_len, &value, &value_len) == 'c' && *value == '5');
    kcmapsortstep(sorted);
    CHECK(kcmapsortget(sorted, &key_len, &value, &value_len) == NULL);
    kcmapsortdel(sorted);
    kcmapclear(map);
    CHECK(kcmapcount(map) == 0);
    kcmapdel(map);

    kclistpush(list, "b", 1);
    kclistpush(list, "d", 1);
    kclistunshift(list, "a", 1);
    kclistinsert(list, "c", 1, 2);
    CHECK(kclistcount(list) == 4);
    for (i = 0; i < 4; i++)
        CHECK(*kclistget(list, (size_t)i, &key_len) == 'a' + i && key_len == 1);
    kclistremove(list, 1);
    CHECK(kclistshift(list) && kclistpop(list) && kclistcount(list) == 1 && *kclistget(list, 0, &key_len) == 'c');
    CHECK(kclistpop(list) && !kclistpop(list) && !kclistshift(list));
    kclistclear(list);
    kclistdel(list);
}

static void index_of(const char *path)
{
    KCIDX *index = kcidxnew();
    size_t len;
    char *value;
    CHECK(kcidxopen(index, path, KCOWRITER | KCOCREATE | KCOTRUNCATE) && kcidxset(index, TEXT("k"), TEXT("1")));
    CHECK(!kcidxadd(index, TEXT("k"), TEXT("2")) && kcidxecode(index) == KCEDUPREC && kcidxappend(index, TEXT("k"), TEXT(",2")));
    CHECK(kcidxreplace(index, TEXT("k"), TEXT("0")) && kcidxappend(index, TEXT("k"), TEXT(",9")));
    value = kcidxget(index, TEXT("k"), &len);
    CHECK(value != NULL && len == 3 && memcmp(value, "0,9", 3) == 0);
    kcfree(value);
    CHECK(kcidxcount(index) == 1 && kcidxsize(index) >= 0 && kcidxsync(index, 0, NULL, NULL) && kcidxrevealinnerdb(index) != NULL);
    value = kcidxpath(index);
    CHECK(strcmp(value, path) == 0);
    kcfree(value);
    value = kcidxstatus(index);
    CHECK(value != NULL && strchr(value, '\t') != NULL);
    kcfree(value);
    CHECK(kcidxremove(index, TEXT("k")) && strlen(kcidxemsg(index)) > 0 && kcidxclear(index) && kcidxclose(index));
    kcidxdel(index);
}

/* Closing and opening; only files. */
static void files(const char *dir, const char *path)
{
    char copy[4200], snapshot[4200], *found;
    KCDB *other = kcdbnew();

    CHECK(kcdbset(db, TEXT("stays"), TEXT("s")) && kcdbbegintran(db, 0) && kcdbset(db, TEXT("goes"), TEXT("g")) && kcdbclose(db));
    FAILS(KCEINVALID, 0, kcdbclose(db));
    FAILS(KCEINVALID, 0, kcdbset(db, TEXT("a"), TEXT("1")));
    FAILS(KCEINVALID, -1, kcdbcount(db));
    CHECK(kcdbopen(db, path, KCOREADER) && has("stays", "s") && has("goes", NULL));
    FAILS(KCENOPERM, 0, kcdbset(db, TEXT("a"), TEXT("1")));
    FAILS(KCENOPERM, 0, kcdbremove(db, TEXT("stays")));
    FAILS(KCENOPERM, 0, kcdbclear(db));
    FAILS(KCENOPERM, 0, kcdbbegintran(db, 0));
    FAILS(KCENOPERM, -1, kcdbsetbulk(db, NULL, 0, 1));
    FAILS(KCEINVALID, 0, kcdbopen(db, path, KCOREADER));
    snprintf(copy, sizeof copy, "%s/copy%s", dir, strrchr(path, '.'));
    snprintf(snapshot, sizeof snapshot, "%s/snapshot", dir);
    CHECK(kcdbcopy(db, copy));
    CHECK(kcdbdumpsnap(db, snapshot));
    CHECK(kcdbclose(db));
    CHECK(kcdbopen(other, copy, KCOWRITER) && kcdbcount(other) == 1 && kcdbclear(other) && kcdbloadsnap(other, snapshot));
    CHECK(kcdbcheck(other, TEXT("stays")) == 1 && kcdbclose(other));
    CHECK(kcdbopen(db, path, KCOWRITER | KCOCREATE | KCOAUTOSYNC | KCOAUTOTRAN) && kcdbcount(db) == 1 && kcdbset(db, TEXT("k"), TEXT("v")));
    found = kcdbpath(db);
    CHECK(strcmp(found, path) == 0);
    kcfree(found);
    CHECK(kcdbclose(db) && kcdbopen(db, path, KCOWRITER | KCOTRUNCATE) && kcdbcount(db) == 0);
    kcdbdel(other);
}

int main(int argc, char **argv)
{
    static const char *const kinds[8] = {"a.kch", "a.kct", "a.kcd", "a.kcf", "*", "%", "any#type=kct#psiz=512#opts=ls", "-"};
    char path[4200];
    int i;

    CHECK(argc == 2);
    for (i = 0; i < 8; i++) {
        int in_memory = strlen(kinds[i]) == 1, is_ordered = i == 1 || i == 3 || i == 5 || i == 6;
        db = kcdbnew();
        CHECK(kcdbecode(db) == KCESUCCESS);
        FAILS(KCEINVALID, 0, kcdbset(db, TEXT("a"), TEXT("1")));
        FAILS(KCEINVALID, 0, kcdbopen(db, "what.xyz", KCOWRITER | KCOCREATE));
        FAILS(KCENOREPOS, 0, kcdbopen(db, path_of(argv[1], "none/none.kch"), KCOWRITER | KCOCREATE));
        FAILS(KCENOREPOS, 0, kcdbopen(db, path_of(argv[1], "none.kct"), KCOREADER));
        snprintf(path, sizeof path, "%s", in_memory ? kinds[i] : path_of(argv[1], kinds[i]));
        if (!kcdbopen(db, path, KCOWRITER | KCOCREATE)) {
            fprintf(stderr, "%s: %s\n", path, kcdbemsg(db));
            return 1;
        }
        single();
        numbers();
        bulk();
        visitors();
        if (i < 4)
            transactions();
        any_cursor();
        if (is_ordered)
            ordered_cursor();
        matching();
        merging();
        if (i < 4)
            files(argv[1], path);
        CHECK(kcdbclose(db));
        kcdbdel(db);
    }
    texts();
    helpers();
    index_of(path_of(argv[1], "index.kct"));
    return 0;
}
