// A page's facts from the files of a folder. Each file that is missing or cannot be read takes its
// own section with it and no other.
#include <nlohmann/json.hpp>

#include "operator/graph/graph.h"
#include "operator/recognise/recognise.h"
#include "report/page.h"

namespace kw::report {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

// What an expression of a tile's extent is: a number or a constant of the kernel.
int64_t extent(const tl::ExprPtr& e, const OrderedJson& launch, int64_t otherwise) {
  if (e->kind == tl::ExprKind::integer) return std::stoll(e->text);
  const OrderedJson constants = launch.is_object() ? launch["constants"] : OrderedJson();
  const bool known = e->kind == tl::ExprKind::name && constants.is_object() &&
                     constants.contains(e->text) && constants[e->text].is_number_integer();
  return known ? constants[e->text].get<int64_t>() : otherwise;
}

class Reader {
 public:
  explicit Reader(const Sources& sources) : sources_(sources) {}

  Facts run() {
    facts_.certificate = sources_.certificate;
    facts_.gpus = sources_.gpus;
    facts_.patch = text_of("kernel.patch");
    facts_.launch = json_of("launch.json");
    if (!facts_.certificate["gpu"].is_null()) facts_.gpu_report = json_of("gpu.json");
    read_spec();
    read_kernels();
    read_program();
    read_measurements();
    return std::move(facts_);
  }

 private:
  std::string text_of(const std::string& name) const {
    const SourcePtr file = read_source((sources_.folder / name).string());
    return file ? file->text : "";
  }
  OrderedJson json_of(const std::string& name) const {
    OrderedJson json = OrderedJson::parse(text_of(name), nullptr, false);
    return json.is_object() ? json : OrderedJson();
  }

  void read_spec() {
    const std::string file = sources_.certificate["spec"]["file"]["name"];
    facts_.user_text = text_of("from/" + fs::path(file).filename().string());
    Diagnostics unused;
    auto graph = spec::parse_graph(make_source("graph.json", text_of("from/graph.json")),
                                   make_source(file, facts_.user_text), unused);
    if (graph) facts_.form = spec::form_of(std::move(*graph), unused);
    if (!facts_.form) facts_.masks.absent = "the captured graph cannot be read";
  }

  void read_kernels() {
    const std::string old_text = text_of("from/expert.cu"), new_text = text_of("kernel.cu");
    facts_.diff = read_patch(facts_.patch, old_text, new_text);
    std::optional<tl::Program> expert, kernel;
    Diagnostics unused;
    if (!sources_.expert)
      expert = lift::lift(make_source("from/expert.cu", old_text), sources_.clang, unused);
    if (!sources_.kernel)
      kernel = lift::lift(make_source("kernel.cu", new_text), sources_.clang, unused);
    const tl::Program* from = sources_.expert ? sources_.expert : expert ? &*expert : nullptr;
    const tl::Program* to = sources_.kernel ? sources_.kernel : kernel ? &*kernel : nullptr;
    if (from) facts_.old_tl = statements_by_line(*from);
    if (to) facts_.new_tl = statements_by_line(*to);
  }

  // What kernel.tl tells without a compiler: the pipeline, and how large tiles are.
  void read_program() {
    Diagnostics unused;
    auto program = tl::parse(make_source("kernel.tl", text_of("kernel.tl")), unused);
    if (!program) {
      facts_.pipeline.absent = facts_.masks.absent = "kernel.tl cannot be read";
      return;
    }
    facts_.program = std::move(*program);
    facts_.pipeline =
        predict_pipeline(facts_.program, sources_.gpus.string(), sources_.certificate["target"]);
    if (facts_.form) draw();
  }

  void draw() {
    const nlohmann::json graph = nlohmann::json::parse(text_of("from/graph.json"), nullptr, false);
    facts_.masks = draw_masks(*facts_.form, graph.value("examples", nlohmann::json::object()),
                              tile_of(facts_.program, facts_.launch));
  }

  void read_measurements() {
    const OrderedJson bench = json_of("bench.json");
    const std::string launch = text_of("launch.json");
    if (!bench.is_null())
      facts_.measured = measured_by_bench(cases_of(bench, text_of("kernel.cubin"), launch));
    if (facts_.gpu_report.is_null()) return;
    const OrderedJson prove = json_of("prove.json");
    for (Measured& m : measured_by_proof(facts_.gpu_report, prove, facts_.launch))
      facts_.measured.push_back(std::move(m));
  }

  const Sources& sources_;
  Facts facts_;
};

}  // namespace

// The scores are a kernel's first accumulator: a warpgroup's rows by a block's keys.
TileSize tile_of(const tl::Program& program, const OrderedJson& launch) {
  const TileSize usual;
  const tl::Stmt* scores = program.find(tl::Op::accumulator);
  return scores ? TileSize{extent(scores->rows(), launch, usual.rows),
                           extent(scores->columns(), launch, usual.columns)}
                : usual;
}

Facts read_facts(const Sources& sources) { return Reader(sources).run(); }

}  // namespace kw::report
