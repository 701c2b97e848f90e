/* A part of azekura.hpp, which includes it: transactions and databases. */
#ifndef AZEKURA_TXN_HPP
#define AZEKURA_TXN_HPP

#ifndef AZEKURA_HPP
#error "include azekura.hpp"
#endif

namespace azekura {

/* A snapshot of all tables. */
class read_txn {
public:
    explicit read_txn(azk_read *handle) : handle_(handle) {}

    std::optional<std::string> get(const table &table, std::string_view key) const
    {
        return detail::fetch([&](void *buffer, size_t capacity, size_t *len) {
            return azk_read_get(handle_.get(), table.get(), key.data(), key.size(), buffer, capacity, len);
        });
    }

    /// How long a record will still be there, in this transaction, in which no time passes.
    std::optional<std::chrono::milliseconds> ttl(const table &table, std::string_view key) const
    {
        return detail::lifetime(
            [&](uint64_t *left) { return azk_read_ttl(handle_.get(), table.get(), key.data(), key.size(), left); });
    }

    /* The value where it stands: good until the transaction ends, or release_values. */
    optional_view view(const table &table, std::string_view key) const
    {
        azk_bytes value;
        if (!detail::found(azk_read_get_ref(handle_.get(), table.get(), key.data(), key.size(), &value)))
            return std::nullopt;
        return detail::view(value);
    }

    void release_values() { detail::check(azk_read_release_values(handle_.get())); }

    template <class Keys>
    std::vector<std::optional<std::string>> get_many(const table &table, const Keys &keys) const
    {
        return detail::fetch_many(keys, [&](const azk_bytes *all, size_t count, azk_bytes **values) {
            return azk_read_get_many(handle_.get(), table.get(), all, count, values);
        });
    }

    bool contains(const table &table, std::string_view key) const
    {
        return detail::answer([&](bool *yes) {
            return azk_read_contains(handle_.get(), table.get(), key.data(), key.size(), yes);
        });
    }

    uint64_t count(const table &table) const
    {
        return detail::number([&](uint64_t *n) { return azk_read_count(handle_.get(), table.get(), n); });
    }

    std::optional<detail::record> first(const table &table) const
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) {
            return azk_read_first(handle_.get(), table.get(), key, value);
        });
    }

    std::optional<detail::record> last(const table &table) const
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) {
            return azk_read_last(handle_.get(), table.get(), key, value);
        });
    }

    azekura::cursor cursor(const table &table, optional_view from = {}, optional_view to = {}) const
    {
        detail::optional_bytes start(from), end(to);
        azk_cursor *out = nullptr;
        detail::check(azk_read_cursor(handle_.get(), table.get(), start.get(), end.get(), &out));
        return azekura::cursor(out);
    }

    records range(const table &table, optional_view from, optional_view to) const
    {
        return records(cursor(table, from, to));
    }

    records all(const table &table) const { return records(cursor(table)); }

    records prefix(const table &table, std::string_view prefix) const
    {
        azk_cursor *out = nullptr;
        detail::check(azk_read_prefix_cursor(handle_.get(), table.get(), prefix.data(), prefix.size(), &out));
        return records(azekura::cursor(out));
    }

    /* What an index finds, as this transaction sees it; all of it is read now. */
    lookup get(const index &index, const index_values &values) const
    {
        return detail::look_up(values, [&](const azk_value *all, size_t count, azk_lookup **out) {
            return azk_read_index_get(handle_.get(), index.get(), all, count, out);
        });
    }

    lookup prefix(const index &index, const index_values &values) const
    {
        return detail::look_up(values, [&](const azk_value *all, size_t count, azk_lookup **out) {
            return azk_read_index_prefix(handle_.get(), index.get(), all, count, out);
        });
    }

    lookup range(const index &index, const index_values &from, const index_values &to) const
    {
        return detail::look_up(from, to, [&](auto... bounds) {
            return azk_read_index_range(handle_.get(), index.get(), bounds...);
        });
    }

private:
    detail::handle<azk_read, azk_read_end> handle_;
};

/* Several writes, all or nothing. Unless it is committed, its destructor rolls it back. */
class write_txn {
public:
    explicit write_txn(azk_write *handle) : handle_(handle) {}

    std::optional<std::string> get(const azekura::table &table, std::string_view key)
    {
        return detail::taken([&](void **value, size_t *len) {
            return azk_write_get_alloc(handle_.get(), table.get(), key.data(), key.size(), value, len);
        });
    }

