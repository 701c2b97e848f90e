// The classes for C++: every operation, loops, errors, transactions that run again, and threads.
#include "azekura.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)

using azekura::kind;

#if __cplusplus >= 202002L
#include <ranges>
static_assert(std::ranges::input_range<azekura::records> && std::ranges::input_range<azekura::reversed_records>);
#endif

template <class F> static azk_status thrown(F f)
{
    try {
        f();
    } catch (const azekura::error &e) {
        CHECK(*e.what() != 0);
        return e.code();
    }
    return AZK_OK;
}

static void records(azekura::table &t)
{
    t.put("ada", "1815");
    CHECK(t.get("ada") == "1815" && !t.get("bob") && t.contains("ada") && !t.contains("bob"));
    t.put("long", std::string(5000, 'x'));
    CHECK(t.get("long") == std::string(5000, 'x'));
    t.put("", "");
    CHECK(t.get("") == "");
    CHECK(t.add("eve", "1") && !t.add("eve", "2") && t.replace("eve", "3") && !t.replace("none", "4"));
    t.append("eve", "4");
    CHECK(t.get("eve") == "34" && t.increment("n", 40) == 40 && t.increment("n", 2) == 42);
    t.merge("n", AZK_ADD, std::int64_t(-2));
    CHECK(t.increment("n", 0) == 40);
    t.merge("f", AZK_MAX_F64, 0.5);
    CHECK(t.get("f")->size() == 8 && t.take("f"));
    t.merge_append("l", "34");
    t.merge_append("l", "56");
    t.merge_union("s", 2, "bbaa");
    t.merge_union("s", 2, "bbcc");
    CHECK(t.take("l") == "3456" && t.take("s") == "aabbcc");
    CHECK(!t.compare_and_swap("eve", "x", "y") && t.compare_and_swap("eve", "34", std::nullopt));
    CHECK(t.compare_and_swap("eve", std::nullopt, "35") && t.take("eve") == "35" && !t.take("eve"));
    t.put_for("n", "1", std::chrono::hours(1));
    CHECK(t.ttl("n") > std::chrono::minutes(59) && t.ttl("") == std::chrono::milliseconds::max() && !t.ttl("bob"));
    CHECK(t.expire("n", std::chrono::milliseconds::max()) && t.ttl("n") == std::chrono::milliseconds::max());
    CHECK(t.expire("n", std::chrono::milliseconds(0)) && !t.contains("n") && !t.expire("n", std::chrono::hours(1)));
    CHECK(t.usual_ttl() == std::chrono::milliseconds::max());
    t.set_usual_ttl(std::chrono::hours(1));
    t.put("n", "1");
    CHECK(t.usual_ttl() == std::chrono::hours(1) && t.ttl("n") > std::chrono::minutes(59) && t.take("n"));
    t.set_usual_ttl(std::chrono::milliseconds::max());
    CHECK(t.count() == 3);
    t.clear();
    t.put_many(std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}, {"ba", "3"}, {"c", "4"}});
    auto found = t.get_many(std::vector<std::string_view>{"c", "x", "a"});
    CHECK(found.size() == 3 && found[0] == "4" && !found[1] && found[2] == "1");
}

template <class Loop> static std::string joined(Loop &&loop)
{
    std::string all;
    for (const auto &[key, value] : loop)
        all.append(key).append(value).append(" ");
    return all;
}

