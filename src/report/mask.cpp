#include "report/mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/evaluate/program.h"
#include "operator/family.h"
#include "report/family.h"

namespace kw::report {

using spec::ExprPtr;
using spec::Kind;
using transfer::Interval;
using transfer::Kept;
using Json = nlohmann::json;

namespace {

constexpr int64_t kShown = 1024, kMostShown = 4096;  // queries or keys
constexpr int64_t kRowsOfStrokes = 256;              // rows whose kept keys are drawn
constexpr double kWord = 1 << 24;  // integers beyond are bits, not numbers (goldens.py)

void for_each(const ExprPtr& e, const std::function<void(const spec::Expr&)>& visit) {
  visit(*e);
  for (const ExprPtr& a : e->args) for_each(a, visit);
}

// ---- the arguments that a predicate reads, at the example's sizes or stretched

class Example {
 public:
  Example(const spec::Form& form, const Json& examples) : form_(form), examples_(examples) {}

  // False when the example does not hold all that the predicate mentions; `absent` says what.
  bool read(const ExprPtr& keep) {
    for (const spec::Argument& a : form_.arguments) {
      if (a.is_tensor)
        note_sizes(a);
      else
        problem.scalars[a.name] = a.value;
    }
    for (const spec::Size* s : {&form_.B, &form_.M, &form_.N})
      if (spec::value_of(*s, problem.sizes) < 1)
        return refuse("the capture does not say the sizes of example_inputs()");
    if (!keep) return true;
    for_each(keep, [&](const spec::Expr& e) {
      if (e.kind == Kind::read && absent.empty()) read_tensor(e.name);
      if (e.kind == Kind::number && e.type == spec::Type::integer)
        longest_ = std::max(longest_, std::abs(e.integer));
      if (e.kind == Kind::argument) longest_ = std::max(longest_, int64_t(problem.scalars[e.name]));
    });
    return absent.empty();
  }

  // As many times as make the picture about kShown entries wide, more where the predicate has
  // numbers of that size (a window of 1024).
  int64_t stretch() {
    const int64_t queries = spec::value_of(form_.M, problem.sizes);
    const int64_t keys = spec::value_of(form_.N, problem.sizes);
    const int64_t wanted =
        std::clamp<int64_t>(std::bit_ceil(uint64_t(2 * longest_)), kShown, kMostShown);
    const int64_t times = wanted / std::max(queries, keys);
    if (!can_stretch_ || times < 2 || form_.M.name.empty() || form_.N.name.empty()) return 1;
    for (auto& [name, tensor] : problem.tensors) stretch(*form_.argument(name), tensor, times);
    for (const std::string& name : std::set<std::string>{form_.M.name, form_.N.name})
      problem.sizes[name] *= times;
    return times;
  }

  std::vector<std::string> data() const {
    constexpr size_t kMost = 8;
    std::vector<std::string> out;
    for (const auto& [name, tensor] : problem.tensors) {
      if (tensor.values.size() > kMost) {
        out.push_back(fmt::format("{}: {} numbers", name, tensor.values.size()));
        continue;
      }
      std::string list;
      for (const double v : tensor.values) list += fmt::format("{}{}", list.empty() ? "" : ", ", v);
      out.push_back(fmt::format("{} = {}", name, list));
    }
    return out;
  }

  spec::Problem problem;  // without the operands
  std::string absent;

 private:
  bool refuse(const std::string& why) {
    absent = why;
    return false;
  }

  bool along_tokens(const spec::Size& d) const {
    return !d.name.empty() && (d.name == form_.M.name || d.name == form_.N.name);
  }

  void note_sizes(const spec::Argument& a) {
    const Json shape = examples_.value(a.name, Json::object()).value("shape", Json::array());
    for (size_t d = 0; d < a.dims.size() && d < shape.size(); ++d)
      if (!a.dims[d].name.empty()) problem.sizes.try_emplace(a.dims[d].name, shape[d]);
  }

