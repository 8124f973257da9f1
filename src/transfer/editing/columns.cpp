#include "transfer/editing/columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tl/scope/scope.h"
#include "transfer/editing/declarations.h"
#include "transfer/masks/distance.h"

namespace kw::transfer {
namespace {

using tl::Category;
using tl::ExprKind;
using tl::ExprPtr;
using tl::Op;
using tl::Stmt;

bool is_power_of_two(const ExprPtr& e) {
  if (e->kind != ExprKind::integer) return false;
  const int64_t n = std::stoll(e->text);
  return n > 0 && (n & (n - 1)) == 0;
}

// Whether e is worth a vector's element: a register or a shuffle.
bool is_costly(const ExprPtr& e, const tl::Program& program) {
  if (tensor_read(*e, program)) return true;
  if (e->kind == ExprKind::binary && (e->text == "//" || e->text == "%" || e->text == "/") &&
      !is_power_of_two(e->args[1]))
    return true;
  static const std::set<std::string> functions = {"exp2", "log2", "tanh", "reciprocal", "rsqrt"};
  if (e->kind == ExprKind::call && functions.count(e->text)) return true;
  return std::any_of(e->args.begin(), e->args.end(),
                     [&](const ExprPtr& a) { return is_costly(a, program); });
}

// And whether a real of a distance is, which two rows share: also where it is any function.
// (Conditions are not: a remainder by a power of two gains 5 % in bursts, and loses 3 % under the
// power limit.)
bool calls(const ExprPtr& e) {
  return e->kind == ExprKind::call || std::any_of(e->args.begin(), e->args.end(), calls);
}

// A comparison of one costly side with a cheap one is as cheap where it stands: the side is taken.
bool is_taken_apart(const ExprPtr& e, const tl::Program& program) {
  return tl::is_comparison(*e) && is_costly(e->args[0], program) != is_costly(e->args[1], program);
}

// The tensor that is read first; "" where none is.
std::string first_read(const ExprPtr& e, const tl::Program& program) {
  if (tensor_read(*e, program)) return e->args[0]->text;
  for (const ExprPtr& a : e->args)
    if (std::string name = first_read(a, program); !name.empty()) return name;
  return "";
}

// A part of a map that becomes a vector's element.
struct Part {
  ExprPtr part;         // as it stands in the map
  ExprPtr value;        // what the vector's element is: an int or a real, of int coordinates
  std::string along;    // "i", "j" or "d"
  std::string element;  // i32 or real
  std::string read;
  bool boolean, local;  // local: it mentions a name that only the step has
};

// The parts of one map, each once.
class Finder {
 public:
  Finder(const tl::Program& program, const tl::Scope& scope, bool real,
         const std::set<std::string>& step_names)
      : program_(program), scope_(&scope), real_(real), step_names_(step_names) {
    for (const char* name : {"i", "j"}) {
      tl::Symbol s;
      s.name = name;
      s.type = {real ? tl::Type::real : tl::Type::integer, ""};
      scope_.add(std::move(s));
    }
  }

  void visit(const ExprPtr& e) {
    const bool i = tl::mentions(e, "i"), j = tl::mentions(e, "j");
    if ((i || j) && e->kind != ExprKind::name && is_given(e, program_) &&
        !is_taken_apart(e, program_) && (i && j ? take_distance(e) : take(e, i ? "i" : "j")))
      return;
    const size_t first = e->kind == ExprKind::index || e->kind == ExprKind::field ? 1 : 0;
    for (size_t n = first; n < e->args.size(); ++n) visit(e->args[n]);
  }

  std::vector<Part> parts;

 private:
  bool take(const ExprPtr& e, const char* along) {
    if (!is_costly(e, program_)) return false;
    const ExprPtr of_ints = tl::rewrite(e, [&](const ExprPtr& x) -> ExprPtr {
      return real_ && x->is_name(along) ? tl::call("f32", {x}) : nullptr;
    });
    return add(e, of_ints, along);
  }

  bool take_distance(const ExprPtr& e) {
    const bool real = tl::type_of(e, scope_).kind == tl::Type::real;
    if (!is_costly(e, program_) && !(real && calls(e))) return false;
    const ExprPtr of_ints = over_distance(e, real_);
    return of_ints && add(e, of_ints, kDistance);
  }

  // `value` is e of int coordinates.
  bool add(const ExprPtr& e, ExprPtr value, const char* along) {
    const tl::Type type = tl::type_of(e, scope_);
    const bool boolean = type.kind == tl::Type::boolean;
    if (!boolean && type.kind != tl::Type::integer && type.kind != tl::Type::real) return false;
    for (const Part& p : parts)
      if (tl::equal(p.part, e)) return true;
    if (boolean) value = tl::where(value, tl::integer(1), tl::integer(0));
    const bool local = std::any_of(step_names_.begin(), step_names_.end(),
                                   [&](const std::string& n) { return tl::mentions(e, n); });
    parts.push_back({e, value, along, type.kind == tl::Type::real ? "real" : "i32",
                     first_read(e, program_), boolean, local});
    return true;
  }

