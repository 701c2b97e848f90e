/* A part of azekura.hpp, which includes it: indexes, and what they find. */
#ifndef AZEKURA_INDEX_HPP
#define AZEKURA_INDEX_HPP

#ifndef AZEKURA_HPP
#error "include azekura.hpp"
#endif

namespace azekura {

/*
 * A value of a field of an index: text, a number, true or false, or nullptr for what a record does not have. Text is a
 * view, which is to be there for the call's time.
 */
class index_value {
public:
    index_value(std::nullptr_t) : value_() { value_.kind = AZK_VALUE_NULL; }

    template <class T, std::enable_if_t<std::is_convertible_v<const T &, std::string_view>, int> = 0>
    index_value(const T &text) : index_value(AZK_VALUE_TEXT, std::string_view(text))
    {
    }

    template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> index_value(T number) : value_()
    {
        if constexpr (std::is_floating_point_v<T>) {
            value_.kind = AZK_VALUE_F64;
            value_.f64 = number;
        } else if constexpr (std::is_signed_v<T>) {
            value_.kind = AZK_VALUE_I64;
            value_.i64 = number;
        } else {
            value_.kind = AZK_VALUE_U64;
            value_.u64 = number;
        }
    }

    /* Bytes that need not be UTF-8. */
    static index_value bytes(std::string_view bytes) { return index_value(AZK_VALUE_BYTES, bytes); }

    const azk_value &get() const { return value_; }

private:
    index_value(int32_t kind, std::string_view view) : value_()
    {
        value_.kind = kind;
        value_.bytes = detail::bytes(view);
    }

    azk_value value_;
};

/* Values of the first fields of an index: {"london", 1815}. */
using index_values = std::vector<index_value>;

/*
 * Records that an index has found, in its order, from both ends; each is given once. To loop over, once:
 * for (auto [key, value] : by_city.get({"london"})). Views are good until the next step.
 */
class lookup {
public:
    using iterator = detail::record_iterator<lookup>;

    explicit lookup(azk_lookup *handle) : handle_(handle) {}

    /* To the next record, or to the next one from the end; false if there is none. */
    bool next() { return detail::found(azk_lookup_next(handle_.get(), &key_, &value_)); }
    bool next_back() { return detail::found(azk_lookup_next_back(handle_.get(), &key_, &value_)); }

    /* The same for its key alone: the record is not read, and value() is empty. */
    bool next_key() { return key_alone(azk_lookup_next(handle_.get(), &key_, nullptr)); }
    bool next_key_back() { return key_alone(azk_lookup_next_back(handle_.get(), &key_, nullptr)); }

    std::string_view key() const { return detail::view(key_); }
    std::string_view value() const { return detail::view(value_); }

    iterator begin() { return iterator(this); }
    iterator end() { return iterator(); }

private:
    bool key_alone(azk_status status)
    {
        value_ = {nullptr, 0};
        return detail::found(status);
    }

    detail::handle<azk_lookup, azk_lookup_free> handle_;
    azk_bytes key_{nullptr, 0}, value_{nullptr, 0};
};

namespace detail {

/* Values as C takes them. */
class raw_values {
public:
    explicit raw_values(const index_values &values)
    {
        for (const index_value &value : values)
            all_.push_back(value.get());
    }

    const azk_value *data() const { return all_.data(); }
    size_t size() const { return all_.size(); }

private:
    std::vector<azk_value> all_;
};

/* A lookup by one list of values. */
template <class Get> lookup look_up(const index_values &values, Get get)
{
    raw_values raw(values);
    azk_lookup *out = nullptr;
    check(get(raw.data(), raw.size(), &out));
    return lookup(out);
}

/* A lookup between two. */
template <class Get> lookup look_up(const index_values &from, const index_values &to, Get get)
{
    raw_values start(from), end(to);
    azk_lookup *out = nullptr;
    check(get(start.data(), start.size(), end.data(), end.size(), &out));
    return lookup(out);
}

} // namespace detail

/* An index of a table. Each lookup is of a snapshot of its own; transactions have theirs. */
class index {
public:
    explicit index(azk_index *handle) : handle_(handle) {}

    azk_index *get() const { return handle_.get(); }

    /* The records whose first fields have these values; with none all that are in the index. */
    lookup get(const index_values &values) const
    {
        return detail::look_up(values, [&](const azk_value *all, size_t count, azk_lookup **out) {
            return azk_index_get(get(), all, count, out);
        });
    }

    /* Of the last value, text or bytes, only the beginning is given. */
    lookup prefix(const index_values &values) const
    {
        return detail::look_up(values, [&](const azk_value *all, size_t count, azk_lookup **out) {
            return azk_index_prefix(get(), all, count, out);
        });
    }

    /* From some values on, and below others; {} is no bound. */
    lookup range(const index_values &from, const index_values &to) const
    {
        return detail::look_up(from, to, [&](auto... bounds) { return azk_index_range(get(), bounds...); });
    }

    uint64_t count(const index_values &values) const
    {
        detail::raw_values raw(values);
        return detail::number([&](uint64_t *n) { return azk_index_count(get(), raw.data(), raw.size(), n); });
    }

    /* The first record that get finds, or the last one. */
    std::optional<detail::record> first(const index_values &values) const
    {
        lookup found = get(values);
        return found.next() ? std::optional(detail::record(found.key(), found.value())) : std::nullopt;
    }

    std::optional<detail::record> last(const index_values &values) const
    {
        lookup found = get(values);
        return found.next_back() ? std::optional(detail::record(found.key(), found.value())) : std::nullopt;
    }

private:
    detail::handle<azk_index, azk_index_free> handle_;
};

/* One index of a table. create_index goes on with one that is not ready. */
struct index_info {
    std::string name, spec;
    bool is_ready;
    /* About how many entries it has, and their bytes. */
    uint64_t entries, bytes;
};

} // namespace azekura

#endif
