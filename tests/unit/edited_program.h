// Programs as small edits of others: tests/wrong/FOLDER/NAME.edit, in the format of
// support/edits.h. FOLDER is what is wrong in them, or `right`.
//
//   base: causal            full or full_bwd (the corpus), or a name in tests/wrong/right
//   expect: refuted
//   first: map_at s         how the first statement that differs begins
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "in_clone.h"
#include "support/edits.h"
#include "support/lines.h"
#include "support/source.h"
#include "tl/program.h"

namespace kw::test {

using kw::lines_of;

struct Edit : kw::Edit {
  std::string base = "full";
};

inline Edit read_edit(const std::string& path) {
  Diagnostics d;
  std::optional<kw::Edit> read = kw::read_edit(path, d);
  EXPECT_TRUE(read) << render(d);
  Edit edit{read ? std::move(*read) : kw::Edit{}, "full"};
  if (edit.head.count("base")) edit.base = edit.head.at("base");
  return edit;
}

// The file of each wrong program, by its name.
inline const std::map<std::string, std::string>& wrong_files() {
  static const std::map<std::string, std::string> files = [] {
    std::map<std::string, std::string> found;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(in_clone("/tests/wrong"))) {
      const std::filesystem::path& path = file.path();
      if (path.extension() != ".edit" || path.parent_path().filename() == "right") continue;
      EXPECT_TRUE(found.emplace(path.stem().string(), path.string()).second)
          << path << " has the name of another wrong program";
    }
    return found;
  }();
  return files;
}

inline std::string text_of(const std::string& name);

inline std::string apply(const Edit& edit) {
  Diagnostics d;
  const std::optional<std::string> text = apply_edit(edit, text_of(edit.base), d);
  EXPECT_TRUE(text) << render(d);
  return text.value_or("");
}

inline std::string text_of(const std::string& name) {
  const std::string tests = in_clone("/tests");
  if (name == "full") return read_source(tests + "/corpus/sm90_attention_fwd.tl")->text;
  if (name == "full_decode") return read_source(tests + "/corpus/sm90_attention_decode.tl")->text;
  if (name == "full_bwd") return read_source(tests + "/corpus/sm90_attention_bwd.tl")->text;
  if (name == "full_mla_bwd") return read_source(tests + "/corpus/sm90_attention_bwd_mla.tl")->text;
  if (name == "full_narrow_bwd")
    return read_source(tests + "/corpus/sm90_attention_bwd_narrow.tl")->text;
  if (name == "full_sm80_bwd") return read_source(tests + "/corpus/sm80_attention_bwd.tl")->text;
  if (name == "full_wide_bwd")
    return read_source(tests + "/corpus/sm90_attention_bwd_wide.tl")->text;
  return apply(read_edit(tests + "/wrong/right/" + name + ".edit"));
}

inline std::optional<tl::Program> parsed(const std::string& name, const std::string& text) {
  Diagnostics d;
  std::optional<tl::Program> p = tl::parse(make_source(name + ".tl", text), d);
  EXPECT_TRUE(p) << render(d);
  return p;
}

}  // namespace kw::test
