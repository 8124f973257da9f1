#include "schedules/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "exec/machine.h"
#include "tl/scope/functions.h"
#include "tl/traits.h"

namespace kw::exec::schedule {

using tl::Item;
using tl::Op;
using tl::Stmt;

namespace {

constexpr int kMostBlocks = 12, kManyTiles = 24, kManyOfLists = 48;
constexpr int kWithin = 33;             // beyond an edge of a tile
constexpr int64_t kManyEntries = 1024;  // of a batch: more rows of tiles than CTAs fill a GPU
constexpr size_t kMostProfiles = 80;

// Parameters and toggles, before any launch.
void bind_constants(Machine& m) {
  m.constants["true"] = Value::boolean(true);
  m.constants["false"] = Value::boolean(false);
  for (const Stmt& s : m.program.body) {
    if (s.op != Op::param && s.op != Op::toggle) continue;
    for (const Item& d : s.names()) {
      const auto set = m.launch.params.find(d.name);
      if (set == m.launch.params.end())
        m.constants[d.name] = evaluate({m, nullptr, &s}, d.expr);
      else
        m.constants[d.name] =
            s.op == Op::param ? Value::integer(set->second) : Value::boolean(set->second != 0);
    }
  }
}

std::string name_of_base(const tl::ExprPtr& e) {
  const tl::Expr* at = e.get();
  while (at->kind == tl::ExprKind::index) at = at->args[0].get();
  return at->text;
}

// Rows of a tile, by the dimension along which tiles are copied in: {"M": 64, "N": 128}. Of lines,
// those that a CTA stores; of pages, as many entries of their table as a tile is made up of.
std::map<std::string, int64_t> tiled_dimensions(const tl::Program& program, Machine& m) {
  std::map<std::string, std::string> letter;  // by tensor
  std::map<std::string, int64_t> rows, units;
  tl::walk(program.body, [&](const Stmt& s) {
    if (tl::is(s.op, tl::Family::tensor) && s.dims().size() != 3)
      for (const Item& d : s.names())
        letter[d.name] = s.dims()[s.dims().size() == 4 ? 2 : s.dims().size() - 1].name;
    if (s.op == Op::ring || s.op == Op::tile)
      for (const Item& d : s.names()) rows[d.name] = integer_of({m, nullptr, &s}, s.rows());
  });
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op == Op::store_line) {  // a warpgroup has one row
      const Stmt& kernel = *program.kernel();
      const std::string tensor = s.tensor()->text;
      if (letter.count(tensor))
        units[letter[tensor]] = integer_of({m, nullptr, &kernel}, kernel.threads()) / 128;
      return;
    }
    if (!tl::is(s.op, tl::Family::copy_in)) return;
    const std::string tensor = s.tensor()->text, tile = name_of_base(s.dst());
    if (s.op == Op::tma_load_pages && rows.count(tile)) {
      const int64_t page = std::max<int64_t>(integer_of({m, nullptr, &s}, s.rows()), 1);
      units[letter[s.table()->text]] = std::max<int64_t>(rows[tile] / page, 1);
    } else if (letter.count(tensor) && rows.count(tile)) {
      units[letter[tensor]] = rows[tile];
    }
  });
  return units;
}

// What launches have of batch entries, by the letter of that dimension; {} where any number will
// do. Where keys are split over blocks, few tiles of rows have many splits of few turns each, and
// many have one of all turns.
std::vector<std::map<std::string, int64_t>> batches(const tl::Program& program) {
  const Stmt *combine = program.find(Op::combine_parts), *args = program.find(Op::args);
  if (!combine || !args) return {{}};
  for (const Stmt& s : args->body)
    if (tl::is(s.op, tl::Family::tensor))
      for (const Item& d : s.names())
        if (combine->tensor()->is_name(d.name))
          return {{{s.dims()[0].name, 1}}, {{s.dims()[0].name, kManyEntries}}};
  return {{}};
}

// The largest number in the functions of the program: a row or key from which on blocks may be of
// another kind.
int64_t largest_in_functions(const tl::Program& program) {
  int64_t largest = 0;
  const auto look = [&](const tl::ExprPtr& e) -> tl::ExprPtr {
    if (e->kind == tl::ExprKind::integer) largest = std::max<int64_t>(largest, std::stoll(e->text));
    return nullptr;
  };
  for (const Stmt& def : program.body)
    if (def.op == Op::def)
      tl::walk(def.body, [&](const Stmt& s) {
        tl::each_expression(s, [&](const tl::ExprPtr& e) { tl::rewrite(e, look); });
      });
  return largest;
}

// Whether a launch is given integers beside its sizes.
bool has_integers(const tl::Program& program) {
  bool found = false;
  tl::walk(program.body, [&](const Stmt& s) {
    const bool data = tl::is(s.op, tl::Family::tensor) && s.access()[0].name != "out" &&
                      dtype_named(s.access()[0].type) &&
                      !is_float(*dtype_named(s.access()[0].type));
    found |= data || s.op == Op::arg_i32;
  });
  return found;
}

}  // namespace

