#include "transfer/families/attention/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tl/scope/functions.h"
#include "tl/scope/intervals.h"
#include "tl/scope/scope.h"
#include "tl/traits.h"

namespace kw::transfer {
namespace {

using tl::ExprKind;
using tl::ExprPtr;
using tl::Family;
using tl::Item;
using tl::Op;
using tl::Program;
using tl::Stmt;

const Stmt* find_if(const std::vector<Stmt>& body, const std::function<bool(const Stmt&)>& test) {
  const Stmt* found = nullptr;
  tl::walk(body, [&](const Stmt& s) {
    if (!found && test(s)) found = &s;
  });
  return found;
}

// What a dropped score is, or a dropped weight.
bool is_dropped(const ExprPtr& e) {
  return e->is_name("-inf") || (e->kind == ExprKind::real && e->text == "0.0");
}

bool is_mask(const Stmt& s, const std::string& score) {
  return s.op == Op::map_at && tl::base_name(s.target()) == score &&
         s.value()->kind == ExprKind::where && is_dropped(s.value()->args[2]);
}

// Where in a step's block `if partial:` with the mask alone stands, partial being a parameter of
// the step; nothing if it has none.
std::optional<size_t> mask_in(const Stmt& step, const std::string& score) {
  if (step.op != Op::step) return std::nullopt;
  const auto is_flag = [&](const ExprPtr& e) {
    for (const tl::Item& p : step.params())
      if (p.type == "bool" && e->is_name(p.name)) return true;
    return false;
  };
  for (size_t n = 0; n < step.body.size(); ++n) {
    const Stmt& s = step.body[n];
    if (s.op == Op::if_ && is_flag(s.condition()) && s.body.size() == 1 &&
        is_mask(s.body[0], score))
      return n;
  }
  return std::nullopt;
}

// Whether the statements in it compute one block of the output, for all blocks or one each.
bool computes_a_block(const Stmt& s) {
  return s.op == Op::static_tiles || s.op == Op::dynamic_tiles_warp ||
         s.op == Op::warpgroups_kernel;
}

bool is_one_of(Op op, std::initializer_list<Op> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

// A block's number in a loop over blocks, or that of the CTA.
bool is_block_number(const ExprPtr& e, const Stmt& loop) {
  if (loop.op != Op::warpgroups_kernel) return e->is_name(loop.index());
  return e->kind == ExprKind::call && tl::numbers_blocks(e->text);
}

// c.m in c.m * BM + r * 64: the field of `record` that an expression mentions.
const tl::Expr* field_in(const ExprPtr& e, const std::string& record) {
  if (e->kind == ExprKind::field && e->args[0]->is_name(record)) return e.get();
  for (const ExprPtr& a : e->args)
    if (const tl::Expr* f = field_in(a, record)) return f;
  return nullptr;
}

// BM in c.m * BM.
ExprPtr factor_of(const ExprPtr& e, const std::function<bool(const tl::Expr&)>& of) {
  if (e->kind == ExprKind::binary && e->text == "*" && of(*e->args[0])) return e->args[1];
  for (const ExprPtr& a : e->args)
    if (ExprPtr f = factor_of(a, of)) return f;
  return nullptr;
}

class Finder {
 public:
  Finder(const Program& program, Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics) {}

  std::optional<Facts> find() {
    if (products() && outputs() && mask() && softmax_scale() && blocks() && key_loops() &&
        letters())
      return facts_;
    return std::nullopt;
  }

 private:
  const Program& program_;
  Diagnostics& diagnostics_;
  Facts facts_;
  const Stmt* loop_ = nullptr;  // where the consumers compute a block

  bool missing(const std::string& what) {
    const Span span = program_.body.empty() ? Span{} : program_.body.front().span;
    Diagnostic& d = diagnostics_.error("transfer.kernel", span, "this kernel has no " + what);
    d.hint =
        "the rules change kernels that are built like kernels/sm90/attention_fwd.cu or "
        "kernels/sm80/attention_fwd.cu; a model may be asked to change others";
    return false;
  }

  const Stmt* first(std::initializer_list<Op> ops,
                    const std::function<bool(const Stmt&)>& test = {}) const {
    return find_if(program_.body,
                   [&](const Stmt& s) { return is_one_of(s.op, ops) && (!test || test(s)); });
  }
  const Stmt* first(Family family, const std::function<bool(const Stmt&)>& test = {}) const {
    return find_if(program_.body,
                   [&](const Stmt& s) { return tl::is(s.op, family) && (!test || test(s)); });
  }
  const Stmt* first(Op op, const std::function<bool(const Stmt&)>& test = {}) const {
    return first({op}, test);
  }

  // What a name stands for: c.m * BM + me * 64 for i0. Anything else stands for itself.
  ExprPtr meaning_of(const ExprPtr& e) const {
    const auto defines = [&](const Item& d) { return e->is_name(d.name); };
    const Stmt* let = first(Op::let, [&](const Stmt& s) {
      const auto& d = s.names();
      return std::any_of(d.begin(), d.end(), defines);
    });
    if (!let) return e;
    const auto& d = let->names();
    return std::find_if(d.begin(), d.end(), defines)->expr;
  }

  // The argument that is loaded into a shared tile.
  std::string loaded_into(const std::string& tile) const {
    const Stmt* load = find_if(program_.body, [&](const Stmt& s) {
      return tl::is(s.op, Family::copy_in) && tl::base_name(s.dst()) == tile;
    });
    return load ? tl::base_name(load->tensor()) : "";
  }

  bool products();
  bool outputs();
  bool mask();
  bool softmax_scale();
  bool blocks();
  bool key_loops();
  bool letters();
};

// s = q_r @ k_s.T, or s += of some columns of both, and acc += p @ v_s; what was loaded into those
// tiles is q, k and v. The left side of the scores may be the shared tile itself.
bool Finder::products() {
  const auto transposed = [](const Stmt& s) { return tl::traits(s.op).transposed; };
  const Stmt *scores = first(Family::contract, transposed),
             *output = first(Family::contract, std::not_fn(transposed));
  if (!scores || !output) return missing("product of scores and product with the values");
  facts_.score = tl::base_name(scores->acc());
  const std::string left = tl::base_name(scores->a());
  const Stmt* load = first(Op::load, [&](const Stmt& s) { return tl::base_name(s.dst()) == left; });
  facts_.q = loaded_into(load ? tl::base_name(load->src()) : left);
  facts_.k = loaded_into(tl::base_name(scores->b()));
  facts_.v = loaded_into(tl::base_name(output->b()));
  if (facts_.q.empty() || facts_.k.empty() || facts_.v.empty())
    return missing("load of q, of k or of v");
  return true;
}

bool Finder::outputs() {
  if (const Stmt* combine = first(Op::combine_parts)) {
    facts_.o = tl::base_name(combine->tensor());
    facts_.lse = tl::base_name(combine->sums());
    return true;
  }
  const Stmt *o = first(Family::copy_out), *lse = first(Op::store_rows);
  if (!o || !lse) return missing("store of the output and of the log-sum-exp");
  facts_.o = tl::base_name(o->tensor());
  facts_.lse = tl::base_name(lse->tensor());
  return true;
}

bool Finder::mask() {
  const Stmt* step =
      first(Op::step, [&](const Stmt& s) { return mask_in(s, facts_.score).has_value(); });
  if (!step) return missing("step in which `if partial:` masks the scores with map_at");
  facts_.softmax = step->name();
  const Stmt& map = step->body[*mask_in(*step, facts_.score)].body[0];
  facts_.i0 = map.i0();
  facts_.j0 = map.j0();
  const std::string block = step->params().at(0).name;
  facts_.key_tile = factor_of(facts_.j0, [&](const tl::Expr& e) { return e.text == block; });
  return facts_.key_tile || missing("key tile size in the origin of its mask");
}

bool Finder::softmax_scale() {
  const Stmt* online_max = first(Op::online_max);
  if (!online_max || online_max->scale()->kind != ExprKind::name)
    return missing("`online_max` with an argument as its scale");
  facts_.scale = online_max->scale()->text;
  const Stmt* declaration = declaration_of_argument(program_, facts_.scale);
  if (!declaration || declaration->op != Op::arg_f32)
    return missing("f32 argument that is the scale of its exponent");
  return true;
}

// for u, w in static_tiles(...): let c = block_of(w); let keys = key_blocks(c, c.m * BM, BM)
// or in a kernel whose warpgroups are alike: let c = block_of(block_index(blocks))
bool Finder::blocks() {
  loop_ = find_if(program_.body, [&](const Stmt& s) {
    return computes_a_block(s) &&
           find_if(s.body, [](const Stmt& x) { return x.op == Op::step; }) != nullptr;
  });
  if (!loop_) return missing("loop over blocks, or CTA for each, with the softmax step");
  std::string keys;  // a block's key range
  for (const Stmt& s : loop_->body) {
    if (s.op != Op::let) continue;
    for (const tl::Item& item : s.names()) {
      if (item.expr->kind != ExprKind::call || item.expr->args.empty()) continue;
      const ExprPtr& of = item.expr->args[0];
      if (is_block_number(of, *loop_) && item.expr->args.size() == 1) {
        facts_.block = item.name;
        facts_.block_def = item.expr->text;
      } else if (of->is_name(facts_.block) && item.expr->args.size() == 3) {
        facts_.keys_def = item.expr->text;
        keys = item.name;
      } else if (of->is_name(facts_.block) && item.expr->args.size() == 2 &&
                 item.expr->args[1]->is_name(keys)) {
        facts_.part_def = item.expr->text;
      }
    }
  }
  if (facts_.keys_def.empty()) return missing("functions from a block number to its key range");
  const Stmt* store = first(Op::store_rows);
  const tl::Expr *b = field_in(store->batch(), facts_.block),
                 *h = field_in(store->head(), facts_.block);
  const Stmt* load =
      first(Family::copy_in, [&](const Stmt& s) { return tl::base_name(s.tensor()) == facts_.q; });
  const ExprPtr row = load ? meaning_of(load->row()) : nullptr;
  const tl::Expr* m = row ? field_in(row, facts_.block) : nullptr;
  if (!b || !h || !m) return missing("block with a batch, a head and a row of tiles");
  facts_.batch_field = b->text;
  facts_.head_field = h->text;
  facts_.row_field = m->text;
  facts_.row_tile = factor_of(row, [&](const tl::Expr& e) { return &e == m; });
  return facts_.row_tile || missing("row tile size in the load of its queries");
}

// Key blocks keys.count - 1 ... are visited; the other field of the record is where full ones
// begin.
bool Finder::key_loops() {
  const Stmt* visits = first({Op::range_down_rolled, Op::range_down});
  const Stmt* def = first(Op::def, [&](const Stmt& s) { return s.name() == facts_.keys_def; });
  const Stmt* record =
      first(Op::record, [&](const Stmt& s) { return def && s.name() == def->result(); });
  if (!visits || !record || record->names().size() != 2)
    return missing("loop over key blocks, counted by a record of count and full");
  const std::function<std::string(const ExprPtr&)> field = [&](const ExprPtr& e) -> std::string {
    if (e->kind == ExprKind::field) return e->text;
    for (const ExprPtr& a : e->args)
      if (const std::string f = field(a); !f.empty()) return f;
    return "";
  };
  facts_.count_field = field(visits->begin());
  const auto& fields = record->names();
  if (fields[0].name != facts_.count_field)
    return missing("key range whose first field counts the visited blocks");
  facts_.full_field = fields[1].name;
  return true;
}

bool Finder::letters() {
  const auto dims = [&](const std::string& argument) {
    std::vector<std::string> out;
    if (const Stmt* s = declaration_of_argument(program_, argument))
      for (const tl::Item& d : s->dims()) out.push_back(d.name);
    return out;
  };
  const auto q = dims(facts_.q), k = dims(facts_.k), o = dims(facts_.o);
  if (q.size() != 4 || k.size() != 4 || o.size() != 4)
    return missing("q, k and output of four dimensions");
  facts_.batch = q[0];
  facts_.heads = q[1];
  facts_.queries = q[2];
  facts_.dim = q[3];
  facts_.value_dim = o[3];
  facts_.groups = k[1];
  facts_.keys = k[2];
  return true;
}

}  // namespace

std::vector<tl::ExprPtr> rows_asked_for(const Program& program, const Facts& facts) {
  std::vector<tl::ExprPtr> rows;
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op != Op::let) return;
    for (const tl::Item& d : s.names())
      if (d.expr->kind == tl::ExprKind::call && d.expr->text == facts.keys_def)
        rows.push_back(d.expr->args.at(2));
  });
  return rows;
}

