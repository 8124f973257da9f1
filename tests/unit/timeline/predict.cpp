// Predicted time: toys that can be reckoned by hand, what must not get slower, what is refused.
#include "timeline/predict.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "in_clone.h"
#include "support/targets.h"
#include "timeline/cost.h"
#include "timeline/draw.h"
#include "timeline/pipes.h"

namespace kw::timeline {
namespace {

using exec::schedule::Actor;
using exec::schedule::Event;
using exec::schedule::Kind;
using exec::schedule::Stream;
using exec::schedule::Tables;

const std::string kGpus = in_clone("/gpus");

Gpu gpu_named(const std::string& name) {
  Diagnostics d;
  const auto gpu = find_gpu(kGpus, name, d);
  EXPECT_TRUE(gpu) << render(d);
  return gpu.value_or(Gpu{});
}

tl::Program corpus(const std::string& name, const std::string& from = "",
                   const std::string& to = "") {
  std::string text = read_source(in_clone("/tests/corpus/") + name + "_attention_fwd.tl")->text;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  Diagnostics d;
  return tl::parse(make_source(name, text.replace(at, from.size(), to)), d).value();
}

Shape shape_of(const std::string& text) {
  Diagnostics d;
  return parse_shape(text, d).value_or(Shape{});
}

std::string refusal(const tl::Program& program, const Gpu& gpu, const Shape& shape) {
  Diagnostics d;
  EXPECT_FALSE(predict(program, gpu, shape, Heat::rested, d));
  return d.all().empty() ? "(none)" : d.all()[0].code + ": " + d.all()[0].message;
}

Prediction predicted(const tl::Program& program, const Gpu& gpu, const std::string& shape,
                     Heat heat = Heat::rested) {
  Diagnostics d;
  const auto p = predict(program, gpu, shape_of(shape), heat, d);
  EXPECT_TRUE(p) << render(d);
  return p.value_or(Prediction{});
}

// ---- toys: events by hand
struct Toy {
  Tables tables;
  std::vector<Stream> streams;
  const tl::Stmt stmt{tl::Op::wgmma, {}, {}, {}};

