// A role is known by the statement's whole text: `scale: f32 = rsqrt(D) * log2e` says that scores
// become powers of two, another value of the same name says nothing. The opening comment is made of
// sentences, each with the statements that make it true.
#include "lower/module_comments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tl/syntax/expr.h"
#include "tl/traits.h"

namespace kw::lower {
namespace {
using namespace tl;

using Sentence = std::string;

std::string joined(const std::vector<std::string>& words, const char* last = " and ") {
  std::string out;
  for (size_t k = 0; k < words.size(); ++k)
    out += (k == 0 ? "" : k + 1 == words.size() ? last : last[0] == ';' ? last : ", ") + words[k];
  return out;
}

// "columns of q, k and v" for "columns of q", "columns of k", "columns of v"; what is said in other
// words is left out.
std::string alike(const std::vector<std::string>& all) {
  const size_t of = all[0].find(" of ");
  if (of == std::string::npos) return all[0];
  const std::string head = all[0].substr(0, of + 4);
  std::vector<std::string> rest;
  for (const std::string& one : all)
    if (one.starts_with(head)) rest.push_back(one.substr(head.size()));
  return head + joined(rest);
}

// Statements of the program by their word.
struct Seen {
  std::map<Op, std::vector<const Stmt*>> of;
  explicit Seen(const Program& program) {
    walk(program.body, [&](const Stmt& s) { of[s.op].push_back(&s); });
  }
  bool any(std::initializer_list<Op> ops) const {
    return std::any_of(ops.begin(), ops.end(), [&](Op op) { return of.count(op) > 0; });
  }
  bool any(Family family) const {
    return any_of([&](Op op) { return is(op, family); });
  }
  bool any(Family family, Async async) const {
    return any_of([&](Op op) { return is(op, family) && traits(op).async == async; });
  }
  bool any(Needs needs) const {
    return any_of([&](Op op) { return traits(op).needs == needs; });
  }
  // Each once, in the order of the text.
  std::vector<std::string> names(std::initializer_list<Op> ops, tl::Hole hole) const {
    std::vector<std::string> out;
    for (Op op : ops)
      if (const auto found = of.find(op); found != of.end())
        for (const Stmt* s : found->second) add(out, print(s->expr(hole)));
    return out;
  }
  static void add(std::vector<std::string>& out, const std::string& word) {
    for (const std::string& w : out)
      if (w == word) return;
    out.push_back(word);
  }