Stmt* softmax_step(Program& program, const Facts& facts) {
  return step_named(program, facts.softmax);
}

bool is_map_of_scores(const Stmt& s, Op op, const Facts& facts) {
  return s.op == op && tl::base_name(s.target()) == facts.score;
}

const Stmt* declaration_of_scores(const Program& program, const Facts& facts) {
  return find_if(program.body, [&](const Stmt& s) {
    if (s.op != Op::accumulator) return false;
    const std::vector<tl::Item>& names = s.names();
    return std::any_of(names.begin(), names.end(),
                       [&](const tl::Item& d) { return d.name == facts.score; });
  });
}

std::vector<std::string> late_toggles(Program& program, const Facts& facts) {
  const Stmt* step = softmax_step(program, facts);
  std::string parameter;
  if (step)
    tl::walk(step->body, [&](const Stmt& s) {
      if (s.op == Op::if_ && s.body.size() == 1 && s.body[0].op == Op::any_exceeds)
        parameter = tl::print(s.condition());
    });
  if (parameter.empty()) return {};
  std::vector<std::string> toggles;
  const std::vector<tl::Item> parameters = step->params();
  tl::walk(program.body, [&](const Stmt& s) {
    if (s.op != Op::call || s.name() != facts.softmax) return;
    for (size_t n = 0; n < parameters.size(); ++n)
      if (parameters[n].name == parameter)
        for (const Stmt& t : program.body)
          if (t.op == Op::toggle && tl::mentions(s.arguments()[n].expr, t.names()[0].name))
            toggles.push_back(t.names()[0].name);
  });
  return toggles;
}