  const tl::Program& program_;
  tl::Scope scope_;
  const bool real_;
  const std::set<std::string>& step_names_;
};

bool is_placed_map(const Stmt& s, const ScoreTile& tile) {
  return (s.op == Op::map_at || s.op == Op::map_real) && tl::base_name(s.target()) == tile.score;
}

// A vector that is there: what it holds, from which coordinate on.
struct Vector {
  ExprPtr value;
  std::string from, along, name;
};

class Hoisting {
 public:
  Hoisting(Editing& edit, const ScoreTile& tile) : edit_(edit), tile_(tile) {}

  bool run() {
    find();
    Stmt* step = step_named(edit_.program, tile_.step);
    if (maps_.empty() || !step) return true;
    if (!apply(step->body, {}, false)) return false;
    return edit_.insert(tile_.block(), of_block_);
  }

 private:
  Editing& edit_;
  const ScoreTile& tile_;
  std::vector<std::vector<Part>> maps_;  // of every map of the step that has parts, in order
  std::vector<bool> has_parts_;          // of every map of the step
  std::string rows_, columns_;           // of the tile, as TL text
  std::vector<Vector> once_;             // set where the block of the output begins
  std::vector<std::string> of_block_;    // the statements that do
  size_t at_ = 0, next_ = 0;

  // Types need scopes, which an edit would make stale: all is found first.
  void find() {
    const Stmt* step = nullptr;
    std::set<std::string> step_names;
    tl::walk_scoped(edit_.program, [&](const Stmt& s, const tl::Scope& scope) {
      if (s.op == Op::step) {
        step = &s;
        step_names.clear();
        for (const tl::Item& p : s.params()) step_names.insert(p.name);
      }
      if (step && s.op == Op::let)
        for (const tl::Item& d : s.names()) step_names.insert(d.name);
      if (!step || step->name() != tile_.step || !is_placed_map(s, tile_)) return;
      Finder finder(edit_.program, scope, s.op == Op::map_real, step_names);
      finder.visit(s.value());
      has_parts_.push_back(!finder.parts.empty());
      if (finder.parts.empty()) return;
      // Rows last: they are fewest, and what the others are read with is done with by then.
      std::stable_partition(finder.parts.begin(), finder.parts.end(),
                            [](const Part& p) { return p.along != "i"; });
      const tl::Symbol* tile = scope.find(tile_.score);
      rows_ = tl::print(tile->shape.at(0));
      columns_ = tl::print(tile->shape.at(1));
      maps_.push_back(std::move(finder.parts));
    });
  }

  bool apply(std::vector<Stmt>& block, std::vector<Vector> known, bool conditional) {
    for (size_t n = 0; n < block.size(); ++n) {
      if (!is_placed_map(block[n], tile_)) {
        if (!apply(block[n].body, known, true)) return false;
        continue;
      }
      if (at_ >= has_parts_.size() || !has_parts_[at_++]) continue;
      std::vector<tl::Replacement> all;
      for (const Part& p : maps_[next_++]) {
        const std::string vector = vector_for(p, block, n, known, !conditional);
        if (vector.empty()) return false;
        const ExprPtr at = p.along == kDistance ? tl::binary("-", tl::name("j"), tl::name("i"))
                                                : tl::name(p.along);
        const ExprPtr element = tl::index(tl::name(vector), {at});
        all.push_back({p.part, p.boolean ? tl::binary("!=", element, tl::integer(0)) : element});
      }
      ExprPtr& body = block[n].value();
      body = tl::replace(body, all);
    }
    return true;
  }

  // How the vectors along i, j or d are declared and set, and what they are called without a read.
  struct Kind {
    std::string word, shape, set, from, what;
  };
  Kind kind_of(const std::string& along, const std::string& i0, const std::string& j0) const {
    if (along == "i") return {"row", rows_, "set_rows", i0, "query"};
    if (along == "j") return {"column", columns_, "set_columns", j0, "key"};
    return {"diagonal", rows_ + ", " + columns_, "set_diagonals", fmt::format("({}, {})", i0, j0),
            "distance"};
  }

  // The vector's name; it is set before the map block[n], or where the block of the output begins,
  // unless it is there. "" after a refusal.
  std::string vector_for(const Part& p, std::vector<Stmt>& block, size_t& n,
                         std::vector<Vector>& known, bool always) {
    const std::string i0 = tl::print(block[n].i0()), j0 = tl::print(block[n].j0());
    const Kind kind = kind_of(p.along, i0, j0);
    const bool once = kind.from == i0 && (always || tile_.rows_once) && !p.local && i0 == tile_.i0;
    std::vector<Vector>& there = once ? once_ : known;
    for (const Vector& v : there)
      if (v.along == p.along && tl::equal(v.value, p.value) && v.from == kind.from) return v.name;
    const std::string base = p.read.empty() ? kind.what : p.read;
    const std::string name = edit_.fresh({base + "_" + p.along, base + "_at_" + p.along});
    there.push_back({p.value, kind.from, p.along, name});
    const std::vector<std::string> texts = {
        fmt::format("{} {}: {}[{}]", kind.word, name, p.element, kind.shape),
        fmt::format("{} {}[{}] from {} = {}", kind.set, name, p.along, kind.from,
                    tl::print(p.value))};
    if (once) {
      of_block_.insert(of_block_.end(), texts.begin(), texts.end());
      return name;
    }
    if (!edit_.insert({&block, n}, texts)) return "";
    n += texts.size();
    return name;
  }
};

}  // namespace

bool hoist_vectors(Editing& edit, const ScoreTile& tile) { return Hoisting(edit, tile).run(); }

}  // namespace kw::transfer
