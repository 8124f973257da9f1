#include "proofs/solver/sexpr.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace kw::proofs {
namespace {

Sexpr read(const std::string& text, size_t& at) {
  while (at < text.size() && text[at] == ' ') ++at;
  Sexpr e;
  if (at < text.size() && text[at] == '(') {
    for (++at; at < text.size() && text[at] != ')';) {
      e.parts.push_back(read(text, at));
      while (at < text.size() && text[at] == ' ') ++at;
    }
    ++at;
    return e;
  }
  const size_t end = std::min(text.find_first_of(" )", at), text.size());
  e.atom = text.substr(at, end - at);
  at = end;
  return e;
}

}  // namespace

Sexpr read_term(const std::string& text) {
  size_t at = 0;
  return read(text, at);
}

std::string print(const Sexpr& e) {
  if (e.parts.empty()) return e.atom;
  std::string text;
  for (const Sexpr& p : e.parts) text += (text.empty() ? "(" : " ") + print(p);
  return text + ")";
}

std::string in_range(const std::string& x, const std::string& end) {
  return "(and (<= 0 " + x + ") (< " + x + " " + end + "))";
}

std::vector<std::string> factors_of(const Sexpr& e) {
  if (!e.is("*", 2)) return {print(e)};
  std::vector<std::string> out = factors_of(e.parts[1]);
  for (std::string& f : factors_of(e.parts[2])) out.push_back(std::move(f));
  return out;
}

bool is_literal(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string all_of(const std::vector<std::string>& terms) {
  if (terms.empty()) return "true";
  return fmt::format("(and {} true)", fmt::join(terms, " "));
}

std::string renamed(std::string text, const std::string& from, const std::string& to) {
  const auto part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_';
  };
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    const size_t end = at + from.size();
    const bool whole = (at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]));
    if (whole) text.replace(at, from.size(), to);
    at += whole ? to.size() : from.size();
  }
  return text;
}

bool mentions_only(const Sexpr& e, const std::set<std::string>& names, bool head) {
  if (e.parts.empty())
    return head || is_literal(e.atom) || e.atom == "true" || e.atom == "false" ||
           names.count(e.atom);
  for (size_t n = 0; n < e.parts.size(); ++n)
    if (!mentions_only(e.parts[n], names, n == 0)) return false;
  return true;
}

}  // namespace kw::proofs