static void loops(azekura::database &db, azekura::table &t)
{
    CHECK(joined(t) == "a1 b2 ba3 c4 ");
    CHECK(joined(t.all()) == joined(t));
    CHECK(joined(t.prefix("b")) == "b2 ba3 ");
    CHECK(joined(t.range("b", "c")) == "b2 ba3 " && joined(t.range(std::nullopt, "b")) == "a1 ");
    CHECK(joined(t.all().reversed()) == "c4 ba3 b2 a1 " && joined(t.prefix("b").reversed()) == "ba3 b2 ");
    CHECK(joined(t.range("x", "y").reversed()).empty());
    auto read = db.read();
    t.remove_range("b", std::nullopt);
    CHECK(joined(t) == "a1 " && joined(read.all(t)) == "a1 b2 ba3 c4 " && joined(read.prefix(t, "c")) == "c4 ");
    CHECK(read.get(t, "c") == "4" && read.view(t, "c") == "4" && !read.view(t, "x") && read.count(t) == 4);
    CHECK(read.contains(t, "c") && joined(read.range(t, "b", "c")) == "b2 ba3 ");
    CHECK(read.get_many(t, std::vector<std::string>{"ba"})[0] == "3");
    read.release_values();
    auto cursor = read.cursor(t);
    cursor.seek("ba");
    CHECK(cursor.next() && cursor.key() == "ba" && cursor.value_size() == 1 && cursor.value() == "3");
    CHECK(cursor.prev() && cursor.key() == "ba" && cursor.prev() && cursor.key() == "b");
    cursor.seek_last();
    CHECK(!cursor.next());
    cursor.seek_first();
    CHECK(!cursor.prev() && thrown([&] { cursor.value(); }) == AZK_NOT_FOUND);
}

static void edges(azekura::database &db, azekura::table &t)
{
    using record = std::pair<std::string, std::string>;
    t.clear();
    CHECK(!t.first() && !t.pop_last() && !t.remove_existing("a"));
    t.put_many(std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}, {"e", "5"}});
    auto read = db.read();
    CHECK(t.first() == record("a", "1") && t.last() == record("e", "5"));
    CHECK(t.pop_first() == record("a", "1") && t.pop_last() == record("e", "5") && t.remove_existing("b"));
    CHECK(read.first(t) == record("a", "1") && read.last(t) == record("e", "5") && joined(t) == "c3 d4 ");
    {
        auto txn = db.write();
        std::string seen;
        CHECK(txn.pop_last(t) == record("d", "4") && txn.first(t) == txn.last(t) && !txn.remove_existing(t, "d"));
        txn.drain(t, std::nullopt, std::nullopt, [&](auto key, auto) { return seen += key, false; });
        CHECK(seen == "c" && !txn.pop_first(t));
    }
    t.update("up", [](auto old) { return std::optional<std::string>(old ? "old" : "new"); });
    CHECK(t.get("up") == "new");
    try {
        t.update("up", [](auto) -> std::optional<std::string> { throw std::runtime_error("no"); });
        CHECK(false);
    } catch (const std::runtime_error &) {
    }
    {
        auto txn = db.write();
        txn.update(t, "up", [](auto old) { return std::optional<std::string>(std::string(*old) + "er"); });
        CHECK(txn.view(t, "up") == "newer" && !txn.view(t, "none"));
        txn.commit();
    }
    CHECK(t.get("up") == "newer");
    t.update("up", [](auto) { return std::optional<std::string>(); });
    CHECK(!t.get("up"));
    CHECK(t.retain("a", std::nullopt, [](auto, auto value) { return value != "3"; }) == 1 && joined(t) == "d4 ");
    bool caught = false;
    try {
        t.retain(std::nullopt, std::nullopt, [](auto, auto) -> bool { throw std::runtime_error("no"); });
    } catch (const std::runtime_error &e) {
        caught = std::string(e.what()) == "no";
    }
    CHECK(caught && joined(t) == "d4 ");
    CHECK(t.stats().memory_bytes > 0);
    t.drain(std::nullopt, std::nullopt, [](auto, auto) { return true; });
    CHECK(joined(t).empty());
}

static void backups(azekura::database &db, azekura::table &t, const std::string &dir)
{
    t.put("ada", "1815");
    auto report = db.backup(dir + "/saved");
    t.put("ada", "1816");
    db.backup(dir + "/saved");
    azekura::repository saved(dir + "/saved");
    CHECK(report.point == 1 && saved.points().size() == 2);
    saved.verify();
    CHECK(saved.restore(azekura::which::point(1), dir + "/old.azk").number == 1);
    CHECK(saved.restore(azekura::which::time(std::chrono::system_clock::now()), dir + "/new.azk").number == 2);
    CHECK(thrown([&] { saved.restore(azekura::which::newest(), dir + "/new.azk"); }) == AZK_OPEN);
    CHECK(saved.prune("1") == 1 && saved.points().size() == 1);
    db.copy(dir + "/copy.azk");
    CHECK(azekura::database(dir + "/old.azk").open_table(t.name()).get("ada") == "1815");
    CHECK(azekura::database(dir + "/copy.azk").open_table(t.name()).get("ada") == "1816");
}

