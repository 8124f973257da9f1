#include "driver/training/halves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "operator/family.h"
#include "operator/graph/graph.h"
#include "operator/recognise/recognise.h"

namespace kw::driver {
namespace {

using Json = nlohmann::json;
using lower::LaunchArgument;

// As make gives them to the plan: what the transfer asks for, then the limits that were proved.
// The half's own verification has derived both again.
std::vector<tl::ExprPtr> requirements_of(const Claims& claims) {
  std::vector<tl::ExprPtr> all;
  Diagnostics unused;
  const auto add = [&](const std::string& text) {
    if (const tl::ExprPtr condition = tl::parse_expr(text, unused)) all.push_back(condition);
  };
  for (const Claims& c : claims["transfer"]["conditions"]) add(c["holds"]);
  for (const Claims& one : claims["checked"])
    if (one["check"] == "indices")
      for (const Claims& limit : one["coverage"]["limits"]) add(limit);
  return all;
}

const LaunchArgument* argument(const lower::LaunchPlan& plan, const std::string& name) {
  for (const LaunchArgument& a : plan.arguments)
    if (a.name == name) return &a;
  return nullptr;
}

std::vector<std::string> printed(const std::vector<tl::ExprPtr>& dims) {
  std::vector<std::string> out;
  for (const tl::ExprPtr& d : dims) out.push_back(tl::print(d));
  return out;
}

std::string shown(const LaunchArgument& a) {
  return fmt::format("{} {}[{}]", a.name, a.type, fmt::join(printed(a.dims), ", "));
}

// The output of the forward form that the gradients' form calls `saved`.
const spec::Output* output_saved(const std::vector<spec::Output>& outputs,
                                 const std::string& saved) {
  for (const spec::Output& o : outputs)
    if (saved == spec::Gradients::kOutput ? o.unrounded : o.rule == spec::Rule::log_sum) return &o;
  return nullptr;
}

class Joiner {
 public:
  Joiner(Both& both, Diagnostics& diagnostics) : both_(both), diagnostics_(diagnostics) {}

  bool run() {
    return is_of("forward", both_.forward) && is_of("backward", both_.backward) &&
           of_one_function() && gives_all() && pass() && share();
  }

 private:
  bool refuse(const std::string& what) {
    diagnostics_.error("training.halves", {}, "the two halves do not fit each other: " + what)
        .hint = "make both again: kernelwright make FILE.py --backward";
    return false;
  }

  bool is_of(const std::string& half, const Half& h) {
    const std::string is = h.claims["spec"].value("training", "");
    return is == half || refuse(fmt::format("the folder {0} holds a kernel for `{1}`, and one for "
                                            "`{0}` is due",
                                            half, is.empty() ? "no training" : is));
  }

  bool same(const char* what, const std::string& f, const std::string& b) {
    return f == b || refuse(fmt::format("{} is {:.64} of forward, {:.64} of backward", what, f, b));
  }

  bool of_one_function() {
    const Claims &f = both_.forward.claims, &b = both_.backward.claims;
    const auto text = [](const Claims& c) { return c.get<std::string>(); };
    for (const char* field : {"name", "function", "dtype"})
      if (!same(fmt::format("the specification's {}", field).c_str(), text(f["spec"][field]),
                text(b["spec"][field])))
        return false;
    return same("the specification's file", text(f["spec"]["file"]["name"]),
                text(b["spec"]["file"]["name"])) &&
           same("the specification's SHA-256", text(f["spec"]["file"]["sha256"]),
                text(b["spec"]["file"]["sha256"])) &&
           same("the graph's SHA-256", function_sha256(both_.forward.graph),
                function_sha256(both_.backward.graph)) &&
           same("the target", text(f["target"]), text(b["target"])) &&
           same("the check's effort", text(f["effort"]), text(b["effort"])) &&
           same("the version of kernelwright", text(f["kernelwright"]), text(b["kernelwright"]));
  }

