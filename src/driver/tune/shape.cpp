#include "driver/tune/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace kw::driver {
namespace {

constexpr uint64_t kTunedSeed = 20;
constexpr int64_t kTunedRows = 64;

// The letters and what the form has for them.
std::vector<std::pair<std::string, spec::Size>> letters_of(const spec::Form& f) {
  return {{"B", f.B}, {"H", f.H}, {"G", f.G}, {"M", f.M}, {"N", f.N}};
}

// The share of the keys that evenly spaced rows keep, each of another batch entry and head. A form
// without a mask keeps all.
double kept_share(const spec::Form& form, const spec::Problem& p) {
  const spec::ExprPtr& keep = form.terms.at(0).keep;
  if (!keep) return 1;
  const auto size = [&](const spec::Size& s) { return spec::value_of(s, p.sizes); };
  const int64_t B = size(form.B), H = size(form.H), M = size(form.M), N = size(form.N);
  spec::Scope scope;
  scope.indices = p.sizes;
  scope.scalars = p.scalars;
  scope.read = [&](const std::string& tensor, const std::vector<int64_t>& at) {
    return p.tensors.at(tensor).at(at);
  };
  const int64_t rows = std::min(kTunedRows, M);
  int64_t kept = 0;
  for (int64_t n = 0; n < rows; ++n) {
    scope.indices["b"] = n % B;
    scope.indices["h"] = n % H;
    scope.indices["i"] = (2 * n + 1) * M / (2 * rows);
    for (int64_t j = 0; j < N; ++j) {
      scope.indices["j"] = j;
      kept += spec::evaluate(keep, scope) != 0;
    }
  }
  return static_cast<double>(kept) / static_cast<double>(rows * N);
}

}  // namespace

std::optional<std::map<std::string, int64_t>> parse_shape(const std::string& text,
                                                          Diagnostics& diagnostics) {
  std::map<std::string, int64_t> out;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    char* end = nullptr;
    const bool letter = part.size() > 2 && part[1] == '=' &&
                        std::string("BHGMN").find(part[0]) != std::string::npos;
    const int64_t value = letter ? std::strtoll(part.c_str() + 2, &end, 10) : 0;
    if (value < 1 || *end) {
      diagnostics.error("tune.shape", {}, fmt::format("'{}' is not a size of a shape", part)).hint =
          "write B=1,H=16,M=16384,N=16384; what is left out is the usual";
      return std::nullopt;
    }
    out[part.substr(0, 1)] = value;
  }
  return out;
}

std::map<std::string, int64_t> with_usual(const spec::Form& form,
                                          std::map<std::string, int64_t> given) {
  const int64_t length = given.count("M")                           ? given["M"]
                         : given.count("N")                         ? given["N"]
                         : form.D.constant + form.Dv.constant > 256 ? 8192
                                                                    : 16384;
  const std::map<std::string, int64_t> usual = {{"B", 1}, {"M", length}, {"N", length}};
  for (const auto& [letter, size] : letters_of(form))
    if (size.name.empty())
      given.emplace(letter, size.constant);
    else
      given.emplace(letter, usual.count(letter) ? usual.at(letter) : 1);
  return given;
}

std::optional<TunedShape> tuned_shape(const spec::Capture& capture,
                                      const std::map<std::string, int64_t>& letters,
                                      Diagnostics& diagnostics) {
  const spec::Form& form = capture.form;
  std::map<std::string, int64_t> sizes =
      capture.cases.empty() ? std::map<std::string, int64_t>{} : capture.cases[0].sizes;
  std::map<std::string, int64_t> set;
  for (const auto& [letter, size] : letters_of(form)) {
    const auto asked = letters.find(letter);
    // A kernel takes any number of heads, whatever the specification's inputs had.
    if (asked == letters.end() || letter == "H" || letter == "G") continue;
    const bool fixed = size.name.empty() && size.constant != asked->second;
    const bool twice = set.count(size.name) && set[size.name] != asked->second;
    if (fixed || twice) {
      diagnostics.error(
          "tune.shape", {},
          fixed ? fmt::format("{} is {}, and the function fixes it to {}", letter, asked->second,
                              size.constant)
                : fmt::format("{} is {}, and the function takes the same size elsewhere to be {}",
                              letter, asked->second, set[size.name]));
      return std::nullopt;
    }
    if (!size.name.empty()) sizes[size.name] = set[size.name] = asked->second;
  }
  const spec::Draws draws = spec::draws_for(capture, sizes, kTunedSeed);
  spec::Form small = form;  // without the operands, which nothing on this machine reads
  std::erase_if(small.arguments, [&](const spec::Argument& a) {
    const spec::Term& t = form.terms.at(0);
    const auto all = spec::operands(t);
    return std::any_of(all.begin(), all.end(),
                       [&](const spec::Operand* o) { return o->argument == a.name; });
  });
  auto problem = spec::make_problem(small, sizes, draws, diagnostics);
  if (!problem) return std::nullopt;
  const double kept = kept_share(form, *problem);
  return TunedShape{std::move(*problem), draws, kept};
}

}  // namespace kw::driver
