/* What Kyoto Cabinet crashes of, or waits for without end, is an error. */
#include <kclangc.h>

#include "check.h"

/* What a callback that uses its own database gets. */
typedef struct {
    KCDB *db;
    KCCUR *cursor;
    int calls;
} within;

static const char *use_it(const char *key, size_t key_len, const char *value, size_t value_len, size_t *len, void *opaque)
{
    within *own = opaque;
    size_t got;
    (void)value;
    (void)value_len;
    (void)len;
    own->calls++;
    CHECK(kcdbget(own->db, key, key_len, &got) == NULL && kcdbecode(own->db) == KCELOGIC);
    CHECK(!kcdbset(own->db, "x", 1, "", 0) && !kcdbclear(own->db) && kcdbcount(own->db) == -1);
    CHECK(!kccurjump(own->cursor) && !kcdbclose(own->db) && !kcdbbegintran(own->db, 0));
    CHECK(!kcdbiterate(own->db, use_it, opaque, 0));
    /* Neither goes while a call uses it. */
    kccurdel(own->cursor);
    CHECK(kccurecode(own->cursor) == KCELOGIC && kccurdb(own->cursor) == own->db);
    kcdbdel(own->db);
    CHECK(kcdbecode(own->db) == KCELOGIC);
    return NULL;
}

/* In a transaction too, which goes on. */
static void all_or_none(KCDB *db)
{
    static char large[70000];
    KCREC recs[] = {{{"some", 4}, {"new", 3}}, {{large, sizeof large}, {"v", 1}}};
    char value[8];

    CHECK(kcdbbegintran(db, 0) && kcdbset(db, "some", 4, "old", 3));
    CHECK(kcdbsetbulk(db, recs, 2, 1) == -1 && kcdbecode(db) == KCEINVALID);
    CHECK(kcdbgetbuf(db, "some", 4, value, sizeof value) == 3 && memcmp(value, "old", 3) == 0);
    CHECK(kcdbsetbulk(db, recs, 1, 1) == 1 && kcdbendtran(db, 1));
    CHECK(kcdbgetbuf(db, "some", 4, value, sizeof value) == 3 && memcmp(value, "new", 3) == 0);
}

static int32_t delete_it(const char *path, int64_t count, int64_t size, void *opaque)
{
    (void)path;
    (void)size;
    kcidxdel(opaque);
    return count == 1 && kcidxecode(opaque) == KCELOGIC;
}

static void callbacks(void)
{
    within own = {kcdbnew(), NULL, 0};
    KCDB *other = kcdbnew();
    KCIDX *index = kcidxnew();
    size_t len;
    char *found;

    CHECK(kcdbopen(own.db, "%", KCOWRITER | KCOCREATE) && kcdbset(own.db, "k", 1, "v", 1));
    own.cursor = kcdbcursor(own.db);
    CHECK(kcdbaccept(own.db, "k", 1, use_it, NULL, &own, 1) && own.calls == 1);
    CHECK(kcdbiterate(own.db, use_it, &own, 1) && kcdbscanpara(own.db, use_it, &own, 3) && own.calls == 3);
    CHECK(kccurjump(own.cursor) && kccuraccept(own.cursor, use_it, &own, 1, 1) && own.calls == 4);
    /* NULL as an answer leaves the record. So does a missing callback. */
    CHECK(kcdbaccept(own.db, "k", 1, NULL, NULL, NULL, 1) && kcdbaccept(own.db, "none", 4, NULL, NULL, NULL, 1));
    found = kcdbget(own.db, "k", 1, &len);
    CHECK(found != NULL && strcmp(found, "v") == 0 && kcdbcount(own.db) == 1);
    kcfree(found);
    /* Merging a database with itself ends. */
    CHECK(kcdbmerge(own.db, &own.db, 1, KCMAPPEND) && kcdbcheck(own.db, "k", 1) == 2);
    CHECK(!kcdbmerge(own.db, &other, 1, KCMSET) && !kcdbmerge(own.db, &own.db, 1, 99) && kcdbecode(own.db) == KCEINVALID);
    CHECK(kcdbbegintran(own.db, 0) && !kcdbbegintran(own.db, 0) && kcdbecode(own.db) == KCELOGIC && kcdbendtran(own.db, 1));
    CHECK(kcchknan(kcdbincrdouble(own.db, "huge", 4, 1e30, 0)) && kcdbecode(own.db) == KCELOGIC && kcdbcheck(own.db, "huge", 4) == -1);
    CHECK(kcidxopen(index, "%", KCOWRITER | KCOCREATE) && kcidxset(index, "k", 1, "v", 1));
    CHECK(kcidxsync(index, 0, delete_it, index) && kcidxcount(index) == 1);
    kcidxdel(index);
    all_or_none(own.db);
    /* A cursor outlives its database. */
    kcdbdel(own.db);
    CHECK(!kccurjump(own.cursor) && kccurecode(own.cursor) == KCEINVALID && !kccurremove(own.cursor));
    kccurdel(own.cursor);
    kcdbdel(other);
}