 private:
  template <class Test>
  bool any_of(Test test) const {
    return std::any_of(of.begin(), of.end(), [&](const auto& s) { return test(s.first); });
  }
};

Sentence what(const Seen& seen) {
  std::vector<std::string> in, out;
  if (const auto tensors = seen.of.find(Op::arg_tiled); tensors != seen.of.end())
    for (const Stmt* s : tensors->second)
      for (const Item& d : s->names())
        (s->access().front().name == "in" ? in : out).push_back(d.name);
  if (const auto tensors = seen.of.find(Op::arg_tensor); tensors != seen.of.end())
    for (const Stmt* s : tensors->second)
      for (const Item& d : s->names())
        if (s->access().front().name != "scratch")
          (s->access().front().name == "in" ? in : out).push_back(d.name);
  Sentence text = fmt::format("Reads {} and writes {}.", joined(in), joined(out));
  std::vector<std::string> products;
  for (const auto& [op, all] : seen.of)  // in the order of the table
    if (is(op, Family::contract))
      for (const Stmt* s : all) {
        std::string head = print_head(*s);
        Seen::add(products, head.substr(head.find(' ') + 1));
      }
  if (!products.empty()) text += " The products: " + joined(products) + ".";
  if (seen.any({Op::online_max, Op::any_exceeds}))
    text +=
        " The exponentials of a row have a running reference: when it is raised, what was summed "
        "before is multiplied by a factor.";
  return text;
}

Sentence who(const Stmt& kernel, const Seen& seen) {
  Sentence text = fmt::format("A CTA has {} threads", print(kernel.threads()));
  if (kernel.op == Op::warpgroups_kernel)
    text += fmt::format(
        ", in warpgroups of 128 that all do the same; {} of them share a multiprocessor.",
        print(kernel.resident()));
  else
    text += ", in warpgroups of 128: one loads and stores, the others calculate.";
  if (const auto found = seen.of.find(Op::cluster); found != seen.of.end())
    text += fmt::format(" Clusters have {} of them.", print(found->second[0]->ctas()));
  if (seen.any({Op::dynamic_tiles, Op::dynamic_tiles_warp}))
    text += " Blocks of the output are taken from a queue.";
  if (seen.any({Op::static_tiles})) text += " Blocks of the output are dealt out in turn.";
  return text;
}

Sentence how(const Seen& seen) {
  std::vector<std::string> ways;
  if (seen.any(Family::copy_in, Async::tma)) ways.push_back("by the copy engine (TMA)");
  if (seen.any(Family::copy_in, Async::cp_async))
    ways.push_back("by asynchronous copies of all threads (cp.async)");
  if (seen.any(Family::copy_in, Async::none))
    ways.push_back("through the registers of all threads");
  Sentence text;
  if (!ways.empty()) text = "Tiles come " + joined(ways) + ". ";
  if (seen.any({Op::upcast})) text += "FP8 becomes 16 bits wide in shared memory. ";
  if (seen.any(Family::contract, Async::wgmma))
    text += "Products are issued by whole warpgroups (wgmma) and awaited later.";
  else if (seen.any(Family::contract))
    text += "Warps issue their own products (mma).";
  return text;
}

// "k_s: 2 tiles of BN x D".
Sentence memory(const Seen& seen) {
  std::vector<std::string> tiles;
  for (Op op : {Op::tile, Op::ring})
    if (const auto found = seen.of.find(op); found != seen.of.end())
      for (const Stmt* s : found->second)
        for (const Item& d : s->names()) {
          std::string times = d.expr ? print(d.expr) + " times " : "";
          times += op == Op::ring ? "a ring of " + print(s->stages()) + " tiles" : "a tile";
          tiles.push_back(fmt::format("{} is {} of {} x {}", d.name, times, print(s->rows()),
                                      print(s->columns())));
        }
  return tiles.empty() ? "" : "In shared memory " + joined(tiles) + ".";
}

// The oldest target that has every statement's instructions.
Sentence target(const Seen& seen) {
  const bool bf16 = seen.of.count(Op::element) && seen.of.at(Op::element)[0]->type() == "bf16";
  if (seen.any(Needs::hopper)) return "for Hopper (sm_90a)";
  if (seen.any(Needs::fp8)) return "for sm_89 and later";
  if (bf16 || seen.any(Needs::ampere)) return "for sm_80 and later";
  return "for sm_75 and later";
}

// Lines of up to 100 columns.
std::string wrapped(const std::string& text) {
  std::string out, line = "//";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (line.size() + 1 + end - at > 100) {
      out += line + "\n";
      line = "//";
    }
    line += " " + text.substr(at, end - at);
    at = end + 1;
  }
  return out + line + "\n";
}

// What arguments are, by their text in TL.
const std::map<std::string, std::string>& known_texts() {
  static const std::map<std::string, std::string> all = {
      {"B, H, G, M, N: size", "batch, query heads, key heads, queries, keys"},
      {"lse: out f32[B, H, M]", "log of the sum of the exponentials; -inf for a row without keys"},
      {"blocks: size = ceil_div(M, BM) * H * B", "tiles of the output, BM rows each"},
      {"scale: f32 = rsqrt(D) * log2e", "of the scores, which are then powers of two"},
      {"slack: f32 = 8.0 / scale",
       "how far a score may exceed the reference of its row: a factor of 2^8"},
      {"record Block: m, h, b", "one tile of the output"},
      {"record Keys: count, full",
       "for some query rows: key blocks count-1 ... 0 are visited; full-1 ... 0 need no mask"},
  };
  return all;
}

}  // namespace