    /* The value where it stands: good until the transaction is changed or ends. */
    optional_view view(const azekura::table &table, std::string_view key)
    {
        azk_bytes value;
        if (!detail::found(azk_write_get_ref(handle_.get(), table.get(), key.data(), key.size(), &value)))
            return std::nullopt;
        return detail::view(value);
    }

    template <class Keys> std::vector<std::optional<std::string>> get_many(const azekura::table &table, const Keys &keys)
    {
        return detail::fetch_many(keys, [&](const azk_bytes *all, size_t count, azk_bytes **values) {
            return azk_write_get_many(handle_.get(), table.get(), all, count, values);
        });
    }

    bool contains(const azekura::table &table, std::string_view key)
    {
        return detail::answer([&](bool *yes) {
            return azk_write_contains(handle_.get(), table.get(), key.data(), key.size(), yes);
        });
    }

    uint64_t count(const azekura::table &table)
    {
        return detail::number([&](uint64_t *n) { return azk_write_count(handle_.get(), table.get(), n); });
    }

    void put(const azekura::table &table, std::string_view key, std::string_view value)
    {
        detail::check(
            azk_write_put(handle_.get(), table.get(), key.data(), key.size(), value.data(), value.size()));
    }

    /* Sets a cursor of the feed at a commit, or removes it. */
    void set_feed_cursor(const std::string &name, std::optional<uint64_t> commit)
    {
        detail::check(azk_write_set_feed_cursor(handle_.get(), name.c_str(), commit ? &*commit : nullptr));
    }

    template <class Records> void put_many(const azekura::table &table, const Records &records)
    {
        detail::put_many(records, [&](const azk_bytes *keys, const azk_bytes *values, size_t count) {
            return azk_write_put_many(handle_.get(), table.get(), keys, values, count);
        });
    }

    void remove(const azekura::table &table, std::string_view key)
    {
        detail::check(azk_write_remove(handle_.get(), table.get(), key.data(), key.size()));
    }

    bool add(const azekura::table &table, std::string_view key, std::string_view value)
    {
        return detail::answer([&](bool *done) {
            return azk_write_add(handle_.get(), table.get(), key.data(), key.size(), value.data(), value.size(), done);
        });
    }

    bool replace(const azekura::table &table, std::string_view key, std::string_view value)
    {
        return detail::answer([&](bool *done) {
            return azk_write_replace(handle_.get(), table.get(), key.data(), key.size(), value.data(), value.size(), done);
        });
    }

    void append(const azekura::table &table, std::string_view key, std::string_view value)
    {
        detail::check(
            azk_write_append(handle_.get(), table.get(), key.data(), key.size(), value.data(), value.size()));
    }

    /// Sets the value of a key for some time, after which the record is gone by itself.
    void put_for(const azekura::table &table, std::string_view key, std::string_view value,
                 std::chrono::milliseconds ttl)
    {
        detail::check(azk_write_put_for(handle_.get(), table.get(), key.data(), key.size(), value.data(), value.size(),
                                        detail::ttl_ms(ttl)));
    }

    /// How long the records of a table live that are put from now on.
    void set_usual_ttl(const azekura::table &table, std::chrono::milliseconds ttl)
    {
        detail::check(azk_write_set_usual_ttl(handle_.get(), table.get(), detail::ttl_ms(ttl)));
    }

    /// How long a record will still be there, in this transaction, in which no time passes.
    std::optional<std::chrono::milliseconds> ttl(const azekura::table &table, std::string_view key)
    {
        return detail::lifetime([&](uint64_t *left) {
            return azk_write_ttl(handle_.get(), table.get(), key.data(), key.size(), left);
        });
    }

    /// Gives a record another time to live; with std::chrono::milliseconds::max() it stays. True if it was there.
    bool expire(const azekura::table &table, std::string_view key, std::chrono::milliseconds ttl)
    {
        return detail::answer([&](bool *done) {
            return azk_write_expire(handle_.get(), table.get(), key.data(), key.size(), detail::ttl_ms(ttl), done);
        });
    }

    int64_t increment(const azekura::table &table, std::string_view key, int64_t delta)
    {
        int64_t sum = 0;
        detail::check(azk_write_increment(handle_.get(), table.get(), key.data(), key.size(), delta, &sum));
        return sum;
    }

    /// As table::merge.
    template <typename Number>
    void merge(const azekura::table &table, std::string_view key, azk_operator operation, Number number)
    {
        static_assert(sizeof(Number) == 8 && std::is_arithmetic<Number>::value, "numbers have eight bytes");
        detail::check(azk_write_merge(handle_.get(), table.get(), key.data(), key.size(), operation, &number,
                                      sizeof number));
    }

