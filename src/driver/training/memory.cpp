#include "driver/training/memory.h"

#include <fmt/format.h>

#include <set>

#include "num/dtype.h"
#include "operator/evaluate/evaluate.h"
#include "runtime/launch/launch_spec.h"

namespace kw::driver {
namespace {

using runtime::Argument;
using runtime::ArgumentKind;
using runtime::Bindings;

std::map<std::string, int64_t> sample(const spec::Form& form) {
  std::map<std::string, int64_t> sizes;
  for (const auto& [size, value] :
       {std::pair(form.N, kSampleRows), {form.M, kSampleRows}, {form.B, int64_t{1}}})
    spec::give(size, value, sizes);
  return sizes;
}

// One half's tensors at the sample's sizes.
class Tensors {
 public:
  Tensors(const Half& half, Diagnostics& diagnostics) : half_(half) {
    const auto spec =
        runtime::read_launch_spec(make_source("launch.json", half.launch), diagnostics);
    if (!spec) return;
    spec_ = *spec;
    known_ = spec_.constants;
    bind_sizes();
    std::string unused;
    for (const Argument& a : spec_.arguments)
      if (a.kind == ArgumentKind::size && a.value)
        if (const auto value = a.value->evaluate(known_, unused)) known_[a.name] = *value;
  }

  const std::vector<Argument>& arguments() const { return spec_.arguments; }

  // Null where a size is not known.
  Claims bytes(const Argument& a) const {
    std::string unused;
    if (a.bytes) return integer(a.bytes->evaluate(known_, unused));
    int64_t product = static_cast<int64_t>(kw::bytes(a.dtype));
    for (const runtime::Expression& dim : a.dims) {
      const Claims extent = integer(dim.evaluate(known_, unused));
      if (extent.is_null()) return nullptr;
      product *= extent.get<int64_t>();
    }
    return product;
  }

 private:
  static Claims integer(const std::optional<runtime::Number>& value) {
    const auto* n = value ? std::get_if<int64_t>(&*value) : nullptr;
    return n ? Claims(*n) : Claims();
  }

  // The kernel's letters, by what the user's arguments have there.
  void bind_sizes() {
    const std::map<std::string, int64_t> sizes = sample(half_.form);
    for (const Claims& b : half_.claims["transfer"]["bindings"]) {
      const spec::Argument* user = half_.form.argument(b["user"]);
      const Argument* kernel = spec_.find(b["argument"].get<std::string>());
      if (!user || !kernel || b.contains("group")) continue;
      for (size_t d = 0; d < kernel->dims.size() && d < b["dims"].size(); ++d) {
        const int64_t at = b["dims"][d];
        if (at >= static_cast<int64_t>(user->dims.size())) continue;
        const spec::Size& size = at < 0 ? spec::Size{"", 1} : user->dims[at];
        if (!size.name.empty() && !sizes.count(size.name)) continue;
        std::vector<std::string> letter;
        kernel->dims[d].names(letter);
        if (letter.size() == 1 && kernel->dims[d].text() == letter[0])
          known_.emplace(letter[0], size.name.empty() ? size.constant : sizes.at(size.name));
      }
    }
  }

  const Half& half_;
  runtime::LaunchSpec spec_;
  Bindings known_;
};

Claims tensor(const Argument& a, const std::string& is, const Tensors& of) {
  Claims dims = Claims::array();
  for (const runtime::Expression& d : a.dims) dims.push_back(d.text());
  const bool words = a.kind == ArgumentKind::workspace || a.dims.empty();
  return {{"name", a.name},
          {"is", is},
          {"dtype", words ? "words" : std::string(name(a.dtype))},
          {"dims", dims},
          {"bytes", of.bytes(a)}};
}

}  // namespace

Claims memory_of(const Both& both) {
  Diagnostics unused;
  const Tensors forward(both.forward, unused), backward(both.backward, unused);
  std::set<std::string> saved, had;
  for (const Passed& p : both.passed) saved.insert(p.from), had.insert(p.to);
  for (const auto& [from, to] : both.shared) had.insert(to);
  std::map<std::string, std::string> users;
  for (const Claims& b : both.backward.claims["transfer"]["bindings"])
    users[b["argument"]] = b["user"];

  Claims all = Claims::array();
  const auto scratch = [](const Argument& a) {
    return a.kind == ArgumentKind::scratch || a.kind == ArgumentKind::workspace;
  };
  for (const Argument& a : forward.arguments())
    if (a.is_tensor())
      all.push_back(tensor(a,
                           !a.written            ? "argument"
                           : saved.count(a.name) ? "saved"
                                                 : "output",
                           forward));
    else if (scratch(a))
      all.push_back(tensor(a, "scratch of forward", forward));
  std::set<std::string> given;
  for (const Argument& a : backward.arguments()) {
    const std::string user = users.count(a.name) ? users.at(a.name) : "";
    if (scratch(a)) {
      all.push_back(tensor(a, "scratch of backward", backward));
    } else if (a.is_tensor() && a.written) {
      all.push_back(tensor(a, "gradient", backward));
    } else if (a.is_tensor() && !had.count(a.name)) {
      // An output's gradient may be read twice, by tiles and by rows: it is one tensor.
      const bool of_output = user.rfind("forward.", 0) == 0;
      if (!of_output || given.insert(user).second)
        all.push_back(tensor(a, of_output ? "given" : "argument", backward));
    }
  }
  std::string at;
  for (const auto& [letter, size, value] : {std::tuple("B", both.forward.form.B, int64_t{1}),
                                            {"M", both.forward.form.M, kSampleRows},
                                            {"N", both.forward.form.N, kSampleRows}})
    at += fmt::format("{}{} {}", at.empty() ? "" : ", ", letter,
                      size.name.empty() ? size.constant : value);
  return {{"at", at}, {"tensors", all}};
}

}  // namespace kw::driver
