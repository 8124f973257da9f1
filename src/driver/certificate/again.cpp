#include "driver/certificate/again.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/certificate/verify.h"
#include "driver/environment/proposer.h"
#include "driver/start/by_rules.h"
#include "num/npy.h"
#include "propose/bindings.h"
#include "support/files.h"
#include "transfer/change.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;

// "12ab34cd..." of a text, for a message.
std::string hash_of(const std::string& text) { return fmt::format("{:.12}...", sha256(text)); }

// The first name that only one of them has, or whose texts differ as `same` sees it.
template <typename Same>
std::string first_other(const Texts& was, const Texts& is, const char* whose, const Same& same) {
  for (const auto& [name, text] : was)
    if (const auto at = is.find(name); at == is.end())
      return fmt::format("{} is here, and {} has none", name, whose);
    else if (const std::string other = same(name, text, at->second); !other.empty())
      return other;
  for (const auto& [name, text] : is)
    if (!was.count(name)) return fmt::format("{} has {}, and none is here", whose, name);
  return "";
}

Texts below(const Texts& files, const std::string& folder) {
  Texts out;
  for (const auto& [name, text] : files)
    if (name.rfind(folder, 0) == 0) out[name] = text;
  return out;
}

Json without_each_ones_own(const std::string& text) {
  Json graph = Json::parse(text, nullptr, false);
  if (!graph.is_object()) return graph;
  for (const char* part : {"seconds", "made_by", "file"}) graph.erase(part);
  if (const auto all = graph.find("examples"); all != graph.end() && all->is_object())
    for (auto& [name, example] : all->items())
      if (example.is_object()) example.erase("values");
  return graph;
}

// The first statement of each that the other has not.
std::string other_program(const tl::Program& rules, const tl::Program& kernel) {
  const transfer::Change c = transfer::change(rules, kernel);
  const auto first = [](const std::vector<std::string>& all) {
    return all.empty() ? std::string("nothing") : fmt::format("`{:.100}`", all[0]);
  };
  return fmt::format("the rules write {} where kernel.tl has {}", first(c.removed), first(c.added));
}

// The model that answered, of "model (who)".
std::optional<std::string> model_of(const std::string& proposer) {
  if (proposer.rfind("model (", 0) != 0 || proposer.back() != ')') return std::nullopt;
  return proposer.substr(7, proposer.size() - 8);
}

double worst_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  for (size_t n = 0; n < a.values.size(); ++n) {
    const double x = a.values[n], y = b.values[n];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double far = std::abs(x - y) / std::max(std::abs(x), std::abs(y));
    worst = std::isfinite(far) ? std::max(worst, far) : INFINITY;
  }
  return worst;
}

// How far two arrays of doubles are apart, relative; infinity where one is no such array, or of
// another shape.
double distance(const std::string& name, const std::string& was, const std::string& is) {
  Diagnostics unused;
  const auto a = parse_npy(was, name, unused), b = parse_npy(is, name, unused);
  const auto is_real = [](const auto& t) {
    return t->dtype == Dtype::f64 || t->dtype == Dtype::f32;
  };
  const bool alike = a && b && is_real(a) && a->dtype == b->dtype && a->shape == b->shape &&
                     a->values.size() == b->values.size();
  return alike ? worst_difference(*a, *b) : INFINITY;
}

}  // namespace

std::string other_vocabulary(const Home& home, const Texts& files) {
  Texts ours;
  for (const auto& [name, text] : vocabulary_files(home)) ours[name] = text;
  return first_other(below(files, "kw/"), ours, "this build's vocabulary",
                     [](const std::string& name, const std::string& was, const std::string& is) {
                       return was == is ? ""
                                        : fmt::format(
                                              "{} is {} here, and {} in this build's "
                                              "vocabulary",
                                              name, hash_of(was), hash_of(is));
                     });
}

std::string other_graph(const std::string& was, const std::string& is) {
  const Json a = without_each_ones_own(was), b = without_each_ones_own(is);
  if (a == b) return "";
  for (const auto& [part, value] : b.items())
    if (!a.is_object() || !a.contains(part) || a[part] != value)
      return fmt::format("from/graph.json: '{}' is not what the specification gives again", part);
  return "from/graph.json has more than the specification gives";
}

