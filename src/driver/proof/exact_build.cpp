#include "driver/proof/exact_build.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "exec/exec.h"
#include "num/npy.h"
#include "num/small_algebra.h"
#include "runtime/launch/strided.h"
#include "runtime/prove/prove_spec.h"
#include "support/files.h"
#include "support/threads.h"
#include "tl/laws/laws.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
using exact::SmallAlgebra;

constexpr int64_t kMostScores = 1'000'000;  // of a case: a second or two for the executor
constexpr size_t kCases = 4;

// One case: the words of its inputs, then those of its outputs.
struct Run {
  const runtime::ProveCase* asked = nullptr;
  exec::Launch launch;
  exec::Outcome outcome;
};

int64_t scores(const runtime::ProveCase& c) {
  int64_t count = 1;
  for (const char* letter : {"B", "H", "M", "N"}) {
    const auto size = c.sizes.find(letter);
    if (size != c.sizes.end()) count *= static_cast<int64_t>(runtime::as_real(size->second));
  }
  return count;
}

// Numbers become names of the algebra's elements: what their bits are on the GPU.
void name_words(Tensor& t) {
  for (double& x : t.values) {
    if (t.dtype == Dtype::bf16) x = SmallAlgebra::word(bf16_bits(static_cast<float>(x)));
    if (t.dtype == Dtype::f16) x = SmallAlgebra::word(f16_bits(static_cast<float>(x)));
    if (t.dtype == Dtype::f32) x = SmallAlgebra::fp32(static_cast<float>(x));
  }
}

// The launch of a case. Scalars that are computed at launch have the fp32 value that the runtime
// computes: the executor's own formula for them would be another number.
std::optional<exec::Launch> launch_of(const runtime::LaunchSpec& spec, const runtime::ProveCase& c,
                                      Diagnostics& diagnostics) {
  exec::Launch launch;
  runtime::Bindings known = spec.constants;
  known.insert(c.sizes.begin(), c.sizes.end());
  for (const auto& [name, value] : c.scalars) {
    known.insert_or_assign(name, runtime::Number(value));
    launch.scalars[name] = value;
  }
  for (const runtime::Argument& a : spec.arguments) {
    if (a.is_tensor() && !a.written) {
      Tensor t = runtime::draw_tensor(c.inputs.at(a.name), c.seed, a.dtype,
                                      runtime::shape_of(a, spec, c.sizes));
      name_words(t);
      launch.tensors.emplace(a.name, std::move(t));
    }
    if (!a.value) continue;
    std::string why;
    const auto value = a.value->evaluate(known, why);
    if (!value) {
      diagnostics.error("exact.launch", {}, fmt::format("{}: {}", a.name, why));
      return std::nullopt;
    }
    known.insert_or_assign(a.name, *value);
    if (a.dtype == Dtype::f32)
      launch.scalars[a.name] = static_cast<float>(runtime::as_real(*value));
  }
  for (const auto& [name, value] : c.sizes) launch.scalars[name] = runtime::as_real(value);
  return launch;
}

class Builder {
 public:
  Builder(const ExactBuildOptions& options, const Say& say, Diagnostics& diagnostics)
      : options_(options), say_(say), diagnostics_(diagnostics), folder_(options.folder) {}

  bool run() { return read() && build() && execute() && write(); }

 private:
  std::string text_of(const char* name) {
    const SourcePtr file = read_source((folder_ / name).string());
    if (file) return file->text;
    diagnostics_.error("exact.folder", {}, fmt::format("{} has no {}", folder_.string(), name))
        .hint = "name a folder that make wrote";
    return {};
  }

  bool read() {
    tools_ = find_tools(diagnostics_);
    if (!tools_) return false;
    kernel_ = text_of("kernel.cu"), launch_text_ = text_of("launch.json");
    const std::string program = text_of("kernel.tl"), proof = text_of("prove.json");
    text_of("kw/exact/real.cuh");
    if (diagnostics_.has_errors()) return false;
    tools_->home.own_vocabulary = folder_;
    program_ = tl::parse(make_source("kernel.tl", program), diagnostics_);
    if (!program_ || !tl::verify(*program_, diagnostics_)) return false;
    spec_ = runtime::read_launch_spec(make_source("launch.json", launch_text_), diagnostics_);
    if (spec_) cases_ = runtime::read_prove_spec(folder_.string(), *spec_, diagnostics_);
    if (spec_)
      for (const runtime::Argument& a : spec_->arguments)
        if (a.is_tensor() && a.dtype == Dtype::e4m3) {
          diagnostics_
              .error("exact.dtype", {},
                     fmt::format("{} is e4m3, whose 8 bits hold no element of the small algebra",
                                 a.name))
              .hint = "the exact reading on the CPU (kernelwright check) covers it";
          return false;
        }
    if (cases_) proof_ = Json::parse(proof);
    return cases_.has_value();
  }