static void tables_in_transactions(azekura::database &db)
{
    auto txn = db.write();
    auto made = txn.create_table("made", kind::ordered);
    txn.put(made, "ada", "1815");
    CHECK(txn.get(made, "ada") == "1815" && thrown([&] { made.get("ada"); }) == AZK_NO_SUCH_TABLE);
    CHECK(thrown([&] { txn.create_table("made", kind::hash); }) == AZK_TABLE_EXISTS);
    auto place = txn.savepoint();
    txn.drop_table("made");
    CHECK(thrown([&] { txn.open_table("made"); }) == AZK_NO_SUCH_TABLE);
    txn.rollback_to(place);
    txn.rename_table("made", "born");
    CHECK(txn.count(txn.open_table("born")) == 1 && txn.count(txn.table("new", kind::hash)) == 0);
    txn.drop_table("new");
    txn.commit();
    CHECK(made.name() == "born" && made.get("ada") == "1815" && db.open_table("born").get("ada") == "1815");
    auto last = db.write();
    last.drop_table("born");
    last.commit();
    CHECK(thrown([&] { made.get("ada"); }) == AZK_NO_SUCH_TABLE);
}

static void transactions(azekura::database &db, azekura::table &t)
{
    t.clear();
    auto txn = db.write(azekura::durability::eventual, azekura::isolation::snapshot);
    txn.put(t, "a", "1");
    auto place = txn.savepoint();
    txn.put_many(t, std::vector<std::pair<std::string, std::string>>{{"b", "2"}, {"c", "3"}});
    CHECK(txn.count(t) == 3 && joined(txn.all(t)) == "a1 b2 c3 " && joined(txn.prefix(t, "b")) == "b2 ");
    txn.rollback_to(place);
    CHECK(!txn.get(t, "b") && txn.get(t, "a") == "1" && txn.contains(t, "a"));
    CHECK(txn.add(t, "d", "4") && txn.replace(t, "d", "5") && txn.increment(t, "n", 7) == 7);
    txn.merge(t, "n", AZK_MIN_U64, std::uint64_t(9));
    txn.append(t, "d", "6");
    txn.merge_append(t, "l", "6");
    txn.merge_union(t, "s", 3, "eveada");
    CHECK(txn.take(t, "l") == "6" && txn.take(t, "s") == "adaeve");
    CHECK(txn.compare_and_swap(t, "d", "56", "57") && txn.take(t, "d") == "57");
    CHECK(txn.get_many(t, std::vector<std::string>{"d", "a"})[1] == "1");
    txn.remove(t, "n");
    txn.remove_range(t, "x", std::nullopt);
    CHECK(joined(txn.range(t, "a", std::nullopt)) == "a1 ");
    txn.commit();
    CHECK(joined(t) == "a1 " && thrown([&] { txn.put(t, "b", "2"); }) == AZK_BAD_HANDLE);
    {
        auto dropped = db.write();
        dropped.clear(t);
    }
    CHECK(joined(t) == "a1 ");
}

/* The keys of a lookup. */
static std::string keys(azekura::lookup found)
{
    std::string all;
    while (found.next_key())
        all.append(found.key()).append(found.value()).append(" ");
    return all;
}

static void feed(azekura::database &db)
{
    using azekura::change_kind;
    auto fed = db.table("fed", kind::hash);
    CHECK(!db.feed_info());
    CHECK(thrown([&] { db.feed(0); }) == AZK_INVALID);
    fed.set_feed(azekura::feed_content::both);
    auto begin = db.feed_info()->newest;
    auto reader = db.feed(begin);
    CHECK(!reader.next() && !reader.wait(std::chrono::milliseconds(1)));
    fed.put("a", "1");
    fed.put("a", "");
    fed.remove("a");
    CHECK(reader.wait(std::chrono::minutes(1)));
    auto change = reader.next();
    CHECK(change && change->kind == change_kind::put && change->table == "fed" && change->key == "a");
    CHECK(change->value == "1" && !change->old && change->commit > begin);
    change = reader.next();
    CHECK(change && change->value == "" && change->old == "1");
    change = reader.next();
    CHECK(change && change->kind == change_kind::remove && !change->value && change->old == "");
    CHECK(!reader.next());
    db.transact([&](azekura::write_txn &txn) { txn.set_feed_cursor("reader", reader.position()); });
    CHECK(db.feed_cursor("reader") == reader.position() && !db.feed_cursor("none"));
    fed.set_feed(azekura::feed_content::nothing);
    change = reader.next();
    CHECK(change && change->kind == change_kind::stop && change->key.empty());
    CHECK(thrown([&] { db.feed(0); }) == AZK_FEED_GAP);
    db.drop_table("fed");
}