std::optional<transfer::Result> transferred_again(const Proposal& p,
                                                  const std::optional<tl::Program>& before_edits,
                                                  const spec::Form& form, std::string& differs,
                                                  Diagnostics& diagnostics) {
  const tl::Program& written = before_edits ? *before_edits : p.kernel;
  transfer::Target target{p.target, {}, 0};
  target.deterministic = tl::takes_turns(written);
  // A row of one's own is in no folder: what it set is told by the program, but for constants that
  // a rule took out of it.
  const auto constants = constants_set(p.expert, written);
  std::vector<transfer::Tiles> own;
  if (!constants.empty()) own = {row_of(constants, form, p.target, p.expert)};
  std::optional<transfer::Result> again;
  const auto who = model_of(p.proposer);
  if (who) {
    target.tiles = own;
    again = transfer::begin(p.expert, form, target, diagnostics);
    if (!again) return std::nullopt;
    const tl::Program begun = std::move(again->program);
    again->program = p.kernel;
    propose::Refusal refusal;
    if (!propose::bind_arguments(*again, begun, form, refusal)) {
      diagnostics.error(refusal.code, {}, refusal.sentence);
      return std::nullopt;
    }
    propose::describe_change(*again, p.expert, *who);
  } else {
    Diagnostics refusals;
    for (const auto& tiles : {p.shipped, own}) {
      target.tiles = tiles;
      target.tried = 0;
      refusals = {};
      // Where the compiler lacked registers, it is what the rules write next.
      do {
        again = by_rules(p.expert, form, target, p.plain, refusals);
        ++target.tried;
      } while (again && again->roomier && !tl::equal(again->program, written));
      if (again && tl::equal(again->program, written)) break;
    }
    if (!again) {
      for (const Diagnostic& d : refusals.all()) diagnostics.add(d);
      return std::nullopt;
    }
    if (!tl::equal(again->program, written)) {
      differs = other_program(again->program, written);
      return std::nullopt;
    }
    again->program = p.kernel;
  }
  return again;
}

std::string other_attempts(const std::string& proposer, const Texts& files) {
  const std::string file = std::string("from/") + kAttempts;
  const auto who = model_of(proposer);
  const auto text = files.find(file);
  if (!who) return "";
  if (text == files.end()) return fmt::format("a model proposed, and there is no {}", file);
  std::string why;
  const Json record(parse_claims(text->second, why).value_or(Claims()));
  const Json none, *accepted = &none;
  if (record.is_object() && record.contains("accepted") && record.contains("attempts") &&
      record["accepted"].is_number_unsigned() && record["attempts"].is_array() &&
      record["accepted"] < record["attempts"].size())
    accepted = &record["attempts"][record["accepted"].get<size_t>()];
  if (accepted->is_object() && accepted->value("who", Json()) == *who) return "";
  return fmt::format("the proposer is {}, and {} has no accepted attempt of it", proposer, file);
}

OtherProof other_proof(const Texts& files, const fs::path& again) {
  OtherProof out;
  Texts is;
  for (const auto& [name, hash] : hash_files(again))
    is[name] = read_source((again / name).string())->text;
  const auto cases = files.find("prove.json");
  if (cases == files.end() || cases->second != is["prove.json"]) {
    const Json was = cases == files.end() ? Json() : Json::parse(cases->second, nullptr, false);
    const std::string differs = difference(was, Json::parse(is["prove.json"]));
    out.cases = differs.empty() ? "the same cases are written otherwise" : differs;
  }
  is.erase("prove.json");
  const auto same = [&](const std::string& name, const std::string& a, const std::string& b) {
    if (a == b) return std::string();
    const bool reals = name.ends_with(".npy") && !name.ends_with(".rows.npy");
    const double far = reals ? distance(name, a, b) : INFINITY;
    const double most = name.ends_with(".accepted.npy") ? 1e-2
                        : name.ends_with(".given.npy")  ? 1e-6  // rounded to fp32
                                                        : 1e-9;
    if (far > most)
      return fmt::format("{} is {} here, and the specification gives {}{}", name, hash_of(a),
                         hash_of(b), std::isfinite(far) ? fmt::format(": {:.2g} apart", far) : "");
    out.nearly =
        fmt::format("{} is not what this machine computes to the bit, and {:.1g} apart", name, far);
    return std::string();
  };
  out.goldens = first_other(below(files, "prove/"), is, "a proof of this function", same);
  return out;
}

}  // namespace kw::driver
