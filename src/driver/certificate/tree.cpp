#include "driver/certificate/tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "support/files.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

// No file of ours has a hundredth of it: what is larger is not read to find that out.
constexpr off_t kLargest = off_t{1} << 28, kTogether = off_t{1} << 30;
constexpr int kDeepestFolder = 16;  // folders in folders; make writes two

// The names of sha256sum: a backslash before the hash says that the name has escapes.
std::string line_of(const std::string& name, const std::string& hash) {
  std::string escaped;
  for (char c : name)
    escaped += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\\' ? "\\\\" : std::string(1, c);
  return fmt::format("{}{}  {}\n", escaped == name ? "" : "\\", hash, escaped);
}

// A name for a message: no byte of it moves a cursor or is no text.
std::string printable(const std::string& name) {
  std::string out;
  for (unsigned char c : name)
    out +=
        c >= 0x20 && c < 0x7f ? std::string(1, static_cast<char>(c)) : fmt::format("\\x{:02x}", c);
  return out.size() <= 120 ? out : out.substr(0, 117) + "...";
}

const char* kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::regular:
      return "a file";
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::symlink:
      return "a symbolic link";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    case fs::file_type::not_found:
      return "not there";
    default:
      return "no file that can be read";
  }
}

// What lies below a folder, by name, without following a link.
class Listing {
 public:
  explicit Listing(const fs::path& folder) { list(folder, "", 0); }

  std::map<std::string, fs::file_type> found;
  std::map<std::string, std::string> unread;  // folders, and why

 private:
  void list(const fs::path& folder, const std::string& prefix, int depth) {
    std::error_code failed;
    fs::directory_iterator at(folder, failed), end;
    for (; !failed && at != end; at.increment(failed)) {
      const std::string name = prefix + at->path().filename().string();
      if (name == "certificate.json") continue;  // asked for what it is by who reads it
      std::error_code unknown;
      const fs::file_type type = at->symlink_status(unknown).type();
      found[name] = type;
      if (type != fs::file_type::directory) continue;
      if (depth < kDeepestFolder)
        list(at->path(), name + "/", depth + 1);
      else
        unread[name] = fmt::format("is more than {} folders deep", kDeepestFolder);
    }
    if (failed) unread[prefix.empty() ? "." : prefix] = "cannot be read: " + failed.message();
  }
};

// The bytes of a regular file. Between the listing and this somebody may put something else there,
// so the open file is asked once more.
std::optional<std::string> read_regular(const fs::path& path, off_t most, std::string& why) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  struct stat is {};
  if (file < 0 || fstat(file, &is) != 0) {
    why = fmt::format("cannot be read: {}", std::strerror(errno));
    if (file >= 0) close(file);
    return std::nullopt;
  }
  std::string bytes;
  if (!S_ISREG(is.st_mode)) why = "is no regular file";
  if (is.st_size > most) why = fmt::format("has {} bytes, and no file of make's has", is.st_size);
  if (why.empty()) bytes.resize(static_cast<size_t>(is.st_size));
  for (size_t at = 0; why.empty() && at < bytes.size();) {
    const ssize_t got = read(file, bytes.data() + at, bytes.size() - at);
    if (got <= 0)
      why = fmt::format("ends after {} of {} bytes", at, bytes.size());
    else
      at += static_cast<size_t>(got);
  }
  close(file);
  if (!why.empty()) return std::nullopt;
  return bytes;
}

// "kw", "kw/ops" of kw/ops/maps.cuh.
void add_folders(const std::string& name, std::set<std::string>& folders) {
  for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
    folders.insert(name.substr(0, at));
}

}  // namespace

std::string root_of(const Hashes& files) {
  std::string lines;
  for (const auto& [name, hash] : files) lines += line_of(name, hash);
  return sha256(lines);
}

Hashes hash_files(const fs::path& folder) {
  Hashes out;
  for (const auto& [name, type] : Listing(folder).found) {
    std::string why;
    if (type != fs::file_type::regular) continue;
    const auto bytes = read_regular(folder / name, kLargest, why);
    out[name] = bytes ? sha256(*bytes) : "unreadable";
  }
  return out;
}

std::optional<std::string> read_plain_file(const fs::path& path, std::string& why) {
  std::error_code unknown;
  const fs::file_type type = fs::symlink_status(path, unknown).type();
  if (type == fs::file_type::regular) return read_regular(path, kLargest, why);
  why = fmt::format("is {}", kind_of(type));
  return std::nullopt;
}

Tree read_tree(const fs::path& folder, const Hashes& named) {
  Tree tree;
  std::map<std::string, std::string> strays;
  std::set<std::string> folders;
  const Listing listing(folder);
  off_t left = kTogether;
  for (const auto& entry : named) {
    const std::string &name = entry.first, &hash = entry.second;  // clang 14 captures no bindings
    add_folders(name, folders);
    const auto at = listing.found.find(name);
    const auto was = [&](const std::string& is) {
      strays[name] = fmt::format("was {:.12}..., {}", hash, is);
    };
    if (at == listing.found.end()) {
      was("is not there");
    } else if (at->second != fs::file_type::regular) {
      was(fmt::format("is {}", kind_of(at->second)));
    } else {
      std::string why;
      auto bytes = read_regular(folder / name, std::min(kLargest, left), why);
      const std::string is = bytes ? sha256(*bytes) : "";
      if (!bytes) {
        was(why);
      } else if (is != hash) {
        was(fmt::format("is {:.12}...", is));
      } else {
        left -= static_cast<off_t>(bytes->size());
        tree.texts[name] = std::move(*bytes);
      }
    }
  }
  for (const auto& [name, type] : listing.found)
    if (!named.count(name) && !(type == fs::file_type::directory && folders.count(name)))
      strays[name] =
          fmt::format("is {}, and the certificate names none of this name", kind_of(type));
  for (const auto& [name, why] : listing.unread) strays[name] = why;
  for (const auto& [name, what] : strays) tree.strays.push_back({printable(name), what});
  return tree;
}

}  // namespace kw::driver