  Toy(int warpgroups) : streams(warpgroups) {
    for (int w = 0; w < warpgroups; ++w)
      tables.actors.push_back({"warpgroup " + std::to_string(w), 0, w, 0, true, 4});
  }
  Event& add(int warpgroup, Kind kind, int object = -1, int64_t use = 0) {
    Event e{kind};
    e.object = int16_t(object);
    e.use = use;
    e.stmt = &stmt;
    streams[warpgroup].push_back(e);
    return streams[warpgroup].back();
  }
  void product(int warpgroup, int columns) {
    add(warpgroup, Kind::issue).work = int16_t(tables.work({64, columns, 128}));
  }
  std::optional<Timeline> run(Diagnostics& d) const {
    SimulateOptions options;
    options.record = true;
    return simulate(tables, streams, gpu_named("h200"), options, d);
  }
};

TEST(Gpus, say_of_a_target_what_the_table_of_targets_says) {
  for (const char* name : {"a10", "a100", "h200", "l40s", "rtx8000", "t4"}) {
    const Gpu gpu = gpu_named(name);
    ASSERT_FALSE(gpu.targets.empty());
    for (const std::string& target : gpu.targets) {
      const TargetLimits* limits = find_target(target);
      ASSERT_TRUE(limits) << name << " " << target;
      EXPECT_EQ(gpu.shared_bytes, limits->processor_shared_bytes) << name << " " << target;
      double most = 0;  // a GPU may have a slower way of multiplying too
      for (const auto& [kind, flop] : gpu.tensor_flop)
        if (kind.ends_with(".f16")) most = std::max(most, flop);
      EXPECT_EQ(most, limits->flop_per_clock) << name << " " << target;
    }
  }
}

TEST(Simulation, products_of_two_warpgroups_run_one_after_the_other) {
  Toy toy(2);
  for (int w : {0, 1}) {
    toy.product(w, 128);
    toy.add(w, Kind::wgmma_wait);
  }
  Diagnostics d;
  const auto t = toy.run(d);
  ASSERT_TRUE(t) << render(d);
  // 2 * 64 * 128 * 128 / 4096 = 512 cycles each, then 60 until registers can be read.
  EXPECT_DOUBLE_EQ(t->tensor_busy, 1024);
  EXPECT_DOUBLE_EQ(t->end, 1024 + 60);
}

TEST(Simulation, one_warpgroup_waits_only_for_the_products_that_it_names) {
  Toy toy(1);
  toy.product(0, 64);
  toy.product(0, 128);
  toy.add(0, Kind::wgmma_wait).count = 1;
  toy.add(0, Kind::mark);
  toy.add(0, Kind::wgmma_wait).count = 0;
  Diagnostics d;
  const auto t = toy.run(d);
  ASSERT_TRUE(t) << render(d);
  EXPECT_DOUBLE_EQ(t->marks.at(0), 256 + 60);
  EXPECT_DOUBLE_EQ(t->end, 768 + 60);
}

TEST(Simulation, a_barrier_is_waited_for_until_its_last_arrival) {
  Toy toy(2);
  toy.tables.rings.push_back({"full", 0, 1, 4, 0});
  toy.tables.slots = 1;
  toy.product(0, 128);
  toy.add(0, Kind::wgmma_wait);
  toy.add(0, Kind::arrive, 0).count = 4;
  toy.add(1, Kind::wait, 0);
  Diagnostics d;
  const auto t = toy.run(d);
  ASSERT_TRUE(t) << render(d);
  EXPECT_DOUBLE_EQ(t->end, 512 + 60 + 30);
}

TEST(Simulation, who_waits_for_ever_is_named) {
  Toy toy(2);
  toy.tables.rings.push_back({"full", 0, 1, 5, 0});
  toy.tables.slots = 1;
  toy.add(0, Kind::arrive, 0).count = 4;
  toy.add(1, Kind::wait, 0);
  Diagnostics d;
  EXPECT_FALSE(toy.run(d));
  ASSERT_EQ(d.all().size(), 1u);
  EXPECT_EQ(d.all()[0].code, "timeline.deadlock");
  EXPECT_NE(d.all()[0].message.find("warpgroup 1"), std::string::npos);
}

TEST(Pipes, what_two_warps_need_at_once_is_shared_and_nothing_else) {
  Pipes pipes;
  pipes.add(0, {.issue = 100});
  EXPECT_DOUBLE_EQ(pipes.next(), 100);
  pipes.add(1, {.issue = 100});
  EXPECT_DOUBLE_EQ(pipes.next(), 200);
  pipes.add(2, {.issue = 0, .mufu = 150});  // it asks for no issue slots
  EXPECT_DOUBLE_EQ(pipes.next(), 150);
  pipes.advance(150);
  EXPECT_EQ(pipes.finished(), std::vector<int>{2});
  EXPECT_DOUBLE_EQ(pipes.next(), 200);
}

// ---- costs of statements
Cost element_cost(const std::string& statement) {
  Diagnostics d;
  const auto s = tl::parse_statement(statement, d);
  EXPECT_TRUE(s) << render(d);
  return body_cost(*s).element;
}

TEST(Costs, scalars_are_free_and_a_product_contracts_with_a_sum) {
  const Cost softmax = element_cost("map s[i, j] = exp2(fma(s[i, j], scale, -offset[i]))");
  EXPECT_EQ(softmax.fma, 1);
  EXPECT_EQ(softmax.mufu, 1);
  EXPECT_EQ(softmax.issue, 2);
  EXPECT_EQ(element_cost("map s[i, j] = s[i, j] * scale + a * b").fma, 1);
  EXPECT_EQ(element_cost("map s[i, j] = s[i, j] + m[i]").fma, 1);
}

TEST(Costs, a_mask_counts_its_comparison_its_choice_and_its_coordinate) {
  EXPECT_EQ(element_cost("map_at s[i, j] from (i0, n * BN) = where(j < N, s[i, j], -inf)").alu,
            2.5);
}

// ---- whole programs
TEST(Predict, the_same_work_takes_longer_with_less_of_anything) {
  const tl::Program program = corpus("sm90");
  const std::string shape = "B=1,H=66,M=512";
  const double base = predicted(program, gpu_named("h200"), shape).cycles;
  for (double Gpu::*rate : {&Gpu::l2_bytes_per_cycle, &Gpu::mufu_lanes, &Gpu::fp32_lanes,
                            &Gpu::alu_lanes, &Gpu::shared_bytes_per_cycle}) {
    Gpu more = gpu_named("h200"), less = more;
    more.*rate *= 2;
    less.*rate /= 8;
    EXPECT_LE(predicted(program, more, shape).cycles, base * 1.001);
    EXPECT_GT(predicted(program, less, shape).cycles, base * 1.02);
  }
}

TEST(Predict, a_second_stage_hides_the_copies) {
  const std::string stages = "Q_SLOTS = 2, STAGES = 2";
  const double two = predicted(corpus("sm90"), gpu_named("h200"), "B=1,H=66,M=1024").cycles;
  const double one = predicted(corpus("sm90", stages, "Q_SLOTS = 2, STAGES = 1"), gpu_named("h200"),
                               "B=1,H=66,M=1024")
                         .cycles;
  EXPECT_GT(one, 1.1 * two);
}

TEST(Predict, one_block_more_than_clusters_takes_another_round) {
  const Gpu gpu = gpu_named("h200");
  const Prediction full = predicted(corpus("sm90"), gpu, "B=1,H=66,M=256,N=4096");
  const Prediction more = predicted(corpus("sm90"), gpu, "B=1,H=67,M=256,N=4096");
  EXPECT_EQ(full.slots, 66);
  EXPECT_GT(more.cycles, 1.8 * full.cycles);
  EXPECT_GT(more.tail, 0.4);
}

TEST(Predict, products_are_counted_once) {
  const Prediction p = predicted(corpus("sm90"), gpu_named("h200"), "B=2,H=4,M=1024");
  EXPECT_DOUBLE_EQ(p.product_flop, 4.0 * 2 * 4 * 1024 * 1024 * 128);
}

TEST(Predict, power_holds_the_clock_and_a_warm_card_is_slower) {
  const std::string shape = "B=1,H=66,M=256,N=4096";
  const Prediction rested = predicted(corpus("sm90"), gpu_named("h200"), shape);
  const Prediction warm = predicted(corpus("sm90"), gpu_named("h200"), shape, Heat::sustained);
  EXPECT_TRUE(warm.power_limited);
  EXPECT_LT(warm.mhz, rested.mhz);
  EXPECT_LT(rested.mhz, 1980);
  EXPECT_GT(warm.milliseconds, rested.milliseconds);
}

TEST(Predict, as_many_thread_blocks_share_a_multiprocessor_as_its_shared_memory_holds) {
  const std::string shape = "B=1,H=64,M=1024";
  EXPECT_EQ(predicted(corpus("sm80"), gpu_named("a100"), shape).slots, 2 * 108);
  EXPECT_EQ(predicted(corpus("sm80"), gpu_named("l40s"), shape).slots, 142);
  EXPECT_EQ(
      refusal(corpus("sm80", "BN = 64", "BN = 128"), gpu_named("l40s"), shape_of("B=1,H=1,M=256")),
      "timeline.gpu: a CTA needs 132096 bytes of shared memory and l40s has 102400");
}

// A copy through registers is waited for: with four times the latency, the launch takes longer by
// three quarters of it for each of the two copies of each key block, at least.
TEST(Predict, copies_through_registers_are_waited_for) {
  const auto program = [] {
    Diagnostics d;
    return *tl::parse(read_source(in_clone("/tests/sm75/attention_d64.tl")), d);
  }();
  Gpu near = gpu_named("t4"), far = near;
  far.copy_latency *= 4;
  const std::string shape = "B=1,H=1,M=128,N=4096";
  const double more =
      predicted(program, far, shape).milliseconds - predicted(program, near, shape).milliseconds;
  const double cycles = 4096 / 64 * 3 * near.copy_latency;
  EXPECT_GT(more, cycles / (near.clock_mhz * 1e3));
}

// ---- refusals
TEST(Refused, a_gpu_that_nobody_has_described) {
  Diagnostics d;
  EXPECT_FALSE(find_gpu(kGpus, "b300", d));
  EXPECT_EQ(d.all()[0].message,
            "no GPU is called 'b300'; there are a10, a100, h200, l40s, rtx8000, t4");
}

TEST(Refused, a_figure_without_a_source) {
  auto json = nlohmann::json::parse(read_source(kGpus + "/t4.json")->text);
  json["mufu_lanes"].erase("source");
  Diagnostics d;
  EXPECT_FALSE(read_gpu("t4", make_source("t4.json", json.dump()), d));
  EXPECT_EQ(d.all()[0].message,
            "t4.json: mufu_lanes has no source: say where the figure comes from");
}

TEST(Refused, a_gpu_without_the_program_s_products) {
  EXPECT_EQ(refusal(corpus("sm90"), gpu_named("a100"), shape_of("B=1,H=1,M=256")),
            "timeline.gpu: the program multiplies by wgmma.bf16, which a100 does not have");
  EXPECT_EQ(refusal(corpus("sm80"), gpu_named("t4"), shape_of("B=1,H=1,M=256")),
            "timeline.gpu: the program multiplies by mma.bf16, which t4 does not have");
}

TEST(Refused, a_shape_that_is_not_the_program_s) {
  const Gpu gpu = gpu_named("h200");
  EXPECT_EQ(refusal(corpus("sm90"), gpu, shape_of("B=1,H=1")),
            "timeline.shape: the shape does not give M");
  EXPECT_EQ(refusal(corpus("sm90"), gpu, shape_of("B=1,H=1,M=256,X=3")),
            "timeline.shape: the shape says X = 3, which the program has not");
  Diagnostics d;
  EXPECT_FALSE(parse_shape("B=1,H", d));
  EXPECT_FALSE(parse_shape("B=two", d));
}

// ---- drawings
Timeline drawn() {
  Diagnostics d;
  static const tl::Program program = corpus("sm90");  // the bars' statements are its own
  auto t = pipeline(program, gpu_named("h200"), shape_of("B=1,H=66,M=512"), 2, d);
  EXPECT_TRUE(t) << render(d);
  return std::move(t).value_or(Timeline{});
}

TEST(Drawing, a_trace_has_a_named_track_for_each_bar_and_no_bars_that_overlap) {
  const auto trace = nlohmann::json::parse(to_trace(drawn(), 1980));
  std::map<std::pair<int, int>, double> until;
  std::set<std::pair<int, int>> named;
  std::set<std::string> categories;
  for (const auto& e : trace.at("traceEvents")) {
    const std::pair<int, int> track{e.at("pid"), e.at("tid")};
    if (e.at("ph") == "M" && e.at("name") == "thread_name") named.insert(track);
    if (e.at("ph") != "X") continue;
    EXPECT_TRUE(named.count(track));
    EXPECT_GE(e.at("ts").get<double>(), until[track] - 1e-9) << e.dump();
    EXPECT_GT(e.at("dur").get<double>(), 0);
    until[track] = e.at("ts").get<double>() + e.at("dur").get<double>();
    categories.insert(e.at("cat"));
  }
  EXPECT_EQ(named.size(), 2u * (3 + 2) + 4);  // two CTAs' agents; tensor cores and copies of each
  EXPECT_EQ(categories, (std::set<std::string>{"compute", "copy", "product", "wait"}));
}

TEST(Drawing, a_picture_is_well_formed_and_names_statements) {
  const std::string svg = to_svg(drawn(), "a < b & c");
  EXPECT_NE(svg.find("wgmma_add acc += p @ v_s[t]"), std::string::npos);
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  std::vector<std::string> open;
  for (size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::string tag = svg.substr(at + 1, svg.find('>', at) - at - 1);
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  EXPECT_TRUE(open.empty());
}

}  // namespace
}  // namespace kw::timeline