    /// As table::merge_append.
    void merge_append(const azekura::table &table, std::string_view key, std::string_view bytes)
    {
        detail::check(azk_write_merge(handle_.get(), table.get(), key.data(), key.size(), AZK_APPEND, bytes.data(),
                                      bytes.size()));
    }

    /// As table::merge_union.
    void merge_union(const azekura::table &table, std::string_view key, int width, std::string_view elements)
    {
        detail::check(azk_write_merge(handle_.get(), table.get(), key.data(), key.size(), detail::union_of(width),
                                      elements.data(), elements.size()));
    }

    bool compare_and_swap(const azekura::table &table, std::string_view key, optional_view expected, optional_view value)
    {
        detail::optional_bytes from(expected), to(value);
        return detail::answer([&](bool *done) {
            return azk_write_compare_and_swap(handle_.get(), table.get(), key.data(), key.size(), from.get(), to.get(),
                                              done);
        });
    }

    /* As table::update; f is called once, and must not use the transaction. */
    template <class F> void update(const azekura::table &table, std::string_view key, F f)
    {
        detail::updater<F> calls(f);
        calls.check(azk_write_update(handle_.get(), table.get(), key.data(), key.size(), detail::updater<F>::call, &calls));
    }

    std::optional<std::string> take(const azekura::table &table, std::string_view key)
    {
        return detail::taken([&](void **value, size_t *len) {
            return azk_write_take(handle_.get(), table.get(), key.data(), key.size(), value, len);
        });
    }

    /* Whether it was there. */
    bool remove_existing(const azekura::table &table, std::string_view key)
    {
        return detail::answer([&](bool *done) {
            return azk_write_remove_existing(handle_.get(), table.get(), key.data(), key.size(), done);
        });
    }

    std::optional<detail::record> first(const azekura::table &table)
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) {
            return azk_write_first(handle_.get(), table.get(), key, value);
        });
    }

    std::optional<detail::record> last(const azekura::table &table)
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) {
            return azk_write_last(handle_.get(), table.get(), key, value);
        });
    }

    std::optional<detail::record> pop_first(const azekura::table &table)
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) {
            return azk_write_pop_first(handle_.get(), table.get(), key, value);
        });
    }

    std::optional<detail::record> pop_last(const azekura::table &table)
    {
        return detail::taken_record([&](azk_bytes *key, azk_bytes *value) {
            return azk_write_pop_last(handle_.get(), table.get(), key, value);
        });
    }

    /* Removes a range, and then calls f(key, value) with its records, until it is true. */
    template <class F> void drain(const azekura::table &table, optional_view from, optional_view to, F f)
    {
        detail::optional_bytes start(from), end(to);
        detail::callback<F> calls(f);
        calls.check(azk_write_drain(handle_.get(), table.get(), start.get(), end.get(), detail::callback<F>::call, &calls));
    }

    void remove_range(const azekura::table &table, optional_view from, optional_view to)
    {
        detail::optional_bytes start(from), end(to);
        detail::check(azk_write_remove_range(handle_.get(), table.get(), start.get(), end.get()));
    }

    void clear(const azekura::table &table) { detail::check(azk_write_clear(handle_.get(), table.get())); }

    azekura::cursor cursor(const azekura::table &table, optional_view from = {}, optional_view to = {})
    {
        detail::optional_bytes start(from), end(to);
        azk_cursor *out = nullptr;
        detail::check(azk_write_cursor(handle_.get(), table.get(), start.get(), end.get(), &out));
        return azekura::cursor(out);
    }

    records range(const azekura::table &table, optional_view from, optional_view to)
    {
        return records(cursor(table, from, to));
    }

    records all(const azekura::table &table) { return records(cursor(table)); }

    records prefix(const azekura::table &table, std::string_view prefix)
    {
        azk_cursor *out = nullptr;
        detail::check(azk_write_prefix_cursor(handle_.get(), table.get(), prefix.data(), prefix.size(), &out));
        return records(azekura::cursor(out));
    }

    /* What an index finds, as this transaction sees it; all of it is read now. */
    lookup get(const index &index, const index_values &values)
    {
        return detail::look_up(values, [&](const azk_value *all, size_t count, azk_lookup **out) {
            return azk_write_index_get(handle_.get(), index.get(), all, count, out);
        });
    }

    lookup prefix(const index &index, const index_values &values)
    {
        return detail::look_up(values, [&](const azk_value *all, size_t count, azk_lookup **out) {
            return azk_write_index_prefix(handle_.get(), index.get(), all, count, out);
        });
    }

    lookup range(const index &index, const index_values &from, const index_values &to)
    {
        return detail::look_up(from, to, [&](auto... bounds) {
            return azk_write_index_range(handle_.get(), index.get(), bounds...);
        });
    }

    /* The table of a name as the transaction sees it, which it makes if there is none. A handle of a table that
     * it makes is good for others once it is committed. */
    azekura::table table(const std::string &name, kind kind)
    {
        azk_table *out = nullptr;
        detail::check(azk_write_table(handle_.get(), name.c_str(), static_cast<int32_t>(kind), &out));
        return azekura::table(out);
    }

    azekura::table open_table(const std::string &name)
    {
        azk_table *out = nullptr;
        detail::check(azk_write_open_table(handle_.get(), name.c_str(), &out));
        return azekura::table(out);
    }

    azekura::table create_table(const std::string &name, kind kind)
    {
        azk_table *out = nullptr;
        detail::check(azk_write_create_table(handle_.get(), name.c_str(), static_cast<int32_t>(kind), &out));
        return azekura::table(out);
    }

    void rename_table(const std::string &from, const std::string &to)
    {
        detail::check(azk_write_rename_table(handle_.get(), from.c_str(), to.c_str()));
    }

    void drop_table(const std::string &name) { detail::check(azk_write_drop_table(handle_.get(), name.c_str())); }

    /* A place to return to. */
    uint64_t savepoint()
    {
        return detail::number([&](uint64_t *n) { return azk_write_savepoint(handle_.get(), n); });
    }

    void rollback_to(uint64_t savepoint) { detail::check(azk_write_rollback_to(handle_.get(), savepoint)); }

    /* Either ends the transaction, whatever comes of it. */
    void commit() { end(azk_write_commit(handle_.get())); }
    void rollback() { end(azk_write_rollback(handle_.get())); }