static void indexes(azekura::database &db)
{
    using record = std::pair<std::string, std::string>;
    auto people = db.create_table("people", kind::hash);
    people.put_many(std::map<std::string, std::string>{
        {"ada", "London 1815 0.5"}, {"alan", "London 1912 -1"}, {"erwin", "Wien 1887 2"}, {"nobody", ""}});
    auto by_city = people.create_index("by_city", "v.split(' ', 0):lower, v.split(' ', 1):i64");
    auto by_sum = people.create_index("by_sum", "v.split(' ', 2):f64 unique");
    std::string city = "LONDON";
    CHECK(joined(by_city.get({city})) == "adaLondon 1815 0.5 alanLondon 1912 -1 ");
    CHECK(keys(by_city.get({"london", 1912})) == "alan " && keys(by_city.get({})) == "nobody ada alan erwin ");
    CHECK(keys(by_city.get({std::string_view("wien"), 1887u})) == "erwin " && keys(by_city.get({"", nullptr})) == "nobody ");
    CHECK(keys(by_city.prefix({"lon"})) == "ada alan " && by_city.count({"london"}) == 2 && by_city.count({}) == 4);
    CHECK(keys(by_city.range({"london", 1900}, {})) == "alan erwin " && keys(by_city.range({}, {"w"})) == "nobody ada alan ");
    CHECK(keys(by_sum.get({0.5})) == "ada " && keys(by_sum.get({2})) == "erwin " && keys(by_sum.get({-1.0f})) == "alan ");
    CHECK(by_city.first({"london"}) == record("ada", "London 1815 0.5") && !by_city.first({"rom"}));
    CHECK(by_city.last({"london"}) == record("alan", "London 1912 -1") && !by_city.last({"rom"}));
    CHECK(keys(by_city.get({azekura::index_value::bytes("wien")})) == "erwin ");
    auto ends = by_city.get({});
    CHECK(ends.next_back() && ends.key() == "erwin" && ends.value() == "Wien 1887 2" && ends.next_key_back());
    CHECK(ends.key() == "alan" && ends.value().empty() && ends.next() && ends.key() == "nobody");
    auto read = db.read();
    {
        auto txn = db.write();
        txn.put(people, "kurt", "Wien 1906 7");
        CHECK(keys(txn.get(by_city, {"wien"})) == "erwin kurt " && keys(txn.prefix(by_city, {"w"})) == "erwin kurt ");
        CHECK(keys(txn.range(by_city, {"wien", 1900}, {})) == "kurt ");
        txn.commit();
    }
    CHECK(keys(read.get(by_city, {"wien"})) == "erwin " && keys(read.prefix(by_city, {"w"})) == "erwin ");
    CHECK(keys(read.range(by_city, {"wien"}, {"x"})) == "erwin " && keys(by_city.get({"wien"})) == "erwin kurt ");
    CHECK(thrown([&] { people.put("max", "Kiel 1858 7"); }) == AZK_NOT_UNIQUE);
    CHECK(thrown([&] { by_city.get({1815}); }) == AZK_INVALID && thrown([&] { by_city.prefix({}); }) == AZK_INVALID);
    auto all = people.indexes();
    CHECK(all.size() == 2 && all[1].name == "by_sum" && all[1].spec == "v.split(' ', 2):f64 unique" && all[1].is_ready);
    CHECK(all[0].entries >= 5 && all[0].bytes > 50 && people.stats().indexes == 2);
    people.drop_index("by_sum");
    CHECK(thrown([&] { by_sum.get({}); }) == AZK_NO_SUCH_INDEX && thrown([&] { people.index("by_sum"); }) == AZK_NO_SUCH_INDEX);
    CHECK(people.index("by_city").count({}) == 5);
    db.drop_table("people");
}

