#include "spill/journal_directory.hpp"

#include "spillway/error.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>

#include <fcntl.h>
#include <unistd.h>

namespace spillway {
namespace {

constexpr const char* opening = "opening the journal";
constexpr std::string_view prefix = "journal-";
constexpr std::size_t digits = 8;
constexpr std::uint64_t last_number = 99'999'999;

/// Others' bits.
constexpr unsigned group_and_others = 077, writable_by_others = 022;

std::optional<std::uint64_t> number_of(std::string_view name) {
    if (name.size() != prefix.size() + digits || !name.starts_with(prefix)) return std::nullopt;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
    return number;
}

std::string name_of(std::uint64_t number) {
    std::string text = std::to_string(number);
    return std::string(prefix) + std::string(digits - text.size(), '0') + text;
}

[[noreturn]] void refuse(const std::string& where, const char* detail) {
    throw Error(ErrorCode::usage, opening, where, detail);
}

} // namespace

JournalDirectory::JournalDirectory(std::string path, std::shared_ptr<FileSystem> files)
    : path_(std::move(path)), files_(std::move(files)) {
    if (path_.empty()) refuse("", "no directory was named");
    const int made = uninterrupted([&] { return files_->make_directory(AT_FDCWD, path_.c_str(), S_IRWXU); });
    if (made < 0 && made != -EEXIST)
        throw system_error(-made, "making the journal's directory", path_, code_of_directory(-made));
    // A trailing slash would follow a link.
    std::string bare = path_;
    while (bare.size() > 1 && bare.back() == '/') bare.pop_back();
    const int opened = uninterrupted(
        [&] { return files_->open(AT_FDCWD, bare.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0); });
    // For a link the kernel answers ENOTDIR, since O_DIRECTORY is looked at first.
    if (opened == -ENOTDIR || opened == -ELOOP)
        refuse(path_, "it is no directory but a file or a link: name the directory itself");
    if (opened < 0) throw system_error(-opened, opening, path_, code_of_directory(-opened));
    handle_ = FileHandle(*files_, opened);

    struct stat status {};
    if (const int error = uninterrupted([&] { return files_->status(opened, status); }); error < 0)
        throw system_error(-error, opening, path_, ErrorCode::disk);
    if (status.st_uid != ::geteuid()) refuse(path_, "it belongs to another user: name a directory of your own");
    if ((status.st_mode & writable_by_others) != 0) refuse(path_, "others may write in it: chmod 700, or name another");
    const int locked = uninterrupted([&] { return files_->lock(opened); });
    if (locked == -EWOULDBLOCK) refuse(path_, "another run is using it: wait for its end, or name another directory");
    if (locked < 0) throw system_error(-locked, "locking the journal's directory", path_, ErrorCode::disk);
    for (const std::string& name : journals()) last_ = std::max(last_, number_of(name).value_or(0));
}

std::vector<std::string> JournalDirectory::journals() const {
    std::vector<std::string> names;
    if (const int error = uninterrupted([&] { return files_->list(handle_.descriptor(), names); }); error < 0)
        throw system_error(-error, opening, path_, ErrorCode::disk);
    std::erase_if(names, [](const std::string& name) { return !number_of(name); });
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end()); // A listing that was interrupted began again.
    return names;
}

FileHandle JournalDirectory::open(const std::string& name, std::uint64_t& bytes) const {
    const std::string where = path_ + '/' + name;
    // Without waiting, should it be a pipe.
    constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int opened = uninterrupted([&] { return files_->open(handle_.descriptor(), name.c_str(), flags, 0); });
    if (opened == -ELOOP) refuse(where, "it is a link: remove it");
    if (opened < 0) throw system_error(-opened, opening, where, ErrorCode::disk);
    FileHandle file(*files_, opened);
    struct stat status {};
    if (const int error = uninterrupted([&] { return files_->status(opened, status); }); error < 0)
        throw system_error(-error, opening, where, ErrorCode::disk);
    if (!S_ISREG(status.st_mode)) refuse(where, "it is no plain file: remove it");
    if (status.st_uid != ::geteuid()) refuse(where, "it belongs to another user: remove it");
    if (status.st_nlink != 1) refuse(where, "it has a second name elsewhere: remove it");
    if ((status.st_mode & group_and_others) != 0) refuse(where, "others may use it: chmod 600 if you trust it");
    bytes = static_cast<std::uint64_t>(status.st_size);
    return file;
}

int JournalDirectory::create(FileHandle& file) {
    if (sync_error_ != 0) return sync_error_;
    if (last_ >= last_number) return EFBIG;
    constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const std::string name = name_of(++last_);
    const int opened =
        uninterrupted([&] { return files_->open(handle_.descriptor(), name.c_str(), flags, S_IRUSR | S_IWUSR); });
    if (opened < 0) return -opened;
    FileHandle made(*files_, opened);
    if (const int error = files_->sync(handle_.descriptor(), false); error < 0) return sync_error_ = -error;
    file = std::move(made);
    return 0;
}

void JournalDirectory::remove(const std::string& name) {
    const int error = uninterrupted([&] { return files_->unlink(handle_.descriptor(), name.c_str()); });
    if (error < 0 && error != -ENOENT)
        throw system_error(-error, "removing the journal", path_ + '/' + name, ErrorCode::disk);
}

} // namespace spillway