  bool gives_all() {
    for (const spec::Output& o : spec::outputs(both_.backward.form))
      if (const LaunchArgument* a = argument(both_.backward.plan, o.name);
          o.of.empty() || !a || !a->written)
        return refuse(
            fmt::format("of the gradients {} is one, and the backward kernel does not "
                        "write it",
                        o.name));
    return true;
  }

  bool pass() {
    const std::vector<spec::Output> outputs = spec::outputs(both_.forward.form);
    for (const Claims& binding : both_.backward.claims["transfer"]["bindings"]) {
      const std::string saved = binding["user"], to = binding["argument"];
      if (saved != spec::Gradients::kOutput && saved != spec::Gradients::kLogSum) continue;
      const spec::Output* output = output_saved(outputs, saved);
      const LaunchArgument* written = output ? argument(both_.forward.plan, output->name) : nullptr;
      const LaunchArgument* read = argument(both_.backward.plan, to);
      if (!written || !written->written || !read || read->written)
        return refuse(fmt::format("the backward kernel reads {} as {}, and the forward kernel {}",
                                  saved, to, written ? "reads it, too" : "does not write it"));
      if (written->type != read->type || printed(written->dims) != printed(read->dims))
        return refuse(fmt::format("the forward kernel saves {}, and the backward one reads {}",
                                  shown(*written), shown(*read)));
      both_.passed.push_back({saved, written->name, to, read->type, printed(read->dims)});
    }
    return true;
  }

  // By what each is of the user's, in the same order of dimensions.
  bool share() {
    for (const Claims& f : both_.forward.claims["transfer"]["bindings"])
      for (const Claims& b : both_.backward.claims["transfer"]["bindings"]) {
        const LaunchArgument *in = argument(both_.forward.plan, f["argument"]),
                             *back = argument(both_.backward.plan, b["argument"]);
        if (f["user"] == "" || f["user"] != b["user"] || !in || !back || in->value || back->value)
          continue;
        if (f["dims"] == b["dims"] && f.contains("group") == b.contains("group") &&
            in->type == back->type)
          both_.shared.emplace_back(in->name, back->name);
      }
    return true;
  }

  Both& both_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<Half> read_half(const std::string& half, const Claims& claims, const TextOf& text_of,
                              Diagnostics& diagnostics) {
  Diagnostics found;
  const auto program = tl::parse(make_source(half + "/kernel.tl", text_of("kernel.tl")), found);
  auto plan = program ? lower::plan_launch(*program, claims["target"], found) : std::nullopt;
  const std::string graph = text_of("from/graph.json");
  const std::string named = claims["spec"]["file"]["name"];
  const std::string file = std::filesystem::path(named).filename();
  auto read = spec::parse_graph(make_source(half + "/from/graph.json", graph),
                                make_source(file, text_of("from/" + file)), found);
  auto form = read ? spec::form_of(std::move(*read), found) : std::nullopt;
  if (!plan || !form) {
    for (const Diagnostic& d : found.all())
      if (d.severity == Severity::error)
        diagnostics.error("training.half", d.span, fmt::format("{}: {}", half, d.message));
    return std::nullopt;
  }
  for (tl::ExprPtr& condition : requirements_of(claims))
    plan->requirements.push_back(std::move(condition));
  return Half{claims, std::move(*form),         std::move(*plan), text_of("launch.json"),
              graph,  tl::takes_turns(*program)};
}

std::optional<Both> join(Half forward, Half backward, Diagnostics& diagnostics) {
  Both both{std::move(forward), std::move(backward), {}, {}};
  if (!Joiner(both, diagnostics).run()) return std::nullopt;
  return both;
}

std::string header_of(const Both& both) {
  lower::TwoPlans two{both.forward.plan, both.backward.plan, both.shared, {}};
  for (const Passed& p : both.passed) two.passed.emplace_back(p.from, p.to);
  return lower::launch_header(two, both.forward.claims["spec"]["name"]);
}

std::string function_sha256(const std::string& graph) {
  Json without = Json::parse(graph, nullptr, false);
  if (without.is_object()) without.erase("training");
  return CapturedGraph{without.is_object() ? without.dump() : graph}.sha256();
}

}  // namespace kw::driver