int64_t blocks_of(const tl::Program& program, Machine& m, bool least) {
  std::vector<int64_t> counts;
  const Stmt* kernel = program.kernel();
  tl::walk(kernel->body, [&](const Stmt& s) {
    if (tl::is(s.op, tl::Family::tiles)) counts.push_back(integer_of({m, nullptr, &s}, s.count()));
    tl::each_expression(s, [&](const tl::ExprPtr& whole) {
      tl::rewrite(whole, [&](const tl::ExprPtr& e) -> tl::ExprPtr {
        if (e->kind == tl::ExprKind::call && tl::numbers_blocks(e->text))
          counts.push_back(integer_of({m, nullptr, &s}, e->args.at(0)));
        return nullptr;
      });
    });
  });
  if (counts.empty()) return 1;
  const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
  return least ? *low : *high;
}

std::shared_ptr<Sized> size(const tl::Program& program, const std::map<std::string, int64_t>& sizes,
                            int64_t argument, const std::map<std::string, int64_t>& params) {
  auto sized = std::make_shared<Sized>();
  Launch& launch = sized->launch;
  launch.params = params;
  launch.shapes_only = launch.any_lists = true;
  sized->machine = std::make_unique<Machine>(program, launch, nullptr);
  Machine& m = *sized->machine;
  bind_constants(m);
  const Stmt* args = program.find(Op::args);
  for (const Stmt& s : m.program.body)
    if (s.op == Op::element && dtype_named(s.type())) m.element = *dtype_named(s.type());
  auto extent = [&](const std::string& letter) -> int64_t {
    const auto at = m.constants.find(letter);
    if (at != m.constants.end()) return int64_t(at->second.x);
    return sizes.count(letter) ? sizes.at(letter) : 1;
  };
  auto integer_named = [&](const std::string& name) {
    return sizes.count(name) ? sizes.at(name) : argument;
  };
  for (const Stmt& s : args ? args->body : std::vector<Stmt>{}) {
    if (tl::is(s.op, tl::Family::tensor)) {
      const Item& access = s.access()[0];
      if (access.name == "out") continue;
      std::vector<int64_t> shape;
      for (const Item& dim : s.dims()) shape.push_back(extent(dim.name));
      const auto dtype = access.type == "element" ? m.element
                         : access.type == "real"  ? Dtype::f32
                                                  : dtype_named(access.type).value_or(Dtype::f32);
      Tensor t;
      t.dtype = dtype;
      t.shape = shape;
      for (const Item& d : s.names()) {
        if (access.type !=
            "element")  // one value for all: a bias of all pairs would fill the memory
          t.values = {is_float(dtype) ? 0.0 : double(integer_named(d.name))};
        launch.tensors[d.name] = t;
      }
    } else if (s.op == Op::arg_i32 || s.op == Op::arg_f32 || s.op == Op::arg_size) {
      for (const Item& d : s.names())
        if (!d.expr)
          launch.scalars[d.name] = s.op == Op::arg_size  ? double(extent(d.name))
                                   : s.op == Op::arg_i32 ? double(integer_named(d.name))
                                                         : 1.0;
    }
  }
  if (m.faults.any() || !exec::declare(m)) return nullptr;
  launch.tensors.clear();
  return sized;
}

uint64_t signature(const Walked& walked) {
  uint64_t h = 1469598103934665603ull;
  auto mix = [&](uint64_t x) { h = (h ^ x) * 1099511628211ull; };
  for (const Stream& stream : walked.streams) {
    mix(0xA6E57);
    for (const Event& e : stream) {
      if (e.kind == Kind::lap) continue;
      mix(uint64_t(e.stmt ? int(e.stmt->op) : 0));
      mix(uint64_t(e.kind) << 32 | uint32_t(e.object) << 8 | uint8_t(e.counter));
      mix(uint64_t(e.use) << 20 ^ uint64_t(e.region) << 8 ^ uint64_t(e.count));
      mix(uint64_t(e.bar) << 32 ^ uint64_t(e.bar_use));
    }
  }
  return h;
}

namespace {
// A loop says at each turn that it turns, and once more where it ends.
void count_turns(const Walked& walked, std::map<const Stmt*, int64_t>& most) {
  for (const Stream& stream : walked.streams) {
    std::map<const Stmt*, int64_t> turns;
    for (const Event& e : stream)
      if (e.kind == Kind::lap) ++turns.try_emplace(e.stmt, -1).first->second;
    for (const auto& [loop, n] : turns) most[loop] = std::max(most[loop], n);
  }
}
}  // namespace

