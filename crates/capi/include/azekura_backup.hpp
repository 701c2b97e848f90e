/* A part of azekura.hpp, which includes it: repositories of backups. */
#ifndef AZEKURA_BACKUP_HPP
#define AZEKURA_BACKUP_HPP

#ifndef AZEKURA_HPP
#error "include azekura.hpp"
#endif

namespace azekura {

/* Which point of a repository. */
struct which {
    azk_which what = AZK_NEWEST;
    uint64_t number = 0;

    static which newest() { return {}; }
    static which point(uint64_t number) { return {AZK_POINT, number}; }
    static which commit(uint64_t number) { return {AZK_COMMIT, number}; }

    /* The newest that began at this time or before. */
    static which time(std::chrono::system_clock::time_point time)
    {
        auto since = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch());
        return {AZK_TIME, static_cast<uint64_t>(since.count())};
    }
};

/* A repository, which database::backup has made. Each call opens it. */
class repository {
public:
    explicit repository(std::string path) : path_(std::move(path)) {}

    std::vector<azk_point> points() const
    {
        azk_point *list = nullptr;
        size_t count = 0;
        int32_t status = azk_repository_points(path_.c_str(), &list, &count);
        detail::memory<azk_point> owner(list);
        detail::check(status);
        return std::vector<azk_point>(list, list + count);
    }

    /* Makes a new database of a point. */
    azk_point restore(which which, const std::string &path) const
    {
        azk_point point;
        detail::check(azk_repository_restore(path_.c_str(), which.what, which.number, path.c_str(), nullptr, nullptr, &point));
        return point;
    }

    /* Throws if anything is wrong. The message has the first of it. */
    void verify() const { detail::check(azk_repository_verify(path_.c_str(), nullptr, nullptr, nullptr, nullptr)); }

    /* Removes the points that are not to be kept, and tells how many. `keep` is as in azk_repository_prune. */
    uint64_t prune(const std::string &keep)
    {
        return detail::number([&](uint64_t *removed) {
            return azk_repository_prune(path_.c_str(), keep.c_str(), nullptr, nullptr, nullptr, removed);
        });
    }

private:
    std::string path_;
};

} // namespace azekura

#endif