std::optional<Facts> find_facts(const Program& program, Diagnostics& diagnostics) {
  return Finder(program, diagnostics).find();
}

Stmt& args_of(Program& program) { return *program.find(Op::args); }

Stmt* def_named(Program& program, const std::string& name) {
  for (Stmt& s : program.body)
    if (s.op == Op::def && s.name() == name) return &s;
  return nullptr;
}

std::optional<int64_t> constant(const Program& program, const ExprPtr& e) {
  tl::Scope scope;
  for (const Stmt& s : program.body) tl::declare(scope, s);
  const tl::Interval value = tl::interval_of(e, scope);
  if (value.lo != value.hi) return std::nullopt;
  return value.lo;
}

Place mask_of(Program& program, const Facts& facts) {
  Place found{nullptr, 0};
  tl::walk(program.body, [&](Stmt& s) {
    if (const auto at = mask_in(s, facts.score); at && !found.block) found = {&s.body, *at};
  });
  return found;
}

Stmt* output_map_of(Program& program) {
  // Where weights go through shared memory too, the output is what is stored by columns.
  const Stmt* columns = program.find(Op::store_columns);
  const Op op = columns ? Op::store_columns : Op::store;
  const Stmt* store = program.find(op);
  const std::string tile = store ? tl::base_name(store->src()) : "";
  Stmt* found = nullptr;
  bool stored = false;
  tl::walk(program.body, [&](Stmt& s) {
    stored = stored || s.op == op;
    if (!stored && tl::has_element(s.op) && tl::base_name(s.target()) == tile) found = &s;
  });
  return found;
}

Place block_lets_end(Program& program, const Facts& facts) {
  Place found{nullptr, 0};
  tl::walk(program.body, [&](Stmt& s) {
    if (!computes_a_block(s) || found.block) return;
    for (size_t n = 0; n < s.body.size(); ++n)
      if (s.body[n].op == Op::step && s.body[n].name() == facts.softmax) found = {&s.body, n};
  });
  while (found.block && found.at > 0 && (*found.block)[found.at - 1].op != Op::let) --found.at;
  return found;
}

}  // namespace kw::transfer