private:
    /* The handle has ended with the call, unless another call was using it. */
    void end(azk_status status)
    {
        if (status != AZK_BUSY)
            handle_.release();
        detail::check(status);
    }

    detail::handle<azk_write, azk_write_rollback> handle_;
};

/* An open database. Its destructor closes it as well as can be; close says whether all went well. */
class database {
public:
    explicit database(const std::string &path) : database(path, nullptr) {}
    database(const std::string &path, const options &options) : database(path, options.get()) {}

    azk_db *get() const { return handle_.get(); }

    /* If it throws, the database can be closed again. */
    void close()
    {
        detail::check(azk_db_close(get()));
        static_cast<void>(handle_.release());
    }

    /* The table of a name, made if there is none. */
    azekura::table table(const std::string &name, kind kind)
    {
        azk_table *out = nullptr;
        detail::check(azk_db_table(get(), name.c_str(), static_cast<int32_t>(kind), &out));
        return azekura::table(out);
    }

    /* The same of a table whose records are gone by themselves so long after they were put. */
    azekura::table expiring_table(const std::string &name, kind kind, std::chrono::milliseconds ttl)
    {
        azk_table *out = nullptr;
        detail::check(azk_db_expiring_table(get(), name.c_str(), static_cast<int32_t>(kind), detail::ttl_ms(ttl), &out));
        return azekura::table(out);
    }

    azekura::table open_table(const std::string &name)
    {
        azk_table *out = nullptr;
        detail::check(azk_db_open_table(get(), name.c_str(), &out));
        return azekura::table(out);
    }

    azekura::table create_table(const std::string &name, kind kind)
    {
        azk_table *out = nullptr;
        detail::check(azk_db_create_table(get(), name.c_str(), static_cast<int32_t>(kind), &out));
        return azekura::table(out);
    }

    std::vector<std::pair<std::string, kind>> tables() const
    {
        azk_table_info *list = nullptr;
        size_t count = 0;
        detail::check(azk_db_tables(get(), &list, &count));
        detail::memory<azk_table_info> owner(list);
        std::vector<std::pair<std::string, kind>> out;
        for (size_t i = 0; i < count; i++)
            out.emplace_back(std::string(list[i].name, list[i].name_len), static_cast<kind>(list[i].kind));
        return out;
    }

    /* A reader of the feed of changes, after a commit; its next() gives the first. */
    azekura::feed feed(uint64_t after)
    {
        azk_feed *out = nullptr;
        detail::check(azk_db_feed(get(), after, &out));
        return azekura::feed(out);
    }

