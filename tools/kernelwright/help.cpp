#include "help.h"

#include <memory>
#include <utility>
#include <vector>

namespace kw::cli {
namespace {

constexpr size_t kColumns = 100, kIndent = 30;

struct Group {
  const char* title;
  std::vector<const char*> commands;
};

// A command that is in no group stands under "Subcommands".
const std::vector<Group>& groups() {
  static const std::vector<Group> all = {
      {"From a function to a kernel", {"make", "tune"}},
      {"With a kernel file of one's own", {"port", "rebase"}},
      {"The stages of make, each alone",
       {"capture", "lift", "transfer", "check", "lower", "build"}},
      {"From a sketch", {"sketch", "size", "schedule"}},
      {"What make wrote", {"report", "verify", "certify", "exact", "export"}},
      {"On a GPU machine", {"prove", "bench"}},
      {"For coding agents", {"serve"}},
      {"Models, and people in their place", {"ask", "transcript", "grammar", "eval"}},
      {"Questions", {"diff", "explain", "timeline", "doctor", "self-test"}},
  };
  return all;
}

// Breaks lines at spaces so that none is longer than `width`; a longer word stays whole.
std::string wrapped(const std::string& text, size_t width) {
  std::string out = text;
  size_t line = 0, space = std::string::npos;
  for (size_t at = 0; at < out.size(); ++at) {
    if (out[at] == '\n') {
      line = at + 1, space = std::string::npos;
      continue;
    }
    if (out[at] == ' ') space = at;
    if (at - line >= width && space != std::string::npos) {
      out[space] = '\n';
      line = space + 1, space = std::string::npos;
    }
  }
  return out;
}

class Help : public CLI::Formatter {
 public:
  Help() {
    column_width(kIndent);
    label("REQUIRED", "(required)");
    label("SUBCOMMAND", "COMMAND");
  }
  std::string make_description(const CLI::App* app) const override {
    return wrapped(Formatter::make_description(app), kColumns);
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description(), kColumns - kIndent);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::stringstream out;
    CLI::detail::format_help(out, command->get_display_name(true),
                             wrapped(command->get_description(), kColumns - kIndent), kIndent);
    return out.str();
  }
};

void use(const std::shared_ptr<Help>& help, CLI::App& app) {
  app.formatter(help);
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) use(help, *command);
}

}  // namespace

void arrange_help(CLI::App& app) {
  use(std::make_shared<Help>(), app);
  for (const Group& group : groups())
    for (const char* name : group.commands) app.get_subcommand(name)->group(group.title);
}

}  // namespace kw::cli
