#include "driver/port.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transfer/facts.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

// The folder that the patch is applied in, and whether git knows it.
struct Top {
  fs::path folder;
  bool repository = false;
};

// Links are followed: git names files by where they are.
fs::path place(const fs::path& kernel) {
  std::error_code failed;
  const fs::path real = fs::canonical(kernel, failed);
  return failed ? fs::absolute(kernel).lexically_normal() : real;
}

Top top_of(const fs::path& kernel) {
  std::error_code failed;
  const fs::path file = place(kernel);
  for (fs::path p = file.parent_path(); p != p.root_path(); p = p.parent_path())
    if (fs::exists(p / ".git", failed)) return {p, true};
  const fs::path here = fs::current_path(failed), below = file.lexically_relative(here);
  const bool inside = !failed && !below.empty() && *below.begin() != "..";
  return {inside ? here : file.parent_path(), false};
}

// As a shell reads it.
std::string quoted(const fs::path& path) {
  const std::string text = path.string();
  const bool plain = text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "/._-+=:,@%") == std::string::npos;
  if (plain && !text.empty()) return text;
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// A name that says more than which key it is and how many there are; empty for j < N.
std::string more_than_keys(const tl::ExprPtr& e, const transfer::Facts& facts) {
  if (e->kind == tl::ExprKind::name)
    return e->is_name("j") || e->is_name(facts.keys) ? "" : e->text;
  for (const tl::ExprPtr& part : e->args)
    if (const std::string name = more_than_keys(part, facts); !name.empty()) return name;
  return "";
}

bool has_constant(const tl::Program& kernel, const std::string& name) {
  return std::any_of(kernel.body.begin(), kernel.body.end(), [&](const tl::Stmt& s) {
    if (s.op != tl::Op::param && s.op != tl::Op::toggle) return false;
    const auto& items = s.items("d");
    return std::any_of(items.begin(), items.end(),
                       [&](const tl::Item& item) { return item.name == name; });
  });
}

}  // namespace

bool is_plain(const tl::Program& kernel, Diagnostics& diagnostics) {
  tl::Program program = kernel;
  Diagnostics later;  // a kernel without these places is transfer's to refuse
  const auto facts = transfer::find_facts(program, later);
  const tl::Stmt* step = facts ? transfer::softmax_step(program, *facts) : nullptr;
  if (!step) return true;
  const transfer::Place mask = transfer::mask_of(program, *facts);
  const tl::Stmt& masks = (*mask.block)[mask.at].body[0];
  const auto refuse = [&](const tl::Stmt& at, const std::string& what) {
    diagnostics.error("port.variant", at.span, "this kernel is a variant already: " + what).hint =
        "start from the kernel of plain attention that it was made from; a folder that make or "
        "port wrote goes onto a newer kernel with `kernelwright rebase`";
    return false;
  };
  const tl::ExprPtr keep = masks.expr("f")->args[0];
  if (!more_than_keys(keep, *facts).empty())
    return refuse(masks, fmt::format("it keeps a score where {}, and plain attention where j < {}",
                                     tl::print(keep), facts->keys));
  const tl::Stmt* other = nullptr;
  tl::walk(step->body, [&](const tl::Stmt& s) {
    const bool of_scores = transfer::is_map_of_scores(s, tl::Op::map_at, *facts) ||
                           transfer::is_map_of_scores(s, tl::Op::map_real, *facts);
    if (of_scores && &s != &masks && !other) other = &s;
  });
  return !other || refuse(*other, "it changes scores before their softmax");
}

void keep_rows_for(const tl::Program& kernel, std::vector<transfer::Tiles>& rows) {
  std::erase_if(rows, [&](const transfer::Tiles& row) {
    return !row.users &&
           !std::all_of(row.constants.begin(), row.constants.end(),
                        [&](const transfer::Constant& c) { return has_constant(kernel, c.name); });
  });
}

SourcePtr find_expert(const Tools& tools, const std::string& kernel, const std::string& target,
                      Diagnostics& diagnostics) {
  const auto corpus = corpus_kernel(tools.home, target, diagnostics);
  if (!corpus) return nullptr;
  if (kernel.empty())
    return make_source(fs::relative(*corpus, tools.home.root).string(),
                       read_source(corpus->string())->text);
  const auto refuse = [&](const std::string& why) {
    diagnostics.error("driver.kernel", {}, fmt::format("cannot read '{}': {}", kernel, why)).hint =
        "name a CUDA file in the vocabulary of kw/kw.cuh; kernels/ has two to start from";
    return nullptr;
  };
  std::error_code failed;
  if (fs::is_directory(kernel, failed)) return refuse("it is a folder");
  errno = 0;
  const SourcePtr source = read_source(kernel);
  if (!source) return refuse(std::strerror(errno));
  if (source->text.find('\0') != std::string::npos) return refuse("it is no text");
  return source;
}

std::string name_in_patch(const fs::path& kernel) {
  return place(kernel).lexically_relative(top_of(kernel).folder).string();
}

std::string how_to_apply(const fs::path& kernel, const fs::path& folder) {
  const Top top = top_of(kernel);
  const std::string patch = quoted(fs::absolute(folder / "kernel.patch").lexically_normal());
  if (top.repository) return fmt::format("apply: git -C {} apply {}", quoted(top.folder), patch);
  return fmt::format("apply: patch -p1 -d {} -i {}", quoted(top.folder), patch);
}

}  // namespace kw::driver
