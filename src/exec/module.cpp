// What a module declares, and the launch bound to it: sizes from the tensors' shapes, scalar
// arguments from their expressions, shared memory from its sizes. One function a declaration.
#include <fmt/format.h>

#include <cmath>

#include "exec/alignment.h"
#include "exec/arithmetic.h"
#include "exec/exact.h"
#include "exec/machine.h"

namespace kw::exec {

using tl::Item;
using tl::Op;
using tl::Stmt;

namespace {

Context head(Machine& m, const Stmt& s, bool wide = false) {
  return {m, nullptr, &s, nullptr, wide};
}

Dtype element_type(Machine& m, const Stmt& s, const std::string& type) {
  if (type == "element") return m.element;
  if (type == "real") return Dtype::f32;
  const std::optional<Dtype> t = dtype_named(type);
  if (!t) m.faults.raise("exec.type", &s, fmt::format("{} is not an element type", type));
  return t.value_or(Dtype::f32);
}

// ---- at the top
void declare_include(Machine&, const Stmt&) {}
void declare_level(Machine&, const Stmt&) {}
void declare_shared(Machine&, const Stmt&) {}  // one a CTA: declare_shared_memory

void declare_element(Machine& m, const Stmt& s) { m.element = element_type(m, s, s.type()); }

void declare_param(Machine& m, const Stmt& s) {
  for (const Item& d : s.names()) {
    const auto set = m.launch.params.find(d.name);
    m.constants[d.name] =
        set == m.launch.params.end() ? evaluate(head(m, s), d.expr) : Value::integer(set->second);
  }
}

void declare_toggle(Machine& m, const Stmt& s) {
  for (const Item& d : s.names()) {
    const auto set = m.launch.params.find(d.name);
    m.constants[d.name] = set == m.launch.params.end() ? evaluate(head(m, s), d.expr)
                                                       : Value::boolean(set->second != 0);
  }
}

void declare_record(Machine& m, const Stmt& s) { m.records[s.name()] = &s; }
void declare_def(Machine& m, const Stmt& s) { m.defs[s.name()] = &s; }
void declare_kernel(Machine& m, const Stmt& s) { m.kernel = &s; }
void declare_warpgroups_kernel(Machine& m, const Stmt& s) { m.kernel = &s; }
void declare_lists(Machine& m, const Stmt& s) { m.lists = &s; }
void declare_rows(Machine& m, const Stmt& s) { (m.kernel ? m.behind : m.rows) = &s; }
void declare_after(Machine& m, const Stmt& s) { m.after = &s; }
void declare_plan(Machine& m, const Stmt& s) { m.kernel = &s; }

// ---- the arguments
void declare_tensor(Machine& m, const Stmt& s, bool tiled) {
  const Item& access = s.access()[0];
  for (const Item& d : s.names()) {
    Global g;
    g.tiled = tiled;
    g.writes = access.name == "out";
    g.scratch = access.name == "scratch";
    g.data.dtype = element_type(m, s, access.type);
    g.declared = &s;
    for (const Item& dim : s.dims()) g.dims.push_back(dim.name);
    m.tensors[d.name] = std::move(g);
  }
}
void declare_arg_tiled(Machine& m, const Stmt& s) { declare_tensor(m, s, true); }
void declare_arg_tensor(Machine& m, const Stmt& s) { declare_tensor(m, s, false); }

void declare_arg_workspace(Machine& m, const Stmt& s) {
  for (const Item& d : s.names()) m.workspaces[d.name].assign(integer_of(head(m, s), s.words()), 0);
}

// The launcher's arithmetic; the device counts its words with ints.
void declare_arg_scratch(Machine& m, const Stmt& s) {
  const int64_t words = integer_of(head(m, s, true), s.words());
  if (!m.faults.any() && (words < 1 || words > INT32_MAX))
    m.faults.raise("exec.launch", &s,
                   fmt::format("{} has {} words", s.names().front().name, words));
  if (!m.faults.any()) m.scratches[s.names().front().name].assign(words, std::nullopt);
}

// A scalar argument: what the caller says, or its expression over the values before it.
Value scalar_argument(Machine& m, const Stmt& s, const Item& d, bool real) {
  const auto set = m.launch.scalars.find(d.name);
  if (set == m.launch.scalars.end() && !d.expr) {
    m.faults.raise("exec.launch", &s, fmt::format("argument {} has no value", d.name));
    return {};
  }
  if (m.algebra && real)
    return exact_argument(m, d.name,
                          set == m.launch.scalars.end() ? evaluate(head(m, s, true), d.expr)
                                                        : Value::real(set->second));
  double v = set == m.launch.scalars.end() ? evaluate(head(m, s, true), d.expr).x : set->second;
  return real ? Value::real(static_cast<float>(v)) : Value::integer(std::llround(v));
}

void declare_arg_size(Machine& m, const Stmt& s) {
  for (const Item& d : s.names()) {
    if (m.constants.count(d.name)) continue;  // a dimension of an input said it
    const Value v = scalar_argument(m, s, d, false);
    if (v.type != Type::none && v.x < 1)
      m.faults.raise("exec.launch", &s, fmt::format("size {} is {}", d.name, v.x));
    m.constants[d.name] = v;
  }
}
void declare_arg_i32(Machine& m, const Stmt& s) {
  for (const Item& d : s.names()) m.constants[d.name] = scalar_argument(m, s, d, false);
}
void declare_arg_f32(Machine& m, const Stmt& s) {
  for (const Item& d : s.names()) m.constants[d.name] = scalar_argument(m, s, d, true);
}

// Puts the caller's input in its place; each dimension is a size or a parameter of that value.
void bind_input(Machine& m, const Stmt& s, const std::string& name, Global& g) {
  const auto given = m.launch.tensors.find(name);
  if (given == m.launch.tensors.end()) {
    m.faults.raise("exec.launch", &s, fmt::format("input {} is not given", name));
    return;
  }
  const Tensor& t = given->second;
  if (t.shape.size() != g.dims.size() || t.dtype != g.data.dtype) {
    m.faults.raise(
        "exec.launch", &s,
        fmt::format("{} is {} with {} dimensions and is declared {} with {}", name,
                    kw::name(t.dtype), t.shape.size(), kw::name(g.data.dtype), g.dims.size()));
    return;
  }
  for (size_t d = 0; d < g.dims.size(); ++d) {
    Value& size = m.constants[g.dims[d]];
    if (size.type == Type::none) size = Value::integer(t.shape[d]);
    if (size.x != double(t.shape[d]) || t.shape[d] < 1)
      m.faults.raise(
          "exec.launch", &s,
          fmt::format("{} is {} in {} and {} elsewhere", g.dims[d], t.shape[d], name, size.x));
  }
  g.data = t;
  if (m.algebra && is_float(t.dtype)) exact_input(m, g);
}

void bind_output(Machine& m, const Stmt& s, Global& g) {
  std::vector<int64_t> shape;
  for (const std::string& dim : g.dims) shape.push_back(integer_of(head(m, s), tl::name(dim)));
  if (m.faults.any()) return;
  if (m.launch.shapes_only) {
    g.data.shape = shape;
    return;
  }
  g.data = Tensor(g.data.dtype, shape);
  g.written.assign(g.data.values.size(), 0);
  if (m.algebra) g.exact.resize(g.data.values.size());
}

void declare_args(Machine& m, const Stmt& s);

void declare_one(Machine& m, const Stmt& s) {
  switch (s.op) {
#define KW_top(word) \
  case Op::word:     \
    return declare_##word(m, s);
#define KW_args(word) KW_top(word)
#define KW_shared(word) \
  case Op::word:        \
    break;
#define KW_body(word) KW_shared(word)
#define OP(word, level, where, holds, ...) KW_##where(word)
#include "tl/ops.def"
  }
  m.faults.raise("exec.name", &s, fmt::format("{} stands outside a kernel", cite(s)));
}

// Tensors first: the sizes come from their shapes.
void declare_args(Machine& m, const Stmt& s) {
  auto is_tensor = [](const Stmt& d) { return d.op == Op::arg_tiled || d.op == Op::arg_tensor; };
  for (const Stmt& d : s.body)
    if (is_tensor(d)) declare_one(m, d);
  for (auto& [name, g] : m.tensors)
    if (!g.writes && !g.scratch) bind_input(m, *g.declared, name, g);
  for (const Stmt& d : s.body)
    if (!is_tensor(d) && !m.faults.any()) declare_one(m, d);
  for (auto& [name, g] : m.tensors)
    if ((g.writes || g.scratch) && !m.faults.any()) bind_output(m, *g.declared, g);
}

// ---- shared memory, in the order of the declarations, as the struct of the device has it
constexpr int64_t kTileBytes = 1024, kBarrierBytes = 8, kWordBytes = 4;

int64_t positive(Machine& m, const Stmt& s, const tl::ExprPtr& e) {
  const int64_t v = integer_of(head(m, s), e);
  if (v < 1 && !m.faults.any())
    m.faults.raise("exec.shape", &s, fmt::format("{} is {}", tl::print(e), v));
  return m.faults.any() ? 1 : v;
}

void declare_tiles(Machine& m, ThreadBlock& block, const Stmt& s, bool ring) {
  const int64_t rows = positive(m, s, s.rows()), columns = positive(m, s, s.columns());
  const Dtype dtype = element_type(m, s, s.type());
  for (const Item& d : s.names()) {
    SharedArray array;
    array.is_array = d.expr != nullptr;
    array.is_ring = ring;
    if (d.expr) array.members = positive(m, s, d.expr);
    if (ring) array.ring = positive(m, s, s.stages());
    SharedSlot slot;
    slot.tile = Tile(Role::shared, dtype, int(rows), int(columns), m.algebra);
    array.slots.assign(array.members * array.ring, slot);
    const int64_t tile = rows * columns * int64_t(bytes(dtype));
    place_shared(block, kTileBytes,
                 (tile + kTileBytes - 1) / kTileBytes * kTileBytes * array.members * array.ring);
    block.arrays[d.name] = std::move(array);
  }
}
void declare_ring(Machine& m, ThreadBlock& block, const Stmt& s) {
  declare_tiles(m, block, s, true);
}
void declare_tile(Machine& m, ThreadBlock& block, const Stmt& s) {
  declare_tiles(m, block, s, false);
}

// Slots of one column.
void declare_row_ring(Machine& m, ThreadBlock& block, const Stmt& s) {
  for (const Item& d : s.names()) {
    SharedArray array;
    array.is_ring = true;
    array.ring = positive(m, s, s.stages());
    SharedSlot slot;
    slot.tile = Tile(Role::shared, element_type(m, s, s.type()), int(positive(m, s, s.rows())), 1,
                     m.algebra);
    array.slots.assign(array.ring, slot);
    const int64_t each = int64_t(slot.tile.rows) * kWordBytes;
    const int64_t first = place_shared(block, kWordBytes, each * array.ring);
    for (int64_t n = 0; n < array.ring; ++n) array.slots[n].address = first + n * each;
    block.arrays[d.name] = std::move(array);
  }
}

void declare_barrier(Machine& m, ThreadBlock& block, const Stmt& s) {
  for (const Item& d : s.names()) {
    block.barriers[d.name] =
        Barriers(d.name, positive(m, s, s.stages()), positive(m, s, s.arrivals()));
    place_shared(block, kBarrierBytes, kBarrierBytes * block.barriers[d.name].ring);
  }
}

void declare_cluster_barrier(Machine& m, ThreadBlock& block, const Stmt& s) {
  if (!ctas_agree(m, s)) return;
  declare_barrier(m, block, s);
  for (const Item& d : s.names()) {
    Barriers& b = block.barriers[d.name];
    b.arrivals *= m.ctas;
    b.in_cluster = true;
  }
}

void declare_queue(Machine& m, ThreadBlock& block, const Stmt& s) {
  if (!ctas_agree(m, s)) return;
  const int64_t ring = positive(m, s, s.stages());
  for (const Item& d : s.names()) {
    block.queues[d.name] = {Barriers(d.name, ring, 1),
                            Barriers(d.name, ring, positive(m, s, s.arrivals()) * m.ctas),
                            std::vector<int64_t>(ring)};
    const int64_t numbers = (ring * kWordBytes + kBarrierBytes - 1) / kBarrierBytes * kBarrierBytes;
    place_shared(block, kBarrierBytes, 2 * kBarrierBytes * ring + numbers);
  }
}

}  // namespace

bool declare(Machine& m) {
  m.constants["true"] = Value::boolean(true);
  m.constants["false"] = Value::boolean(false);
  m.constants["-inf"] = Value::real(-INFINITY);
  m.constants["log2e"] = Value::real(1.4426950408889634f);
  m.constants["ln2"] = Value::real(0.6931471805599453f);
  if (m.algebra) {
    m.constants["-inf"].e = m.algebra->minus_infinity();
    m.constants["log2e"].e = m.algebra->log2e();
    m.constants["ln2"].e = m.algebra->ln2();
  }
  for (const Stmt& s : m.program.body)
    if (!m.faults.any()) declare_one(m, s);
  if (!m.kernel && !m.faults.any())
    m.faults.raise("exec.name", nullptr, "the module has no kernel and no plan");
  if (!m.faults.any()) run_lists(m);
  if (!m.faults.any()) run_rows(m);
  return !m.faults.any();
}

namespace {

void declare_member(Machine& m, ThreadBlock& block, const Stmt& s) {
  switch (s.op) {
#undef KW_top
#undef KW_args
#undef KW_shared
#undef KW_body
#define KW_top(word) \
  case Op::word:     \
    break;
#define KW_args(word) KW_top(word)
#define KW_shared(word) \
  case Op::word:        \
    return declare_##word(m, block, s);
#define KW_body(word) KW_top(word)
#define OP(word, level, where, holds, ...) KW_##where(word)
#include "tl/ops.def"
  }
  m.faults.raise("exec.name", &s, fmt::format("{} stands in shared:", cite(s)));
}

}  // namespace

void declare_shared_memory(Machine& m, ThreadBlock& block) {
  for (const Stmt& top : m.program.body)
    if (top.op == Op::shared)
      for (const Stmt& s : top.body) declare_member(m, block, s);
}

}  // namespace kw::exec