  void read_tensor(const std::string& name) {
    if (problem.tensors.count(name)) return;
    const spec::Argument* a = form_.argument(name);
    const Json example = examples_.value(name, Json::object());
    const Json values = example.value("values", Json());
    if (!a || !(values.is_array() || values.is_string())) {
      refuse(
          fmt::format("the mask reads '{}', whose values in example_inputs() the capture does "
                      "not keep: only those of few integers or flags",
                      name));
      return;
    }
    Tensor t(a->dtype, example["shape"].get<std::vector<int64_t>>());
    if (values.is_string())  // flags
      for (size_t n = 0; n < t.values.size(); ++n)
        t.values[n] = values.get_ref<const std::string&>().at(n) - '0';
    else
      t.values = values.get<std::vector<double>>();
    for (const spec::Size& d : a->dims)
      can_stretch_ &= d.name.empty() || d.name == form_.B.name || along_tokens(d);
    for (const double v : t.values) can_stretch_ &= std::abs(v) < kWord;
    problem.tensors[name] = std::move(t);
  }

  // Every number of a token `times` times; and lengths, by what they look like, times as long.
  void stretch(const spec::Argument& a, Tensor& t, int64_t times) const {
    Tensor out(t.dtype, t.shape);
    for (size_t d = 0; d < t.shape.size(); ++d)
      if (along_tokens(a.dims[d])) out.shape[d] *= times;
    out.values.resize(element_count(out.shape));
    const auto [low, high] = std::minmax_element(t.values.begin(), t.values.end());
    const bool lengths = t.dtype != Dtype::boolean && !t.values.empty() && *low >= 0 && *high > 1;
    std::vector<int64_t> at(t.shape.size());
    for (int64_t n = 0; n < out.count(); ++n) {
      int64_t rest = n;
      for (size_t d = t.shape.size(); d-- > 0; rest /= out.shape[d])
        at[d] = rest % out.shape[d] / (along_tokens(a.dims[d]) ? times : 1);
      out.values[n] = t.at(at) * (lengths ? double(times) : 1);
    }
    t = std::move(out);
  }

  const spec::Form& form_;
  const Json& examples_;
  bool can_stretch_ = true;
  int64_t longest_ = 1;  // of the numbers in the predicate
};

// ---- tiles

class Classifier {
 public:
  Classifier(const ExprPtr& keep, const spec::Problem& problem, MaskPicture& picture)
      : keep_(keep), problem_(problem), picture_(picture), program_(keep, problem) {}

  void run() {
    for (int64_t m = 0; m < picture_.tile_rows(); ++m)
      for (int64_t n = 0; n < picture_.tile_columns(); ++n) picture_.tiles.push_back(tile(m, n));
    picture_.step = std::max<int64_t>(1, picture_.queries / kRowsOfStrokes);
    for (int64_t i = 0; i < picture_.queries; i += picture_.step)
      picture_.kept_rows.push_back(kept_of(i + picture_.step / 2));
  }

 private:
  bool keeps(int64_t i, int64_t j) {
    return program_.run(spec::Program::at(picture_.b, picture_.h, i, j)) == 1;
  }

  // The range of a tensor's elements within ranges of its indices, where there are few.
  Interval range_of(const std::string& name, const std::vector<Interval>& at) const {
    const Tensor& t = problem_.tensors.at(name);
    std::vector<int64_t> low, extent;
    int64_t count = 1;
    for (size_t d = 0; d < at.size(); ++d) {
      if (!(at[d].low >= 0) || !(at[d].high < double(t.shape[d]))) return {};
      low.push_back(int64_t(at[d].low));
      extent.push_back(int64_t(at[d].high) - low[d] + 1);
      count *= extent[d];
      if (count > 4096) return {};
    }
    Interval out{transfer::kInfinity, -transfer::kInfinity};
    for (int64_t n = 0; n < count; ++n) {
      std::vector<int64_t> index = low;
      for (int64_t d = int64_t(at.size()) - 1, rest = n; d >= 0; rest /= extent[d], --d)
        index[d] += rest % extent[d];
      out.low = std::min(out.low, t.at(index));
      out.high = std::max(out.high, t.at(index));
    }
    return out;
  }

