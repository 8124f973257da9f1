// A lexer of what matters: comments, strings, and where a line begins with a directive. Splices of
// lines are undone first, as a compiler does; places are then told in the text as it was.
#include "support/includes.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <set>
#include <vector>

namespace kw {
namespace {

constexpr const char* kRule = "only files of kw/ are included by what is lifted or built";

// Directives that ask for no file.
const std::set<std::string_view> kHarmless = {"define", "undef",    "if",   "ifdef",  "ifndef",
                                              "elif",   "elifdef",  "else", "endif",  "pragma",
                                              "error",  "elifndef", "line", "warning"};
const std::set<std::string_view> kAsking = {"__has_include", "__has_include_next", "__has_embed",
                                            "_Pragma"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || (c & 0x80);
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\0'; }

class Reader {
 public:
  Reader(std::string_view name, std::string_view text, bool angled, bool macros = true)
      : folder_(std::filesystem::path(name).parent_path()), angled_(angled), macros_(macros) {
    for (size_t k = 0; k < text.size(); ++k) {
      if (text[k] == '\r' && k + 1 < text.size() && text[k + 1] == '\n') continue;
      if (const size_t end = spliced(text, k); end > k) {
        k = end - 1;
        continue;
      }
      text_ += text[k];
      place_.push_back(k);
    }
    place_.push_back(text.size());
  }

  std::optional<FileAsked> run() {
    bool begins = true;  // nothing but blanks and comments on this line
    while (at_ < text_.size() && !found_) {
      const char c = text_[at_];
      const size_t start = at_;
      if (c == '\r') refuse(start, "a carriage return that ends no line");
      if (skip_blank()) continue;
      if (c == '\n') {
        begins = true;
        ++at_;
        continue;
      }
      if (ahead("??")) refuse(start, "a trigraph");
      if (begins && (c == '#' || ahead("%:")))
        directive();
      else if (std::isdigit(static_cast<unsigned char>(c)))
        number();
      else if (is_word(c))
        word(begins);
      else if (c == '"' || c == '\'')
        quoted(c);
      else
        step();
      begins = false;
    }
    return found_;
  }

 private:
  // The end of a backslash and a newline at `at`, or `at`. With blanks between them compilers do
  // not agree, and the reader keeps the backslash, which it refuses.
  static size_t spliced(std::string_view text, size_t at) {
    if (text[at] != '\\') return at;
    const std::string_view rest = text.substr(at + 1);
    return rest.starts_with("\n") ? at + 2 : rest.starts_with("\r\n") ? at + 3 : at;
  }

  bool ahead(std::string_view what) const {
    return std::string_view(text_).substr(at_, what.size()) == what;
  }

  void refuse(size_t at, const std::string& what) {
    if (!found_) found_ = FileAsked{place_[at], fmt::format("{}; {}", what, kRule)};
  }

  void refuse_macro(size_t at, const std::string& what) {
    if (!macros_ && !found_) found_ = FileAsked{place_[at], what};
  }

  // Blanks of a line, and comments.
  bool skip_blank() {
    const size_t start = at_;
    while (at_ < text_.size()) {
      if (is_blank(text_[at_])) {
        ++at_;
      } else if (ahead("//")) {
        while (at_ < text_.size() && text_[at_] != '\n') step();
      } else if (ahead("/*")) {
        const size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string::npos ? text_.size() : end + 2;
      } else {
        break;
      }
    }
    return at_ > start;
  }

  // One character: no line's end may hide there.
  void step() {
    if (ahead("?"
              "?/"))
      refuse(at_, "a trigraph");
    if (text_[at_] == '\r') refuse(at_, "a carriage return that ends no line");
    if (text_[at_] == '\\') {
      size_t k = at_ + 1;
      while (k < text_.size() && is_blank(text_[k])) ++k;
      if (k > at_ + 1 && k < text_.size() && text_[k] == '\n')
        refuse(at_, "a backslash and blanks at a line's end");
    }
    ++at_;
  }

  // A number of the preprocessor, which may hold quotes: 1'000.
  void number() {
    while (at_ < text_.size() &&
           (is_word(text_[at_]) || text_[at_] == '.' ||
            (text_[at_] == '\'' && at_ + 1 < text_.size() && is_word(text_[at_ + 1]))))
      ++at_;
  }

  std::string_view take_word() {
    const size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return std::string_view(text_).substr(start, at_ - start);
  }

  void word(bool begins) {
    const size_t start = at_;
    const std::string_view w = take_word();
    if (w.starts_with("KW_"))
      refuse_macro(start, fmt::format("`{}` is a macro of the vocabulary's own", w));
    if (kAsking.contains(w)) refuse(start, fmt::format("`{}` asks about a file", w));
    if (begins && (w == "import" || w == "module"))
      refuse(start, fmt::format("a line that begins with `{}`", w));
    if (w.ends_with('R') && at_ < text_.size() && text_[at_] == '"')
      refuse(start, "a raw string, in which a line is no line");
  }

  // To the same quote, or the line's end.
  void quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; step()) {
      if (text_[at_] == quote) {
        ++at_;
        return;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
        step();
        if (found_) return;
      }
    }
  }

