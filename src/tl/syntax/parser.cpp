// TL text to a tree: indentation gives the blocks, the table reads each line.
//
// A line that cannot be read is reported with a caret at the furthest point that any statement of
// the table reached; reading goes on with the next line (its block is read too, by the keyword it
// begins with), so one run reports every bad line.
#include <algorithm>

#include "tl/syntax/lexer.h"
#include "tl/syntax/precedence.h"
#include "tl/syntax/reader.h"
#include "tl/syntax/renamed.h"
#include "tl/syntax/statements.h"
#include "tl/syntax/table.h"

namespace kw::tl {
namespace {

struct Line {
  uint32_t begin, end;  // without indentation and newline
  int indent;
  bool tab;
};

std::vector<Line> lines_of(const std::string& text) {
  std::vector<Line> out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t first = std::min(text.find_first_not_of(" \t\r", at), end);
    if (first < end && text[first] != '#') {
      const bool tab = text.substr(at, first - at).find('\t') != std::string::npos;
      out.push_back({uint32_t(first), uint32_t(end), int(first - at), tab});
    }
    at = end + 1;
  }
  return out;
}

std::string_view name_of(Block block) {
  switch (block) {
    case Block::top:
      return "at the top of a module";
    case Block::args:
      return "in 'args:'";
    case Block::shared:
      return "in 'shared:'";
    default:
      return "in a block of statements";
  }
}

// What the rows that came furthest would have liked to see there.
struct Failures {
  size_t at = 0;
  std::vector<std::string> messages;

  void add(size_t where, const std::string& message) {
    if (where < at) return;
    if (where > at) messages.clear();
    at = where;
    if (std::find(messages.begin(), messages.end(), message) == messages.end())
      messages.push_back(message);
  }

  // "expected 'a', 'b' or 'c', found 'x'"
  std::string joined() const {
    const std::string lead = "expected ";
    const std::string tail =
        messages[0].substr(std::min(messages[0].rfind(", found "), messages[0].size()));
    std::string out;
    for (size_t k = 0; k < messages.size(); ++k) {
      const std::string& m = messages[k];
      if (tail.empty() || !m.starts_with(lead) || !m.ends_with(tail)) return messages[0];
      out += k == 0 ? lead : k + 1 == messages.size() ? " or " : ", ";
      out += m.substr(lead.size(), m.size() - lead.size() - tail.size());
    }
    return out + tail;
  }
};

class Parser {
 public:
  Parser(SourcePtr source, Diagnostics& diagnostics)
      : source_(std::move(source)), diagnostics_(diagnostics), lines_(lines_of(source_->text)) {}

  std::vector<Stmt> run(std::initializer_list<Block> where) { return block(0, 0, where); }

  bool good() const { return good_; }

 private:
  // The lines from here that are indented by at least `least`; they should be by `indent`.
  std::vector<Stmt> block(int indent, int least, std::initializer_list<Block> where) {
    std::vector<Stmt> body;
    bool said = false;
    while (next_ < lines_.size() && lines_[next_].indent >= least) {
      const int own = lines_[next_].indent;
      if ((own != indent || lines_[next_].tab) && !said) {
        misplaced(indent);
        said = true;  // once for all lines that stand with it
      }
      if (own > indent) {
        block(own, own, where);
        continue;
      }
      std::optional<Stmt> s = statement(own, where);
      if (s) body.push_back(std::move(*s));
    }
    return body;
  }

  std::optional<Stmt> statement(int indent, std::initializer_list<Block> where) {
    const Line line = lines_[next_++];
    std::optional<Stmt> stmt = head(line, where);
    const Block holds = stmt ? row(stmt->op).holds : guess_;
    if (holds == Block::none) return stmt;
    std::vector<Stmt> body;
    if (next_ < lines_.size() && lines_[next_].indent > indent)
      body = block(indent + 4, indent + 1, {holds});
    else if (stmt && stmt->op != Op::shared)  // which lines do without
      error(stmt->span.end - 1, stmt->span.end, "no block under '" + print_head(*stmt) + "'",
            "indent its statements by four spaces more");
    if (stmt) stmt->body = std::move(body);
    return stmt;
  }