  bool build() {
    built_ = driver::build(*tools_, make_source("kernel.cu", kernel_), spec_->target,
                           spec_->entries(), spec_->parameter_bytes, diagnostics_, {"-DKW_EXACT"});
    if (built_)
      say_("build", fmt::format("{} with KW_EXACT, {}", spec_->target, built_->compiler),
           clock_.lap());
    return built_.has_value();
  }

  bool execute() {
    for (const runtime::ProveCase& c : cases_->cases) {
      if (scores(c) > kMostScores || runs_.size() == kCases) continue;
      auto launch = launch_of(*spec_, c, diagnostics_);
      if (!launch) return false;
      runs_.push_back({&c, std::move(*launch), {}});
    }
    const SmallAlgebra algebra(1);
    each_on_threads(2, runs_.size(), [&](size_t n) {
      runs_[n].launch.algebra = &algebra;
      runs_[n].launch.grid = 1 + static_cast<int>(n % 3);
      runs_[n].outcome = exec::run(*program_, runs_[n].launch);
    });
    for (const Run& r : runs_)
      for (const Diagnostic& d : r.outcome.faults) diagnostics_.add(d);
    if (runs_.empty())
      diagnostics_.error("exact.folder", {}, "prove.json has no case that is small enough");
    if (diagnostics_.has_errors()) return false;
    say_("execute", fmt::format("{} cases in the small algebra", runs_.size()), clock_.lap());
    return true;
  }

  // The output's words, row by row, as a golden of prove.json. `whole`: the rows are rows.
  bool save_words(const fs::path& out, const std::string& stem, const Run& run,
                  const std::string& output, uint32_t mask, Json& goldens) {
    const auto found = run.outcome.exact.find(output);
    if (found == run.outcome.exact.end()) return true;
    const std::vector<int64_t>& shape = run.outcome.outputs.at(output).shape;
    const int64_t columns = shape.size() == 4 ? shape[3] : 1,
                  count = found->second.size() / columns;
    Tensor rows(Dtype::i64, {count, 3}), values(Dtype::i32, {count}), accepted(Dtype::f64, {count});
    if (shape.size() == 4) values.shape.push_back(columns);
    values.values.clear();
    for (int64_t r = 0; r < count; ++r) {
      rows.values[3 * r] = static_cast<double>(r / (shape[1] * shape[2]));
      rows.values[3 * r + 1] = static_cast<double>(r / shape[2] % shape[1]);
      rows.values[3 * r + 2] = static_cast<double>(r % shape[2]);
    }
    for (const exact::Element& e : found->second) {
      const uint32_t bits = SmallAlgebra::bits(e);  // 16-bit storage keeps the upper half
      values.values.push_back((columns > 1 ? bits >> 16 : bits) & mask);
    }
    const std::string at = stem + "." + output;
    goldens.push_back({{"output", output},
                       {"rows", at + ".rows.npy"},
                       {"values", at + ".npy"},
                       {"accepted", at + ".accepted.npy"},
                       {"mask", mask}});
    return write_npy(out / (at + ".rows.npy"), rows) && write_npy(out / (at + ".npy"), values) &&
           write_npy(out / (at + ".accepted.npy"), accepted);
  }

  bool write() {
    StagedFolder folder(options_.out);
    fs::create_directories(folder.path() / "prove");
    Json cases = Json::array();
    bool written = true;
    for (size_t n = 0; n < runs_.size() && written; ++n) {
      Json one = proof_["cases"][runs_[n].asked - cases_->cases.data()];
      Json goldens = Json::array();
      for (const char* output : {"o", "lse", "sums"})
        written = written && save_words(folder.path(), fmt::format("prove/{}", n), runs_[n], output,
                                        0xffff, goldens);
      one["name"] = "exact " + one["name"].get<std::string>();
      one["goldens"] = goldens;
      one["timed"] = false;
      cases.push_back(one);
    }
    written = written && write_file(folder.path() / "prove.json", Json{{"cases", cases}}.dump(1)) &&
              write_file(folder.path() / "launch.json", launch_text_) &&
              write_file(folder.path() / "kernel.cubin", built_->cubin) && folder.commit();
    if (!written)
      diagnostics_.error("driver.write", {}, fmt::format("cannot write into {}", options_.out));
    else
      say_("wrote", options_.out + "/{kernel.cubin, launch.json, prove.json}", clock_.lap());
    return written;
  }

  const ExactBuildOptions& options_;
  const Say& say_;
  Diagnostics& diagnostics_;
  const fs::path folder_;
  StageClock clock_;
  std::optional<Tools> tools_;
  std::string kernel_, launch_text_;
  std::optional<tl::Program> program_;
  std::optional<runtime::LaunchSpec> spec_;
  std::optional<runtime::ProveSpec> cases_;
  Json proof_;
  std::optional<Built> built_;
  std::vector<Run> runs_;
};

}  // namespace

Exit exact_build(const ExactBuildOptions& options, const Say& say, Diagnostics& diagnostics) {
  return Builder(options, say, diagnostics).run() ? Exit::holds : exit_for(diagnostics);
}

}  // namespace kw::driver