  void directive() {
    const size_t start = at_;
    at_ += text_[at_] == '#' ? 1 : 2;
    skip_blank();
    if (at_ >= text_.size() || text_[at_] == '\n') return;
    const size_t named = at_;
    const std::string what(take_word());
    if (what == "define") refuse_macro(named, "expected 'include', found 'define'");
    if (what == "include") return include(start);
    if (!kHarmless.contains(what)) return refuse(start, fmt::format("the directive `#{}`", what));
    if (what != "pragma") return;
    const std::string_view line = rest_of_line();
    for (const char* asking : {"dependency", "module", "include", "system_header"})
      if (line.find(asking) != std::string_view::npos)
        refuse(start, fmt::format("a pragma with `{}`", asking));
  }

  std::string_view rest_of_line() const {
    return std::string_view(text_).substr(at_, text_.find('\n', at_) - at_);
  }

  void include(size_t start) {
    skip_blank();
    const std::string_view line = rest_of_line();
    if (angled_ && inside_folders(line)) {
      at_ += line.find('>') + 1;
      return;
    }
    const size_t close = line.empty() || line[0] != '"' ? std::string::npos : line.find('"', 1);
    if (close == std::string::npos) {
      const std::string said(line.substr(0, 100));
      return refuse(start, fmt::format("`#include {}`", said));
    }
    const std::string asked(line.substr(1, close - 1));
    const std::filesystem::path there = (folder_ / asked).lexically_normal();
    const bool own = asked.find("..") == std::string::npos ? asked.starts_with("kw/") : false;
    const bool beside = !folder_.empty() && asked[0] != '/' && there.string().starts_with("kw/");
    if (!own && !beside) refuse(start, fmt::format("`#include \"{}\"`", asked.substr(0, 100)));
    at_ += close + 1;
  }

  // <folder/file>, which leaves no folder that a compiler looks in.
  static bool inside_folders(std::string_view line) {
    const size_t close = line.find('>');
    if (!line.starts_with('<') || close == std::string_view::npos) return false;
    const std::string_view asked = line.substr(1, close - 1);
    return !asked.starts_with('/') && asked.find('/') != std::string_view::npos &&
           asked.find("..") == std::string_view::npos && asked.find('\\') == std::string_view::npos;
  }

  std::filesystem::path folder_;
  bool angled_, macros_;
  std::string text_;
  std::vector<size_t> place_;  // of each character, and of the end
  size_t at_ = 0;
  std::optional<FileAsked> found_;
};

}  // namespace

std::optional<FileAsked> asks_for_a_file(std::string_view name, std::string_view text,
                                         bool angled) {
  return Reader(name, text, angled).run();
}

std::optional<FileAsked> has_macros(std::string_view text) {
  return Reader("", text, false, false).run();
}

}  // namespace kw