static void again_and_again(azekura::database &db, azekura::table &t)
{
    unsigned runs = 0;
    auto value = db.transact([&](azekura::write_txn &txn) {
        auto old = txn.get(t, "a").value_or("");
        if (++runs < 4)
            t.append("a", "+");
        txn.put(t, "a", old + "!");
        return old;
    });
    CHECK(runs == 4 && value == "1+++" && t.get("a") == "1+++!");
    auto never = [&](azekura::write_txn &txn) {
        txn.get(t, "a");
        t.append("a", "-");
        txn.put(t, "b", "");
    };
    CHECK(thrown([&] { db.transact(never, 3); }) == AZK_CONFLICT && t.get("a") == "1+++!---" && !t.contains("b"));
    try {
        db.transact([&](azekura::write_txn &txn) {
            txn.put(t, "b", "");
            throw 7;
        });
        CHECK(false);
    } catch (int seven) {
        CHECK(seven == 7 && !t.contains("b"));
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&] {
            for (int n = 0; n < 50; n++)
                db.transact([&](azekura::write_txn &txn) { txn.increment(t, "sum", 1); }, 100000);
        });
    for (auto &thread : threads)
        thread.join();
    CHECK(t.increment("sum", 0) == 150);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    std::string path = std::string(argv[1]) + "/wrapper.azk";
    azekura::options options;
    options.exclusive(true).memory_bytes(16 << 20).durability(azekura::durability::eventual);
    options.eventual_delay(std::chrono::milliseconds(200)).threads(true);
    azekura::database db(path, options);
    CHECK(thrown([&] { azekura::database again(path); }) == AZK_LOCKED);
    auto hash = db.table("hash", kind::hash);
    auto t = db.create_table("t", kind::ordered);
    CHECK(t.kind() == kind::ordered && t.name() == "t" && hash.kind() == kind::hash);
    CHECK(thrown([&] { db.open_table("none"); }) == AZK_NO_SUCH_TABLE);
    CHECK(thrown([&] { hash.prefix("a"); }) == AZK_WRONG_TYPE);
    records(hash);
    records(t);
    loops(db, t);
    edges(db, t);
    backups(db, t, argv[1]);
    transactions(db, t);
    tables_in_transactions(db);
    again_and_again(db, t);
    indexes(db);
    feed(db);
    db.rename_table("hash", "other");
    CHECK(db.tables().size() == 2 && db.tables()[0].first == "other" && db.tables()[0].second == kind::hash);
    db.drop_table("other");
    db.sync();
    db.flush();
    db.compact();
    db.shrink();
    db.check();
    CHECK(db.stats().file_bytes > 0);
    db.close();
    CHECK(thrown([&] { t.put("a", "b"); }) == AZK_CLOSED && thrown([&] { db.sync(); }) == AZK_BAD_HANDLE);
    CHECK(azekura::database(path).open_table("t").get("sum").has_value());
    {
        azekura::options required;
        required.mirror_timeout(std::chrono::milliseconds(20)).require_mirror(true);
        azekura::database lone(path, required);
        azekura::table there = lone.open_table("t");
        CHECK(thrown([&] { there.put("unmirrored", "1"); }) == AZK_MIRROR_BEHIND);
        CHECK(there.get("unmirrored").has_value() && lone.stats().unmirrored_commits == 0);
    }
    azekura::options writing, following;
    writing.pinned_bytes_max(1 << 20).pinned_age_max(std::chrono::milliseconds(500));
    azekura::database writer(path, writing);
    following.follow(azekura::follow::log);
    azekura::database follower(path, following);
    writer.open_table("t").put("sum", "5");
    CHECK(follower.open_table("t").get("sum") == "5" && writer.stats().pins == 1);
    auto pins = writer.pins();
    CHECK(pins.size() == 1 && pins[0].checkpoint > 1 && pins[0].bytes < UINT64_MAX && follower.pins().empty());
    return 0;
}
