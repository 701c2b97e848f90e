/* A part of azekura.hpp, which includes it: errors, choices, options, and what the classes share. */
#ifndef AZEKURA_BASE_HPP
#define AZEKURA_BASE_HPP

#ifndef AZEKURA_HPP
#error "include azekura.hpp"
#endif

namespace azekura {

/* What went wrong: a message, and the status of the call. */
class error : public std::runtime_error {
public:
    explicit error(int32_t status) : std::runtime_error(text(status)), status_(status) {}

    azk_status code() const noexcept { return static_cast<azk_status>(status_); }

private:
    /* Calls that give a status which is no error leave no message. */
    static std::string text(int32_t status)
    {
        bool is_error = status > 0 || status <= AZK_BAD_HANDLE;
        return is_error ? azk_error_message() : azk_status_name(status);
    }

    int32_t status_;
};

enum class kind : int32_t { ordered = AZK_ORDERED, hash = AZK_HASH };

enum class durability : int32_t {
    as_opened = AZK_DURABILITY_DEFAULT,
    sync = AZK_DURABILITY_SYNC,
    eventual = AZK_DURABILITY_EVENTUAL
};

enum class follow : int32_t { nothing = AZK_FOLLOW_NOTHING, checkpoints = AZK_FOLLOW_CHECKPOINTS, log = AZK_FOLLOW_LOG };

enum class isolation : int32_t { serializable = AZK_SERIALIZABLE, snapshot = AZK_SNAPSHOT };

/* A key, a value, or a bound that may be missing. */
using optional_view = std::optional<std::string_view>;

namespace detail {

inline void check(int32_t status)
{
    if (status != AZK_OK)
        throw error(status);
}

/* The operation that unites a set with elements of so many bytes; none for a width that sets do not have. */
inline int32_t union_of(int width)
{
    return width >= 1 && width <= 255 ? AZK_UNION + 256 * (width - 1) : 0;
}

/* Whether there was something. */
inline bool found(int32_t status)
{
    if (status == AZK_NOT_FOUND)
        return false;
    check(status);
    return true;
}

inline azk_bytes bytes(std::string_view view) { return azk_bytes{view.data(), view.size()}; }

inline std::string_view view(azk_bytes bytes) { return {static_cast<const char *>(bytes.data), bytes.len}; }

/* A bound or value for C, which has NULL where there is none. */
class optional_bytes {
public:
    explicit optional_bytes(optional_view view) : is_there_(view.has_value()), bytes_(bytes(view.value_or(""))) {}

