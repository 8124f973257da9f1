#include "driver/families/attention.h"

#include <fmt/format.h>

namespace kw::driver::families {
namespace {

std::string size_list(const spec::Form& form) {
  std::string list;
  for (const spec::Size& size : {form.B, form.M, form.N})
    if (!size.name.empty() && list.find(size.name) == std::string::npos)
      list += (list.empty() ? "" : ", ") + size.name;
  return list;
}

}  // namespace

// One query leaves most of a GPU idle, but for what splits its keys; and that text takes a softmax
// alone.
std::optional<std::vector<std::string>> Attention::texts(const spec::Form& form,
                                                         const TargetLimits* limits) const {
  const bool one_query = form.M.name.empty() && form.M.constant == 1;
  if (!limits || !limits->hopper || !one_query) return std::nullopt;
  return std::vector<std::string>{"sm90/attention_decode.cu", "sm90/attention_fwd.cu"};
}

std::map<std::string, int64_t> Attention::constants(const spec::Form& form) const {
  return {{"D", form.D.constant}, {"V", form.Dv.constant}};
}

void Attention::set_dims(const spec::Form& form, transfer::Tiles& row) const {
  row.dim = form.D.constant;
  row.value_dim = form.Dv.constant;
}

std::string Attention::summary(const spec::Form& form) const {
  std::string text =
      fmt::format("{}: {}, {} query / {} key heads, D {}; any {}", form.name, spec::types_of(form),
                  form.H.constant, form.G.constant, form.D.constant, size_list(form));
  for (const spec::Term& term : form.terms)
    if (term.keep) text += "; keep " + spec::print(term.keep);
  return text;
}

std::string Attention::counted(const check::Report& report) const {
  return fmt::format("; {} skipped or unmasked key blocks", report.key_blocks);
}

const Family& attention() {
  static const Attention family;
  return family;
}

}  // namespace kw::driver::families