  // The line's own statement; sets guess_ to what the line seems to hold if it cannot be read.
  std::optional<Stmt> head(const Line& line, std::initializer_list<Block> where) {
    const std::string_view text =
        std::string_view(source_->text).substr(line.begin, line.end - line.begin);
    const std::vector<Token> tokens = lex(text, Spelling::tl, line.begin);
    Failures by_keyword, by_form;
    guess_ = Block::none;
    for (const Row& row : table()) {
      const Part& first = row.tl.parts[0];
      if (!first.hole() && first.text != tokens[0].text) continue;
      const bool here = std::find(where.begin(), where.end(), row.where) != where.end();
      if (!first.hole() && guess_ == Block::none) guess_ = row.holds;
      Reader reader(tokens, 0, Spelling::tl, source_, nullptr);
      std::optional<Stmt> stmt = here ? read_statement(row, reader) : std::nullopt;
      if (stmt && reader.at == tokens.size()) return stmt;
      if (stmt) reader.fail("the statement ends before '" + reader.peek() + "'");
      if (!here && first.hole()) continue;
      if (!here)
        reader.fail("'" + std::string(row.word) + "' may not stand " +
                    std::string(name_of(*where.begin())));
      (first.hole() ? by_form : by_keyword).add(reader.at, reader.expected);
    }
    if (guess_ == Block::none && tokens.back().text == ":") guess_ = Block::body;
    if (const OldName old = old_name(tokens); old.token) {
      error(old.token->begin, old.token->end, old.message, "");
      return std::nullopt;
    }
    // A word that is none of the table's and is followed by neither '(' nor '=' is a misspelling.
    if (by_keyword.messages.empty() && by_form.at <= 1 && *where.begin() != Block::args)
      by_form = {0, {"no statement begins with '" + tokens[0].text + "'"}};
    const Failures& why = by_keyword.messages.empty() ? by_form : by_keyword;
    const bool past = why.at >= tokens.size();
    const Token& blamed = past ? tokens.back() : tokens[why.at];
    error(past ? blamed.end - 1 : blamed.begin, blamed.end, why.joined(), "");
    return std::nullopt;
  }

  void misplaced(int indent) {
    const Line& line = lines_[next_];
    if (line.tab)
      error(line.begin, line.end, "a tab in the indentation", "indent with four spaces a level");
    else
      error(line.begin, line.end,
            "indented by " + std::to_string(line.indent) + " where the block has " +
                std::to_string(indent),
            "indent with four spaces a level, under a line that ends with ':'");
  }

  void error(uint32_t begin, uint32_t end, std::string message, std::string hint) {
    good_ = false;
    diagnostics_.error("tl.syntax", Span{source_, begin, end}, std::move(message)).hint =
        std::move(hint);
  }

  SourcePtr source_;
  Diagnostics& diagnostics_;
  std::vector<Line> lines_;
  size_t next_ = 0;
  Block guess_ = Block::none;
  bool good_ = true;
};

}  // namespace

std::optional<Program> parse(const SourcePtr& source, Diagnostics& diagnostics) {
  Parser parser(source, diagnostics);
  Program program{parser.run({Block::top}), source};
  if (!parser.good()) return std::nullopt;
  return program;
}

std::optional<Stmt> parse_statement(const std::string& text, Diagnostics& diagnostics) {
  const SourcePtr source = make_source("<statement>", text);
  Parser parser(source, diagnostics);
  std::vector<Stmt> body = parser.run({Block::body, Block::top, Block::args, Block::shared});
  if (!parser.good()) return std::nullopt;
  if (body.size() == 1) return std::move(body[0]);
  diagnostics.error("tl.syntax", Span{source, 0, uint32_t(text.size())},
                    "one statement is expected, found " + std::to_string(body.size()));
  return std::nullopt;
}

ExprPtr parse_expr(const std::string& text, Diagnostics& diagnostics) {
  const SourcePtr source = make_source("<expression>", text);
  const std::vector<Token> tokens = lex(text, Spelling::tl);
  Reader reader(tokens, 0, Spelling::tl, source, nullptr);
  ExprPtr e = reader.expr(kAny);
  if (e && reader.at != tokens.size())
    reader.fail("the expression ends before '" + reader.peek() + "'");
  if (!reader.failed()) return e;
  const Token blamed = reader.at < tokens.size()
                           ? tokens[reader.at]
                           : Token{"", uint32_t(text.size()), uint32_t(text.size())};
  diagnostics.error("tl.syntax", Span{source, blamed.begin, blamed.end}, reader.expected);
  return nullptr;
}

}  // namespace kw::tl
