#include "author/site.h"

#include <fmt/format.h>

#include <algorithm>

#include "operator/family.h"
#include "propose/anonymous.h"
#include "propose/patch.h"
#include "sketch/schedule.h"
#include "tl/laws/laws.h"

namespace kw::author {
namespace {

using tl::Op;

// The program with those arguments alone that its launcher gives, none that it computes.
tl::Program as_launched(tl::Program program) {
  for (tl::Stmt& s : program.body) {
    if (s.op != Op::args) continue;
    std::erase_if(s.body, [](const tl::Stmt& a) {
      return std::ranges::any_of(a.names(), [](const tl::Item& d) { return d.expr != nullptr; });
    });
  }
  return program;
}

}  // namespace

bool Site::has_lse() const {
  return nameless.form.terms.size() == 1 &&
         nameless.form.terms[0].normaliser == spec::Normaliser::softmax;
}

std::string Site::head(const tl::Program& example) const {
  std::string out;
  for (const tl::Stmt& s : as_launched(example).body) {
    if (s.op == Op::include || s.op == Op::level || s.op == Op::element || s.op == Op::args)
      out += tl::print(s);
    if (s.op == Op::element)
      for (const auto& [name, value] : request.params)
        out += fmt::format("param {} = {}\n", name, value);
  }
  return out;
}

std::optional<Site> make_site(const spec::Capture& capture, const sketch::Machine& machine,
                              const Texts& texts, const Checks& checks, Diagnostics& diagnostics) {
  const spec::Form& form = capture.form;
  if (form.terms.empty()) {
    diagnostics
        .error("author.product", {},
               fmt::format("'{}' is {}, and sketches are of attention", form.name,
                           spec::Family::of(form).what()))
        .hint = "`kernelwright make` makes products";
    return std::nullopt;
  }
  const sketch::Request request{
      machine, {{"D", form.D.constant}, {"V", form.Dv.constant}}, std::string(name(form.dtype))};
  const auto example =
      tl::parse(make_source("prompts/author.example.tl", texts.example), diagnostics);
  if (!example || !tl::verify(*example, diagnostics)) return std::nullopt;
  auto plain = sketch::with_parameters(*example, request, diagnostics);
  const auto sized = plain ? sketch::size(*plain, request, diagnostics) : std::nullopt;
  auto scheduled = sized ? sketch::schedule(*sized, machine, diagnostics) : std::nullopt;
  if (!scheduled) return std::nullopt;
  return Site{capture,           propose::anonymous(capture), machine, request,
              std::move(*plain), std::move(*scheduled),       checks};
}

std::optional<tl::Program> read(const Site& site, const std::string& text,
                                const tl::Program& example, propose::Refusal& refusal) {
  return propose::read_program(text, as_launched(example), !site.has_lse(), refusal);
}

std::optional<tl::Program> accept(const Site& site, const tl::Program& scheduled, Judged& judged) {
  const propose::Judged rehearsed =
      propose::rehearse(scheduled, site.nameless, site.checks.rehearsal);
  judged.refusal = rehearsed.refusal;
  judged.details = rehearsed.details;
  if (!judged.refusal.code.empty()) return std::nullopt;
  tl::Program named = propose::with_names(scheduled, site.capture.form);
  const check::Report report = check::check(named, site.capture, site.checks.decides);
  if (report.verdict == check::Verdict::holds) return named;
  judged.refusal = {fmt::format("accept.{}", check::name(report.verdict)),
                    "the program passed the check of this conversation, and another one on inputs "
                    "that are not shown here ends otherwise: write what the function means for all "
                    "inputs"};
  judged.details.clear();
  return std::nullopt;
}

}  // namespace kw::author