  Kept tile(int64_t m, int64_t n) {
    const int64_t i0 = m * picture_.tile.rows, j0 = n * picture_.tile.columns;
    const int64_t i1 = std::min(i0 + picture_.tile.rows, picture_.queries);
    const int64_t j1 = j0 + picture_.tile.columns, inside = std::min(j1, picture_.keys);
    const auto exactly = [](int64_t x) { return Interval{double(x), double(x)}; };
    transfer::Box box;
    for (const auto& [name, size] : problem_.sizes) box.names[name] = exactly(size);
    for (const auto& [name, value] : problem_.scalars) box.names[name] = {value, value};
    box.names["b"] = exactly(picture_.b);
    box.names["h"] = exactly(picture_.h);
    box.names["i"] = {double(i0), double(i1 - 1)};
    box.names["j"] = {double(j0), double(inside - 1)};
    box.read = [this](const std::string& name, const std::vector<Interval>& at) {
      return range_of(name, at);
    };
    Kept found = transfer::kept(keep_, box);
    if (found == Kept::partial) found = by_entries(i0, i1, j0, inside);
    return found == Kept::all && inside < j1 ? Kept::partial : found;  // past the last key
  }

  Kept by_entries(int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
    bool some = false, all = true;
    for (int64_t i = i0; i < i1; ++i)
      for (int64_t j = j0; j < j1; ++j) {
        const bool kept = keeps(i, j);
        some |= kept;
        all &= kept;
        if (some && !all) return Kept::partial;
      }
    return all ? Kept::all : Kept::none;
  }

  std::vector<Run> kept_of(int64_t i) {
    std::vector<Run> runs;
    i = std::min(i, picture_.queries - 1);
    for (int64_t n = 0; n < picture_.tile_columns(); ++n) {
      const int64_t m = i / picture_.tile.rows, j0 = n * picture_.tile.columns;
      if (picture_.tiles[m * picture_.tile_columns() + n] != Kept::partial) continue;
      for (int64_t j = j0; j < std::min(j0 + picture_.tile.columns, picture_.keys); ++j) {
        if (!keeps(i, j)) continue;
        if (!runs.empty() && runs.back().last == j)
          ++runs.back().last;
        else
          runs.push_back({j, j + 1});
      }
    }
    return runs;
  }

  const ExprPtr& keep_;
  const spec::Problem& problem_;
  MaskPicture& picture_;
  spec::Program program_;
};

// Batch entries or heads to look at: the first and the last where the mask differs between them.
std::vector<int64_t> ends(const ExprPtr& keep, const char* index, int64_t extent) {
  if (extent < 2 || !spec::mentions(keep, Kind::index, index)) return {0};
  return {0, extent - 1};
}

int kinds(const MaskPicture& p) {
  return (p.count(Kept::none) > 0) + (p.count(Kept::all) > 0) + (p.count(Kept::partial) > 0);
}

}  // namespace

int64_t MaskPicture::count(Kept what) const { return std::count(tiles.begin(), tiles.end(), what); }

Masks draw_masks(const spec::Form& form, const Json& examples, TileSize tile) {
  Masks out;
  if (!Family::of(form).has_mask()) {
    out.absent = spec::Family::of(form).what() + " masks nothing";
    return out;
  }
  const ExprPtr keep = form.terms[0].keep ? form.terms[0].keep : spec::boolean(true);
  Example example(form, examples);
  if (!example.read(form.terms[0].keep)) {
    out.absent = example.absent;
    return out;
  }
  out.stretched = example.stretch();
  out.data = example.data();
  const auto& sizes = example.problem.sizes;
  const int64_t queries = spec::value_of(form.M, sizes), keys = spec::value_of(form.N, sizes);
  out.cropped = std::max(queries, keys) > kMostShown;
  for (const int64_t b : ends(keep, "b", spec::value_of(form.B, sizes)))
    for (const int64_t h : ends(keep, "h", form.H.constant)) {
      MaskPicture picture{b, h, std::min(queries, kMostShown), std::min(keys, kMostShown), tile};
      Classifier(keep, example.problem, picture).run();
      out.pictures.push_back(std::move(picture));
    }
  // The one that shows most comes first.
  std::stable_sort(out.pictures.begin(), out.pictures.end(), [](const auto& x, const auto& y) {
    return std::pair(kinds(x), x.count(Kept::all)) > std::pair(kinds(y), y.count(Kept::all));
  });
  return out;
}

}  // namespace kw::report