    const azk_bytes *get() const { return is_there_ ? &bytes_ : nullptr; }

private:
    bool is_there_;
    azk_bytes bytes_;
};

struct free_memory {
    void operator()(void *memory) const { azk_free(memory); }
};

template <class T> using memory = std::unique_ptr<T, free_memory>;

/* A handle that is freed by a function. */
template <class H, azk_status (*Free)(H *)> struct free_handle {
    void operator()(H *handle) const { Free(handle); }
};

template <class H, azk_status (*Free)(H *)> using handle = std::unique_ptr<H, free_handle<H, Free>>;

/* A value by way of a buffer, which is made large enough if it must. */
template <class Get> std::optional<std::string> fetch(Get get)
{
    char small[256];
    size_t len = 0;
    int32_t status = get(static_cast<void *>(small), sizeof small, &len);
    if (status == AZK_OK)
        return std::string(small, len);
    std::string large;
    while (status == AZK_BUFFER_TOO_SMALL) {
        large.resize(len);
        status = get(static_cast<void *>(large.data()), large.size(), &len);
    }
    if (!found(status))
        return std::nullopt;
    large.resize(len);
    return large;
}

/* A value in memory of the library's. */
template <class Take> std::optional<std::string> taken(Take take)
{
    void *value = nullptr;
    size_t len = 0;
    if (!found(take(&value, &len)))
        return std::nullopt;
    memory<void> owner(value);
    return std::string(static_cast<const char *>(value), len);
}

/* A key and a value. */
using record = std::pair<std::string, std::string>;

/* A record in one block of the library's, which begins with the key. */
template <class Take> std::optional<record> taken_record(Take take)
{
    azk_bytes key, value;
    if (!found(take(&key, &value)))
        return std::nullopt;
    memory<void> owner(const_cast<void *>(key.data));
    return record(view(key), view(value));
}

/* A function of the caller's for records, as a callback for C. What it throws waits until the call is over. */
template <class F> class callback {
public:
    explicit callback(F &f) : f_(f) {}

    /* As azk_scan_fn. After an exception it answers 1. */
    static int32_t call(void *self, const void *key, size_t key_len, const void *value, size_t value_len)
    {
        auto *own = static_cast<callback *>(self);
        if (own->thrown_)
            return 1;
        try {
            return own->f_(view({key, key_len}), view({value, value_len})) ? 1 : 0;
        } catch (...) {
            own->thrown_ = std::current_exception();
            return 1;
        }
    }

    /* The status of the call. That the walk was ended is none. */
    void check(int32_t status) const
    {
        if (thrown_)
            std::rethrow_exception(thrown_);
        if (status != AZK_STOPPED)
            detail::check(status);
    }

private:
    F &f_;
    std::exception_ptr thrown_;
};

/* A function of the caller's that makes a value of an old one, as a callback for C. */
template <class F> class updater {
public:
    explicit updater(F &f) : f_(f) {}

    /* As azk_update_fn. After an exception it answers 1. */
    static int32_t call(void *self, azk_bytes *value)
    {
        auto *own = static_cast<updater *>(self);
        try {
            own->made_ = own->f_(value->data == nullptr ? optional_view() : optional_view(view(*value)));
            *value = own->made_ ? bytes(*own->made_) : azk_bytes{nullptr, 0};
            return 0;
        } catch (...) {
            own->thrown_ = std::current_exception();
            return 1;
        }
    }

    void check(int32_t status) const
    {
        if (thrown_)
            std::rethrow_exception(thrown_);
        detail::check(status);
    }

private:
    F &f_;
    std::optional<std::string> made_;
    std::exception_ptr thrown_;
};

/* Whether what an iterator gives is still there when it has gone on. */
template <class Item> constexpr bool stays = std::is_reference_v<Item> || std::is_same_v<Item, std::string_view>;

/* The values of several keys. */
template <class Keys, class Get> std::vector<std::optional<std::string>> fetch_many(const Keys &keys, Get get)
{
    static_assert(stays<decltype(*std::begin(keys))>, "the keys are to outlive the call: give them as views, or in a container");
    std::vector<azk_bytes> all;
    for (const auto &key : keys)
        all.push_back(bytes(key));
    azk_bytes *values = nullptr;
    check(get(all.data(), all.size(), &values));
    memory<azk_bytes> owner(values);
    std::vector<std::optional<std::string>> out(all.size());
    for (size_t i = 0; i < all.size(); i++)
        if (values[i].data != nullptr)
            out[i] = std::string(view(values[i]));
    return out;
}

/* Pairs of keys and values, as two arrays. */
template <class Records, class Put> void put_many(const Records &records, Put put)
{
    static_assert(std::is_reference_v<decltype(*std::begin(records))>, "the records are to outlive the call: give them in a container");
    std::vector<azk_bytes> keys, values;
    for (const auto &[key, value] : records) {
        keys.push_back(bytes(key));
        values.push_back(bytes(value));
    }
    check(put(keys.data(), values.data(), keys.size()));
}

template <class Call> bool answer(Call call)
{
    bool yes = false;
    check(call(&yes));
    return yes;
}

template <class Call> uint64_t number(Call call)
{
    uint64_t n = 0;
    check(call(&n));
    return n;
}

} // namespace detail

/* How to open a database. What each option means is in azekura.h. */
class options {
public:
    options()
    {
        azk_options *out = nullptr;
        detail::check(azk_options_create(&out));
        handle_.reset(out);
    }

    azk_options *get() const { return handle_.get(); }

    options &create(bool yes) { return set(azk_options_set_create(get(), yes)); }
    options &exclusive(bool yes) { return set(azk_options_set_exclusive(get(), yes)); }
    options &read_only(bool yes) { return set(azk_options_set_read_only(get(), yes)); }
    options &memory_bytes(uint64_t bytes) { return set(azk_options_set_memory_bytes(get(), bytes)); }
    options &memtable_bytes(uint64_t bytes) { return set(azk_options_set_memtable_bytes(get(), bytes)); }
    options &large_value_bytes(uint32_t bytes) { return set(azk_options_set_large_value_bytes(get(), bytes)); }
    options &background_merges(bool yes) { return set(azk_options_set_background_merges(get(), yes)); }
    options &mapped(bool yes) { return set(azk_options_set_mapped(get(), yes)); }
    options &follow(azekura::follow what) { return set(azk_options_set_follow(get(), static_cast<int32_t>(what))); }
    options &pinned_bytes_max(uint64_t bytes) { return set(azk_options_set_pinned_bytes_max(get(), bytes)); }
    options &require_mirror(bool yes) { return set(azk_options_set_require_mirror(get(), yes)); }
    options &threads(bool yes) { return set(azk_options_set_threads(get(), yes)); }

    options &durability(azekura::durability durability)
    {
        return set(azk_options_set_durability(get(), static_cast<int32_t>(durability)));
    }

    options &eventual_delay(std::chrono::milliseconds delay)
    {
        return set(azk_options_set_eventual_delay_ms(get(), static_cast<uint64_t>(delay.count())));
    }

    options &pinned_age_max(std::chrono::milliseconds age)
    {
        return set(azk_options_set_pinned_age_max_ms(get(), static_cast<uint64_t>(age.count())));
    }

    options &mirror_timeout(std::chrono::milliseconds time)
    {
        return set(azk_options_set_mirror_timeout_ms(get(), static_cast<uint64_t>(time.count())));
    }

private:
    options &set(int32_t status)
    {
        detail::check(status);
        return *this;
    }

    detail::handle<azk_options, azk_options_free> handle_;
};

} // namespace azekura

#endif