Comments::Comments(const Program& program) : program_(program) {
  note_constants();
  note_tiles();
  note_rows();
}

void Comments::note(const std::string& name, const std::string& role) {
  roles_.emplace(name, role);  // the first one stays
}

// A constant is what some declaration takes it for: a name by itself, no part of an expression.
void Comments::note_constants() {
  std::map<std::string, std::vector<std::string>> of;  // constant -> what has it, in order
  const auto add = [&](const ExprPtr& e, const std::string& what) {
    if (e && e->kind == ExprKind::name) Seen::add(of[e->text], what);
  };
  walk(program_.body, [&](const Stmt& s) {
    if (s.op == Op::arg_tensor || s.op == Op::arg_tiled)
      if (const auto& dims = s.dims(); dims.size() == 4)
        for (const Item& d : s.names()) Seen::add(of[dims[3].name], "columns of " + d.name);
    if (s.op == Op::tile || s.op == Op::ring)
      for (const Item& d : s.names()) {
        add(s.rows(), "rows of " + d.name);
        if (s.op == Op::ring) add(s.stages(), "slots of " + d.name);
      }
    if (s.op == Op::warpgroups_kernel) {
      add(s.resident(), "CTAs that share a multiprocessor");
      const ExprPtr& t = s.threads();
      if (t->kind == ExprKind::binary && t->text == "*")
        add(t->args[1], "warpgroups of 128 threads");
    }
    if (s.op == Op::cluster) add(s.ctas(), "CTAs of a cluster");
    if (s.op == Op::warpgroup || s.op == Op::warpgroups)
      add(s.registers(), "registers of each thread");
    if (s.op == Op::arg_size && print_head(s) == "blocks: size = ceil_div(M, BM) * H * B")
      Seen::add(of["BM"], "query rows of a block of the output");
  });
  for (const auto& [name, what] : of) note(name, alike(what));
}

// What is copied into a tile, and what out of it.
void Comments::note_tiles() {
  std::map<std::string, std::vector<std::string>> in, out;
  walk(program_.body, [&](const Stmt& s) {
    if (is(s.op, Family::copy_in)) Seen::add(in[base_name(s.dst())], base_name(s.tensor()));
    if (is(s.op, Family::copy_out)) Seen::add(out[base_name(s.src())], base_name(s.tensor()));
  });
  for (const auto& [tile, from] : in)
    note(tile, out.count(tile) ? joined(from) + ", in the end " + joined(out[tile]) : joined(from));
}

void Comments::note_rows() {
  walk(program_.body, [&](const Stmt& s) {
    if (s.op == Op::online_max) {
      note(base_name(s.max()), "the reference of the exponentials");
      note(base_name(s.alpha()), "what earlier terms are multiplied by");
    }
    if (s.op == Op::row_sum) note(base_name(s.sum()), "sums of rows, each lane its share");
  });
}

std::string Comments::opening() const {
  const Seen seen(program_);
  const Stmt* kernel = program_.kernel();
  std::string out;
  if (kernel)
    out = wrapped(fmt::format("{}, {}. {}", kernel->name(), target(seen), what(seen))) + "//\n";
  std::string second;
  for (const Sentence& s : {kernel ? who(*kernel, seen) : "", how(seen), memory(seen)})
    if (!s.empty()) second += (second.empty() ? "" : " ") + s;
  return out + (second.empty() ? "" : wrapped(second));
}

std::string Comments::beside(const Stmt& stmt) const {
  const auto found = known_texts().find(print_head(stmt));
  if (found != known_texts().end()) return found->second;
  if (stmt.op != Op::param && stmt.op != Op::tile && stmt.op != Op::ring && stmt.op != Op::row &&
      stmt.op != Op::lane_sum)
    return "";
  std::vector<std::string> said;
  const auto& declared = stmt.names();
  for (const Item& d : declared)
    if (const auto role = roles_.find(d.name); role != roles_.end())
      said.push_back(declared.size() > 1 ? d.name + ": " + role->second : role->second);
  return joined(said, "; ");
}

}  // namespace kw::lower
