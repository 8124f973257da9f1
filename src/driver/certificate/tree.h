// The files of a folder that make wrote, as they lie there now, and one hash for all of them.
//
// A certificate names every file of its folder but itself, and their root: whoever has the root
// elsewhere, in a log or a commit, need not compare the rest. It is what coreutils give:
//
//   cd out/NAME; find . -type f ! -path ./certificate.json -printf '%P\n' | LC_ALL=C sort |
//     xargs -d '\n' sha256sum | sha256sum
//
// The folder may come from a stranger. So each entry is asked what it is before anything is opened
// (lstat), only regular files are, and without waiting or following: a FIFO cannot keep the reader
// for ever, and a link leads nowhere. Each file is read once; what was hashed is what later stages
// get.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kw::driver {

using Hashes = std::map<std::string, std::string>;  // name in the folder -> SHA-256

std::string root_of(const Hashes& files);

// Of every regular file below `folder` but certificate.json.
Hashes hash_files(const std::filesystem::path& folder);

// An entry of a folder that is not as the certificate says, in two facts: "was 0123..., is a FIFO".
struct Stray {
  std::string name;  // as it can be printed
  std::string what;
};

struct Tree {
  std::map<std::string, std::string> texts;  // by name, of the files that are the named ones
  std::vector<Stray> strays;                 // in the order of their names
};

// Holds a folder against the files that a certificate names, none of which leads out of it.
Tree read_tree(const std::filesystem::path& folder, const Hashes& named);

// A file's bytes, where it is a regular file itself, no link to one, and no larger than any of
// ours. Else nothing, and `why`: "is a FIFO", "is not there".
std::optional<std::string> read_plain_file(const std::filesystem::path& path, std::string& why);

}  // namespace kw::driver