static void nulls(void)
{
    KCDB *db = kcdbnew();
    KCCUR *cursor;
    KCMAP *map = kcmapnew(9);
    KCLIST *list = kclistnew();
    KCSTR bad = {NULL, 5};
    KCREC rec;
    size_t len;
    const char *value;

    CHECK(!kcdbset(NULL, "k", 1, "v", 1) && kcdbecode(NULL) == KCEINVALID && strlen(kcdbemsg(NULL)) > 0);
    CHECK(kcdbget(NULL, "k", 1, &len) == NULL && kcdbcount(NULL) == -1 && kcdbcursor(NULL) == NULL && !kcdbopen(NULL, "%", KCOWRITER));
    CHECK(!kccurjump(NULL) && kccurdb(NULL) == NULL && kccurecode(NULL) == KCEINVALID && kccurget(NULL, &len, &value, &len, 1) == NULL);
    CHECK(!kcidxset(NULL, "k", 1, "v", 1) && kcidxrevealinnerdb(NULL) == NULL && kcidxcount(NULL) == -1);
    CHECK(kcmapcount(NULL) == 0 && kcmapget(NULL, "k", 1, &len) == NULL && kcmapiterator(NULL) == NULL && kcmapsortget(NULL, &len, &value, &len) == NULL);
    CHECK(kclistcount(NULL) == 0 && kclistget(NULL, 0, &len) == NULL && kclistget(list, 0, &len) == NULL && !kclistpop(NULL));
    kcmapset(NULL, "k", 1, "v", 1);
    kcmapset(map, NULL, 1, "v", 1);
    kclistpush(list, NULL, 1);
    kclistinsert(list, "x", 1, 7);
    kclistremove(list, 0);
    kcmapiterstep(NULL);
    CHECK(kcmapcount(map) == 0 && kclistcount(list) == 0);
    CHECK(!kcdbopen(db, NULL, KCOWRITER) && kcdbecode(db) == KCEINVALID && !kcdbopen(db, "%", 0));
    CHECK(kcdbopen(db, "%", KCOWRITER | KCOCREATE));
    CHECK(!kcdbset(db, NULL, 1, "v", 1) && kcdbecode(db) == KCEINVALID && !kcdbset(db, "k", 1, NULL, 1) && !kcdbset(db, "k", SIZE_MAX, "v", 1));
    CHECK(kcdbset(db, "k", 1, NULL, 0) && kcdbget(db, "k", 1, NULL) == NULL && kcdbgetbuf(db, "k", 1, NULL, 4) == -1);
    CHECK(kcdbgetbulk(db, &bad, 1, &rec, 0) == -1 && kcdbsetbulk(db, NULL, 2, 0) == -1 && kcdbmatchprefix(db, NULL, NULL, 1) == -1);
    CHECK(kcdbmatchprefix(db, "k", NULL, 1) == -1 && !kcdbcopy(db, NULL) && !kcdbcopy(db, "x") && kcdbecode(db) == KCENOIMPL);
    CHECK(!kcdbdumpsnap(db, NULL) && !kcdbloadsnap(db, NULL) && !kcdbmerge(db, NULL, 1, KCMSET));
    cursor = kcdbcursor(db);
    CHECK(kccurjump(cursor) && kccurgetkey(cursor, NULL, 0) == NULL && kccurget(cursor, &len, NULL, &len, 0) == NULL && !kccurjumpkey(cursor, NULL, 2));
    CHECK(kcatoi(NULL) == 0 && kcatof(NULL) == 0 && kcatoix(NULL) == 0 && kchashmurmur(NULL, 3) == 0);
    kccurdel(cursor);
    kccurdel(NULL);
    kcmapdel(map);
    kcmapdel(NULL);
    kclistdel(list);
    kclistdel(NULL);
    kcidxdel(NULL);
    kcdbdel(db);
    kcdbdel(NULL);
    kcfree(NULL);
}

static void spoil(const char *path, const char *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, len, file) == len && fclose(file) == 0);
}