Profiles find_profiles(const tl::Program& program, const std::map<std::string, int64_t>& params,
                       int most_tiles) {
  Profiles found;
  found.tiles = most_tiles;
  Launch none;
  none.params = params;
  Machine constants(program, none, nullptr);
  bind_constants(constants);
  const auto units = tiled_dimensions(program, constants);
  if (!program.kernel() || units.empty() || constants.faults.any()) return found;
  // The dimension of the keys is that of two tensors' tiles; the others follow it or stay small.
  std::map<uint64_t, Block> distinct;
  // Of the block and one that was seen, whether they take a flag's arm or not.
  auto does_what_is_known = [&](const Block& block, const Walked& walked) {
    const auto same = distinct.find(signature(walked));
    if (same == distinct.end()) return false;
    const Arms arms{Arms::always, 0};
    return signature(found.walker->walk({block}, arms, true)) ==
           signature(found.walker->walk({same->second}, arms, true));
  };
  auto try_launch = [&](std::map<std::string, int64_t> sizes, int64_t argument, bool many) {
    const auto sized = size(program, sizes, argument, params);
    if (!sized) return;
    sized->end = blocks_of(program, *sized->machine, true);
    const int64_t blocks = blocks_of(program, *sized->machine, false);
    // The longest block is the last, or the first where the order is turned round.
    const int64_t step = many ? std::max<int64_t>(blocks - 1, 1) : 1;
    const int64_t end = many ? blocks : std::min<int64_t>(blocks, kMostBlocks);
    for (int64_t k = 0; k < end && !found.fault; k += step) {
      Block block{sized, k, 0, ""};
      for (const auto& [letter, value] : sizes)
        block.words += fmt::format("{} {}, ", letter, value);
      if (argument) block.words += fmt::format("i32 {}, ", argument);
      block.words += fmt::format("block {} of {}", block.w, blocks);
      if (!found.walker) {
        found.walker = std::make_unique<Walker>(program, block);
        found.fault = found.walker->fault();
        if (found.fault) return;
      }
      const Walked walked = found.walker->walk({block}, {Arms::never, 0}, true);
      found.fault = walked.fault;
      for (const Stream& s : walked.streams) block.length += int64_t(s.size());
      if (many) {
        found.longest_is_known = found.longest_is_known && does_what_is_known(block, walked);
        if (!found.longest || block.length > found.longest->length) found.longest = block;
        continue;
      }
      distinct.try_emplace(signature(walked), block);
      count_turns(walked, found.turns);
    }
  };
  const bool integers = has_integers(program);
  // One tile of rows; as many rows as keys; keys that end within a tile, and with them a diagonal
  // at the last one; rows that a window has left behind all keys.
  enum class Shape { one_tile, square, ragged, beyond };
  const auto entries = batches(program);
  const auto for_each_batch = [&](const std::map<std::string, int64_t>& sizes, const auto& launch) {
    for (std::map<std::string, int64_t> all : entries) {
      all.insert(sizes.begin(), sizes.end());
      launch(all);
    }
  };
  for (int tiles = 1; tiles <= most_tiles && !found.fault; ++tiles) {
    std::set<std::map<std::string, int64_t>> tried;
    for (const Shape shape : {Shape::one_tile, Shape::square, Shape::ragged, Shape::beyond}) {
      std::map<std::string, int64_t> sizes;
      int64_t most = 0;
      for (const auto& [letter, rows] : units) most = std::max(most, rows * tiles);
      for (const auto& [letter, rows] : units) {
        const bool of_rows = letter == "M" || letter == "R";
        sizes[letter] = shape != Shape::one_tile ? most : of_rows ? rows : rows * tiles;
        if (shape == Shape::ragged && !of_rows) sizes[letter] += kWithin;
        if (shape == Shape::beyond && !of_rows) sizes[letter] = kWithin;
      }
      if (!tried.insert(sizes).second) continue;
      // The fourth ends within a tile. Below 0 is what has no key: a window, a length.
      for_each_batch(sizes, [&](const auto& all) {
        for (const int64_t argument : {int64_t(0), most / 2, most, most / 2 + kWithin, -2 * most})
          if (argument == 0 || integers) try_launch(all, argument, false);
      });
    }
  }
  int64_t most = 0;
  const int many = program.find(Op::lists) ? kManyOfLists : kManyTiles;
  for (const auto& [letter, rows] : units) most = std::max(most, rows * many);
  std::map<std::string, int64_t> sizes;
  for (const auto& [letter, rows] : units) sizes[letter] = most;
  found.longest_is_known = largest_in_functions(program) < most;
  for_each_batch(sizes, [&](const auto& all) {
    if (!found.fault) try_launch(all, 0, true);
    // What an argument says may make blocks longer: a window's width.
    for (const int64_t argument : {most / 2, most})
      if (integers && !found.fault) try_launch(all, argument, true);
  });
  found.longest_is_known = found.longest_is_known && found.longest;
  for (auto& [hash, block] : distinct) found.blocks.push_back(block);
  std::sort(found.blocks.begin(), found.blocks.end(),
            [](const Block& a, const Block& b) { return a.length < b.length; });
  found.cut = found.blocks.size() > kMostProfiles;
  if (found.cut) found.blocks.resize(kMostProfiles);
  return found;
}

}  // namespace kw::exec::schedule
