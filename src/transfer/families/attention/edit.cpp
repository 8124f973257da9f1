#include "transfer/families/attention/edit.h"

namespace kw::transfer {

Edit::Edit(const tl::Program& source, const spec::Form& form, const Target& target, Facts facts,
           Diagnostics& diagnostics)
    : Editing(source, form, target, diagnostics),
      facts(std::move(facts)),
      normaliser(term.normaliser) {}

bool Edit::refuse(std::string code, const Span& where, std::string message, std::string hint) {
  hint += hint.empty() ? "a model may be asked" : "; or a model may be asked";
  return Editing::refuse(std::move(code), where, std::move(message), std::move(hint));
}

bool Edit::declare(const std::string& name, const spec::ExprPtr& value) {
  const std::optional<std::string> text = in_block(value, facts.block);
  return text && insert(block_lets_end(program, facts), "let " + name + " = " + *text);
}

std::optional<std::string> Edit::in_block(const spec::ExprPtr& e, const std::string& block) {
  return in_rows(e, block, "");
}

std::optional<std::string> Edit::in_rows(const spec::ExprPtr& e, const std::string& block,
                                         const std::string& first_row) {
  Spelling how;
  how.indices["b"] = tl::field(tl::name(block), facts.batch_field);
  how.indices["h"] = tl::field(tl::name(block), facts.head_field);
  if (!first_row.empty()) how.indices["i0"] = tl::name(first_row);
  const std::optional<tl::ExprPtr> out = spell(e, how, diagnostics);
  if (!out) return std::nullopt;
  return tl::print(*out);
}

std::optional<std::string> Edit::in_map(const spec::ExprPtr& e, bool real_coordinates) {
  Spelling how;
  how.real_coordinates = real_coordinates;
  how.score = tl::index(tl::name(facts.score), {tl::name("i"), tl::name("j")});
  how.indices["j"] = tl::name("j");
  return spelled(e, std::move(how));
}

std::optional<std::string> Edit::in_tile(const spec::ExprPtr& e, const tl::ExprPtr& i0,
                                         const tl::ExprPtr& j0) {
  Spelling how;
  how.indices["i0"] = i0;
  how.indices["j0"] = j0;
  return spelled(e, std::move(how));
}

std::optional<std::string> Edit::in_output_map(const spec::ExprPtr& e, const tl::ExprPtr& output,
                                               bool real_coordinates) {
  Spelling how;
  how.real_coordinates = real_coordinates;
  how.output = output;
  return spelled(e, std::move(how));
}

std::optional<std::string> Edit::spelled(const spec::ExprPtr& e, Spelling how) {
  how.indices["i"] = tl::name("i");
  how.indices["b"] = tl::field(tl::name(facts.block), facts.batch_field);
  how.indices["h"] = tl::field(tl::name(facts.block), facts.head_field);
  const std::optional<tl::ExprPtr> out = spell(e, how, diagnostics);
  if (!out) return std::nullopt;
  return tl::print(*out);
}

}  // namespace kw::transfer