/* Snapshots that end early, are none, or have a record that cannot be set. What comes before that is there. */
static void snapshots(const char *dir)
{
    KCDB *db = kcdbnew();
    char path[4200];
    static char large[70016] = "KCSS\n\0\0\1\1zy\0\x84\xa2\x70";

    snprintf(path, sizeof path, "%s", path_of(dir, "snapshot"));
    CHECK(kcdbopen(db, "%", KCOWRITER | KCOCREATE));
    spoil(path, "KCSS\n\0\0\1\1ab\0\1\7ab", 16);
    CHECK(!kcdbloadsnap(db, path) && kcdbecode(db) == KCEBROKEN && kcdbcount(db) == 1 && kcdbcheck(db, "a", 1) == 1);
    spoil(path, "KCSX\n\377", 6);
    CHECK(!kcdbloadsnap(db, path) && kcdbecode(db) == KCEINVALID && kcdbcount(db) == 1);
    spoil(path, large, sizeof large);
    CHECK(!kcdbloadsnap(db, path) && kcdbecode(db) == KCEINVALID && kcdbcount(db) == 2 && kcdbcheck(db, "z", 1) == 1);
    /* Over a file that is there, and to what is no file. */
    CHECK(kcdbdumpsnap(db, path) && kcdbclear(db) && kcdbloadsnap(db, path) && kcdbcount(db) == 2);
    CHECK(kcdbdumpsnap(db, "/dev/null"));
    kcdbdel(db);
}

static void files(const char *dir)
{
    KCDB *db = kcdbnew(), *other = kcdbnew();
    KCCUR *cursor;
    char path[4200], text[8];
    const char *value = path;
    size_t key_len = 1, value_len = 1;
    FILE *file;

    snprintf(path, sizeof path, "%s", path_of(dir, "foreign.kch"));
    spoil(path, "KC\n\0 of somebody else, and long enough", 38);
    CHECK(!kcdbopen(db, path, KCOWRITER | KCOCREATE) && kcdbecode(db) == KCEBROKEN);
    file = fopen(path, "rb");
    CHECK(file != NULL && fread(text, 1, 3, file) == 3 && memcmp(text, "KC\n", 3) == 0 && fclose(file) == 0);
    CHECK(kcdbopen(db, path, KCOWRITER | KCOTRUNCATE) && kcdbcount(db) == 0);
    /* The same file twice; itself as the place of a copy. */
    CHECK(!kcdbopen(other, path, KCOWRITER) && kcdbecode(other) == KCELOGIC);
    CHECK(!kcdbcopy(db, path) && kcdbecode(db) == KCEINVALID && kcdbset(db, "k", 1, "v", 1));
    CHECK(!kcdbdumpsnap(db, path) && kcdbecode(db) == KCEINVALID && kcdbsync(db, 1, NULL, NULL) && kcdbcheck(db, "k", 1) == 1);
    CHECK(!kcdbcopy(db, path_of(dir, "none/copy")) && !kcdbdumpsnap(db, path_of(dir, "none/dump")) && kcdbecode(db) == KCENOREPOS);
    CHECK(!kcdbcopy(db, "/dev/null") && kcdbecode(db) == KCESYSTEM);
    CHECK(kcdbclose(db) && !kcdbopen(other, path_of(dir, "foreign.kch#type=kct"), KCOWRITER) && kcdbecode(other) == KCEINVALID);
    CHECK(kcdbopen(other, path, KCOREADER) && kcdbopen(db, path, KCOREADER) && kcdbcheck(db, "k", 1) == 1 && kcdbclose(other));
    /* A cursor that stands in a file that is closed does not keep it. */
    CHECK(kccurjump(cursor = kcdbcursor(db)) && kcdbclose(db) && kcdbopen(other, path, KCOWRITER | KCOTRYLOCK));
    CHECK(!kccurstep(cursor) && kcdbclose(other) && kcdbopen(db, path, KCOREADER) && !kccurstep(cursor) && kccurjump(cursor));
    /* A record that cannot be removed stays, and nothing of it is lent. */
    CHECK(kccurseize(cursor, &key_len, &value, &value_len) == NULL && kccurecode(cursor) == KCENOPERM);
    CHECK(key_len == 0 && value == NULL && value_len == 0 && kcdbcheck(db, "k", 1) == 1);
    kccurdel(cursor);
    /* What would have another meaning is refused. */
    CHECK(!kcdbopen(other, path_of(dir, "a.kct#rcomp=dec"), KCOWRITER | KCOCREATE) && kcdbecode(other) == KCENOIMPL);
    CHECK(!kcdbopen(other, path_of(dir, "a.kcx"), KCOWRITER | KCOCREATE) && kcdbecode(other) == KCENOIMPL);
    CHECK(!kcdbopen(other, "*#capcnt=10", KCOWRITER | KCOCREATE) && kcdbecode(other) == KCENOIMPL);
    kcdbdel(db);
    kcdbdel(other);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    callbacks();
    nulls();
    files(argv[1]);
    snapshots(argv[1]);
    return 0;
}
