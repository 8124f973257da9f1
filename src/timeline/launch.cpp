#include "timeline/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "schedules/explore.h"
#include "support/targets.h"
#include "tl/traits.h"

namespace kw::timeline {

using namespace exec::schedule;
using tl::Op;
using tl::Stmt;

namespace {

// Sizes that the program asks its caller for, and integers that it takes as they are.
bool fits(const tl::Program& program, const Shape& shape, Diagnostics& diagnostics) {
  std::vector<std::string> sizes, integers;
  if (const Stmt* args = program.find(Op::args))
    for (const Stmt& s : args->body) {
      const std::string type = s.op == Op::arg_tensor ? s.access()[0].type : "";
      const bool integer_tensor = type == "i32" || type == "i64" || type == "bool";
      for (const tl::Item& d : s.has(tl::Hole::names) ? s.names() : std::vector<tl::Item>{}) {
        if (s.op == Op::arg_size && !d.expr) sizes.push_back(d.name);
        if (integer_tensor || (s.op == Op::arg_i32 && !d.expr)) integers.push_back(d.name);
      }
    }
  const auto refuse = [&](const std::string& message) {
    diagnostics.error("timeline.shape", {}, message).hint =
        fmt::format("the program has the sizes {}{}{}", fmt::join(sizes, ", "),
                    integers.empty() ? "" : " and the integers ", fmt::join(integers, ", "));
    return false;
  };
  for (const std::string& size : sizes)
    if (!shape.count(size)) return refuse(fmt::format("the shape does not give {}", size));
  for (const auto& [name, value] : shape)
    if (std::find(sizes.begin(), sizes.end(), name) == sizes.end() &&
        std::find(integers.begin(), integers.end(), name) == integers.end())
      return refuse(fmt::format("the shape says {} = {}, which the program has not", name, value));
  return true;
}

}  // namespace

Shape completed(const tl::Program& program, Shape shape) {
  std::set<std::string> sizes;
  if (const Stmt* args = program.find(Op::args))
    for (const Stmt& s : args->body)
      if (s.op == Op::arg_size)
        for (const tl::Item& d : s.names())
          if (!d.expr) sizes.insert(d.name);
  const auto take = [&](const char* size, const char* from) {
    if (sizes.contains(size) && shape.contains(from)) shape.try_emplace(size, shape[from]);
  };
  take("G", "H"), take("N", "M");
  if (sizes.contains("K"))  // a product
    for (const char* size : {"B", "H"})
      if (sizes.contains(size)) shape.try_emplace(size, 1);
  return shape;
}

std::unique_ptr<LaunchModel> LaunchModel::make(const tl::Program& program, const Gpu& gpu,
                                               const Shape& given, Diagnostics& diagnostics) {
  const Shape shape = completed(program, given);
  if (!program.kernel()) {
    diagnostics.error("timeline.shape", {}, "the program has no kernel: a plan takes no time");
    return nullptr;
  }
  if (!fits(program, shape, diagnostics)) return nullptr;
  std::unique_ptr<LaunchModel> launch(new LaunchModel(program, gpu));
  launch->sized_ = size(program, shape, 0, {});
  if (!launch->sized_) {
    diagnostics.error("timeline.shape", {}, "the program does not fit the shape");
    return nullptr;
  }
  launch->sized_->end = blocks_of(program, *launch->sized_->machine, true);
  launch->walker_ = std::make_unique<Walker>(program, launch->block(0));
  if (launch->walker_->fault()) {
    diagnostics.add(*launch->walker_->fault());
    return nullptr;
  }
  const bool good = launch->read_program(diagnostics) && launch->survey(diagnostics);
  return good ? std::move(launch) : nullptr;
}

// Of a CTA, tiles alone: barriers are a few hundred bytes.
int64_t LaunchModel::shared_bytes() const {
  const Tables& t = walker_->tables();
  int64_t bytes = 0;
  for (const Strand& s : t.strands) {
    const Tables::Shape& shape = t.arrays[s.array];
    if (s.cta == 0)
      bytes += int64_t(s.length) * shape.rows * shape.panels * shape.columns * shape.bytes;
  }
  return bytes;
}

// As many CTAs share a multiprocessor as its shared memory holds, 1 KB each for the
// system.
bool LaunchModel::read_program(Diagnostics& diagnostics) {
  exec::Machine& m = *sized_->machine;
  if (const Stmt* element = program_.find(Op::element)) dtype_ = element->type();
  if (program_.find(Op::static_tiles)) order_ = Order::dealt;
  const Stmt& kernel = *program_.kernel();
  if (kernel.op == Op::warpgroups_kernel)
    resident_ = int(exec::integer_of({m, nullptr, &kernel}, kernel.resident()));
  tl::walk(kernel.body, [&](const Stmt& s) {
    if (tl::is(s.op, tl::Family::contract) && !diagnostics.has_errors())
      product_rate(gpu_, tl::traits(s.op).async == tl::Async::wgmma, dtype_, diagnostics);
  });
  if (diagnostics.has_errors()) return false;
  const TargetLimits* limits = find_target(gpu_.targets[0]);
  const int64_t needed = shared_bytes() + (limits ? limits->reserved_bytes : reserved_shared_bytes);
  const int64_t fit = gpu_.shared_bytes / needed;
  if (fit < 1) {
    diagnostics.error("timeline.gpu", kernel.span,
                      fmt::format("a CTA needs {} bytes of shared memory and {} has {}", needed,
                                  gpu_.name, gpu_.shared_bytes));
    return false;
  }
  resident_ = int(std::min<int64_t>(resident_, fit));
  slots_ = int64_t(gpu_.multiprocessors) / walker_->tables().ctas * resident_;
  for (const auto& [name, tensor] : m.tensors) {
    double elements = 1;
    for (const int64_t extent : tensor.data.shape) elements *= double(extent);
    tensor_bytes_ += elements * double(bytes(tensor.data.dtype));
  }
  return true;
}

// How often each loop of each agent goes round in block w. Of a warpgroup one warp is asked.
std::vector<int64_t> LaunchModel::turns(int64_t w, Diagnostics& diagnostics) {
  const Walked walked = walker_->walk({block(w)}, {Arms::never, 0}, true);
  if (walked.fault) diagnostics.add(*walked.fault);
  std::vector<int64_t> turns;
  for (const Stream& stream : walked.streams)
    for (const Event& e : stream)
      if (e.kind == exec::schedule::Kind::lap) turns.push_back(e.count);
  return turns;
}

bool LaunchModel::survey(Diagnostics& diagnostics) {
  const int64_t blocks = blocks_of(program_, *sized_->machine, false);
  std::map<std::vector<int64_t>, int> seen;
  walker_->brief = true;
  for (int64_t w = 0; w < blocks; ++w) {
    const std::vector<int64_t> t = turns(w, diagnostics);
    if (diagnostics.has_errors()) return false;
    const auto [at, fresh] = seen.try_emplace(t, int(kinds_.size()));
    if (fresh) {
      kinds_.push_back({w});
      for (const int64_t n : t) kinds_.back().turns += n;
    }
    kind_of_.push_back(at->second);
  }
  walker_->brief = false;
  std::vector<int> order(kinds_.size()), place(kinds_.size());
  for (size_t n = 0; n < order.size(); ++n) order[n] = int(n);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return kinds_[a].turns < kinds_[b].turns; });
  std::vector<Kind> sorted;
  for (size_t n = 0; n < order.size(); ++n) {
    place[order[n]] = int(n);
    sorted.push_back(kinds_[order[n]]);
  }
  kinds_ = sorted;
  for (int& kind : kind_of_) kind = place[kind];
  return true;
}

std::optional<Timeline> LaunchModel::simulate(int64_t w, int repeat, bool record,
                                              Diagnostics& diagnostics) {
  walker_->measure = true;
  const Walked walked = walker_->walk(std::vector<Block>(repeat, block(w)), {Arms::never, 0});
  walker_->measure = false;
  if (walked.fault) {
    diagnostics.add(*walked.fault);
    return std::nullopt;
  }
  const auto small = merge_warps(walker_->tables(), walked.streams, 1);
  if (!small) {
    diagnostics.error("timeline.warps", {},
                      "the warps of a warpgroup do not do the same: they have no common timeline");
    return std::nullopt;
  }
  return timeline::simulate(small->tables, small->streams, gpu_, {dtype_, resident_, record},
                            diagnostics);
}

}  // namespace kw::timeline
