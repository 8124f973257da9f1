// Programs that somebody wrote to pass the check (tests/attacks/FAMILY/NAME.edit), as tests read
// them: each is an edit of what the rules make of a form.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "check/check.h"
#include "in_clone.h"
#include "support/edits.h"
#include "transfer_form.h"
#include "with_heads.h"

namespace kw::test::attacks {

inline std::filesystem::path folder() { return in_clone("/tests/attacks"); }

inline Edit edit_of(const std::string& name) {
  Diagnostics d;
  const auto edit = read_edit((folder() / (name + ".edit")).string(), d);
  EXPECT_TRUE(edit) << render(d);
  return edit.value_or(Edit{});
}

// The lines of the form, as tests/unit/transfer_form.h reads them; of several arguments "; " parts them.
inline std::string form_lines(const Edit& edit) {
  std::string lines;
  for (const char* word : {"product", "argument", "pages", "queries", "q_sum", "q_row", "normaliser",
                           "score", "keep", "sink", "epilogue"})
    if (edit.head.count(word)) {
      std::string said = edit.head.at(word);
      for (size_t at; (at = said.find("; ")) != std::string::npos;)
        said.replace(at, 2, fmt::format("\n{} ", word));
      lines += fmt::format("{} {}\n", word, said);
    }
  if (edit.head.count("gradients")) lines += "gradients\n";
  return lines;
}

// Of two key heads and eight query heads, or of as many as it says; or a product.
inline spec::Form form_of(const Edit& edit) {
  if (edit.head.count("product"))
    return with_sizes(
        transfer::form_of(fmt::format("product\nvalue {}\n", edit.head.at("product"))));
  return with_heads(transfer::form_of(form_lines(edit)),
                    edit.head.count("heads") ? std::stoll(edit.head.at("heads")) : 8);
}

inline std::string target_of(const Edit& edit) {
  return edit.head.count("target") ? edit.head.at("target") : "sm_90a";
}

inline std::optional<tl::Program> right_program(const spec::Form& form, const std::string& target) {
  Diagnostics d;
  const auto [kernel, machine] = transfer::start_of(form, target);
  auto result = transfer::transfer(kernel, form, machine, d);
  EXPECT_TRUE(result) << render(d);
  if (!result) return std::nullopt;
  return tl::parse(make_source("right.tl", tl::print(result->program)), d);
}

// Of the check that attacks meet: everybody's, but for its number of cases.
inline check::Options options() {
  check::Options o;
  o.cases = 6;
  o.exact_cases = 2;
  o.missed = 0x1p-50;
  o.further_scores = 8'000'000;
  o.self_check_step = 0;
  o.shrink = o.schedules = false;
  return o;
}

inline std::string end_of(const check::Report& r) {
  const std::string code = r.diagnostics.all().empty() ? "" : r.diagnostics.all()[0].code;
  switch (r.verdict) {
    case check::Verdict::holds: {
      std::string limits;
      if (r.indices)
        for (const proofs::Limit& l : r.indices->limits)
          limits += (limits.empty() ? " for " : " and ") + proofs::print(l);
      if (r.indices && r.indices->small_reals) limits += " for reals within 2^24";
      if (r.indices && r.indices->small_data) limits += " for data within 2^29";
      return check::not_proved(r).empty() ? "holds" + limits : "not proved";
    }
    case check::Verdict::refuted:
      return "refuted";
    case check::Verdict::inconclusive:
      return code == "check.indices" ? "refuted" : "open " + code;
    case check::Verdict::invalid:
      return "law " + code;
  }
  return "";
}

inline std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder()))
    if (entry.path().extension() == ".edit")
      out.push_back(std::filesystem::relative(entry.path(), folder()).replace_extension().string());
  std::sort(out.begin(), out.end());
  return out;
}

inline std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

}  // namespace kw::test::attacks
