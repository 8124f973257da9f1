#include "driver/start/port.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "driver/family.h"
#include "support/targets.h"
#include "transfer/editing/declarations.h"

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

// Whether each name in a mask's condition is the key's place or a size: j < N.
bool only_asks_for_the_key(const tl::ExprPtr& e, const tl::Program& kernel) {
  if (e->kind == tl::ExprKind::name) {
    const tl::Stmt* declared = transfer::declaration_of_argument(kernel, e->text);
    return e->is_name("j") || (declared && declared->op == tl::Op::arg_size);
  }
  return std::all_of(e->args.begin(), e->args.end(),
                     [&](const tl::ExprPtr& part) { return only_asks_for_the_key(part, kernel); });
}

// Maps scores, or weights, to what is dropped: where(condition, s, -inf).
bool is_mask(const tl::Stmt& s) {
  if (s.op != tl::Op::map_at || s.value()->kind != tl::ExprKind::where) return false;
  const tl::ExprPtr& dropped = s.value()->args[2];
  return dropped->is_name("-inf") ||
         (dropped->kind == tl::ExprKind::real && dropped->text == "0.0");
}

}  // namespace

bool is_plain(const tl::Program& kernel, Diagnostics& diagnostics) {
  const auto refuse = [&](const tl::Stmt& at, const std::string& what) {
    diagnostics.error("port.variant", at.span, "this kernel is a variant already: " + what).hint =
        "start from the kernel of plain attention that it was made from; a folder that make or "
        "port wrote goes onto a newer kernel with `kernelwright rebase`";
    return false;
  };
  const tl::Stmt *mask = nullptr, *other = nullptr;
  tl::walk(kernel.body, [&](const tl::Stmt& s) {
    if (!mask && is_mask(s)) mask = &s;
  });
  if (!mask) return true;  // transfer's to refuse
  const tl::ExprPtr keep = mask->value()->args[0];
  if (!only_asks_for_the_key(keep, kernel))
    return refuse(*mask,
                  fmt::format("it keeps a score where {}, and plain attention wherever there "
                              "is a key",
                              tl::print(keep)));
  const std::string scores = tl::base_name(mask->target());
  tl::walk(kernel.body, [&](const tl::Stmt& s) {
    const bool by_place = s.op == tl::Op::map_at || s.op == tl::Op::map_real;
    if (!other && &s != mask && by_place && tl::base_name(s.target()) == scores) other = &s;
  });
  return !other || refuse(*other, "it changes scores before their softmax");
}

void keep_rows_for(const tl::Program& kernel, std::vector<transfer::Tiles>& rows) {
  std::erase_if(rows, [&](const transfer::Tiles& row) {
    return !row.users && !std::all_of(row.constants.begin(), row.constants.end(),
                                      [&](const transfer::Constant& c) {
                                        return transfer::constant_named(kernel, c.name) != nullptr;
                                      });
  });
}

std::optional<std::vector<SourcePtr>> own_experts(const Tools& tools, const spec::Form& form,
                                                  const std::string& target,
                                                  Diagnostics& diagnostics) {
  const auto names = Family::of(form).texts(form, find_target(target));
  if (!names) return std::nullopt;
  std::vector<SourcePtr> texts;
  for (const std::string& name : *names) {
    const fs::path file = tools.home.kernels() / name;
    if (!fs::exists(file)) continue;
    const SourcePtr text = read_source(file.string());
    if (!text) {
      diagnostics.error("driver.kernel", {}, fmt::format("cannot read '{}'", file.string()));
      return std::nullopt;
    }
    texts.push_back(make_source(fs::relative(file, tools.home.root).string(), text->text));
  }
  return texts;
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
  if (fs::exists(kernel, failed) && !fs::is_regular_file(kernel, failed))
    return refuse("it is not a regular file, and a patch could not change it");
  errno = 0;
  const SourcePtr source = read_source(fs::path(kernel).lexically_normal() == "-" ? "./-" : kernel);
  if (!source) return refuse(why_not_read(errno));
  if (const size_t nul = source->text.find('\0'); nul != std::string::npos)
    return refuse(fmt::format("it is a binary file (NUL byte at offset {})", nul));
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