    /* What is kept of the feed; none if nothing was ever fed. */
    std::optional<azk_feed_info> feed_info() const
    {
        azk_feed_info info;
        if (!detail::found(azk_db_feed_info(get(), &info)))
            return std::nullopt;
        return info;
    }

    std::optional<uint64_t> feed_cursor(const std::string &name) const
    {
        uint64_t commit = 0;
        if (!detail::found(azk_db_feed_cursor(get(), name.c_str(), &commit)))
            return std::nullopt;
        return commit;
    }

    void rename_table(const std::string &from, const std::string &to)
    {
        detail::check(azk_db_rename_table(get(), from.c_str(), to.c_str()));
    }

    void drop_table(const std::string &name) { detail::check(azk_db_drop_table(get(), name.c_str())); }

    read_txn read() const
    {
        azk_read *out = nullptr;
        detail::check(azk_read_begin(get(), &out));
        return read_txn(out);
    }

    write_txn write(durability durability = durability::as_opened, isolation isolation = isolation::serializable)
    {
        azk_write *out = nullptr;
        detail::check(azk_write_begin(get(), static_cast<int32_t>(durability), static_cast<int32_t>(isolation), &out));
        return write_txn(out);
    }

    /*
     * Runs f(write_txn &) and commits; again, after ever longer pauses, as long as others come between, and
     * `tries` times at most: then the conflict is thrown. What else f throws ends it, and nothing is written.
     */
    template <class F> std::decay_t<std::invoke_result_t<F &, write_txn &>> transact(F f, unsigned tries = 100)
    {
        for (unsigned tried = 1;; tried++) {
            try {
                write_txn txn = write();
                if constexpr (std::is_void_v<std::invoke_result_t<F &, write_txn &>>) {
                    f(txn);
                    txn.commit();
                    return;
                } else {
                    auto result = f(txn);
                    txn.commit();
                    return result;
                }
            } catch (const error &conflict) {
                if (conflict.code() != AZK_CONFLICT || tried >= tries)
                    throw;
            }
            std::this_thread::sleep_for(std::chrono::microseconds(tried < 10 ? 1u << tried : 1000u));
        }
    }

    void sync() { detail::check(azk_db_sync(get())); }
    void flush() { detail::check(azk_db_flush(get())); }
    void compact() { detail::check(azk_db_compact(get())); }
    void shrink() { detail::check(azk_db_shrink(get(), nullptr, nullptr, nullptr, nullptr)); }

    /* Throws if anything is wrong; the message has the first of it. */
    void check() { detail::check(azk_db_check(get(), nullptr, nullptr, nullptr, nullptr)); }

    /* Copies what is committed to a new file. At most so many bytes a second, 4,096 or more; 0: no limit. */
    void copy(const std::string &path, uint64_t bytes_per_second = 0)
    {
        detail::check(azk_db_copy_paced(get(), path.c_str(), bytes_per_second, nullptr, nullptr));
    }

    /* Adds a point to the repository in a directory, which is made if there is none. At most so many bytes a
       second are copied, 4,096 or more; 0: no limit. */
    azk_backup_report backup(const std::string &repository, uint64_t bytes_per_second = 0)
    {
        azk_backup_report report;
        report.size = sizeof report;
        detail::check(azk_db_backup_paced(get(), repository.c_str(), bytes_per_second, nullptr, nullptr, &report));
        return report;
    }

    azk_stats stats() const
    {
        azk_stats stats;
        stats.size = sizeof stats;
        detail::check(azk_db_stats(get(), &stats));
        return stats;
    }

    /* The checkpoints that followers of other handles read, the oldest first. */
    std::vector<azk_pin> pins() const
    {
        azk_pin *list = nullptr;
        size_t count = 0;
        detail::check(azk_db_pins(get(), &list, &count));
        detail::memory<azk_pin> owner(list);
        return std::vector<azk_pin>(list, list + count);
    }

private:
    /* Closed if it can be, and given up in any case. */
    static azk_status end(azk_db *db)
    {
        azk_status closed = azk_db_close(db);
        return closed == AZK_OK ? closed : azk_db_free(db);
    }

    database(const std::string &path, const azk_options *options)
    {
        azk_db *out = nullptr;
        detail::check(azk_db_open(path.c_str(), options, &out));
        handle_.reset(out);
    }

    detail::handle<azk_db, end> handle_;
};

} // namespace azekura

#endif
