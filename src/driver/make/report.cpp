#include "driver/make/report.h"

#include <fmt/format.h>

#include "driver/certificate/verify.h"
#include "driver/training/training.h"
#include "report/page.h"
#include "support/files.h"

namespace kw::driver {
namespace fs = std::filesystem;
namespace {

std::string text_of(const fs::path& file) {
  const SourcePtr source = read_source(file.string());
  return source ? source->text : "";
}

bool cannot_draw(Diagnostics& diagnostics, const char* code, const std::string& what,
                 const std::string& hint) {
  diagnostics.error(code, {}, what).hint = hint;
  return false;
}

// A page of files that were changed since would claim what nobody checked. What else lies in the
// folder is not in the page.
bool files_are_named(const fs::path& folder, const Claims& certificate, Diagnostics& diagnostics) {
  Hashes named = named_files(certificate);
  named.erase(report::kPage);  // it is written again
  for (const Stray& stray : read_tree(folder, named).strays)
    if (named.count(stray.name))
      return cannot_draw(
          diagnostics, "report.files",
          fmt::format("{} is not the file that the certificate is about: its SHA-256 {}",
                      stray.name, stray.what),
          "make the kernel again, or bring the file back; `kernelwright verify` says what "
          "else changed");
  return true;
}

bool keep_benchmark(const std::string& file, const fs::path& folder, Claims& certificate,
                    Diagnostics& diagnostics) {
  const SourcePtr text = read_source(file);
  std::string why = "there is no such file";
  const auto bench = text ? parse_claims(text->text, why) : std::nullopt;
  if (!bench)
    return cannot_draw(diagnostics, "report.bench", fmt::format("{} cannot be read: {}", file, why),
                       "give the JSON that bench/bench.py wrote");
  const Claims cases =
      report::cases_of(*bench, text_of(folder / "kernel.cubin"), text_of(folder / "launch.json"));
  if (cases.empty())
    return cannot_draw(
        diagnostics, "report.bench",
        fmt::format("{} has {} cases, and none was measured with the cubin of {}", file,
                    bench->is_object() ? bench->value("cases", Claims()).size() : 0,
                    folder.string()),
        "run bench/bench.py with this very folder");
  const std::string kept = Claims{{"cases", cases}}.dump(1) + "\n";
  name_file(certificate, "bench.json", kept);
  if (write_file(folder / "bench.json", kept)) return true;
  return cannot_draw(diagnostics, "report.write",
                     fmt::format("cannot write into '{}'", folder.string()), "");
}

}  // namespace

std::string draw_report(const Tools& tools, const fs::path& folder, const Claims& certificate,
                        const LiftedKernels& lifted) {
  Claims shown = certificate;
  shown.erase("root");
  shown["files"].erase(report::kPage);
  // Kernels are lifted with the vocabulary that came with them.
  lift::Toolchain clang = tools.clang;
  clang.include = folder.string();
  const report::Facts facts = report::read_facts(
      {folder, shown, tools.home.root / "gpus", clang, lifted.expert, lifted.kernel});
  return report::page(facts);
}

bool write_report(const Tools& tools, const fs::path& folder, Claims certificate,
                  const LiftedKernels& lifted) {
  const std::string page = draw_report(tools, folder, certificate, lifted);
  name_file(certificate, report::kPage, page);
  return write_file(folder / report::kPage, page) &&
         write_file(folder / "certificate.json", certificate.dump(1) + "\n");
}

Exit report(const ReportOptions& options, Diagnostics& diagnostics) {
  fs::path file = options.folder;
  std::error_code failed;
  if (fs::is_directory(file, failed)) file /= "certificate.json";
  const SourcePtr text = fs::is_regular_file(file, failed) ? read_source(file.string()) : nullptr;
  if (!text) {
    cannot_draw(diagnostics, "certificate.file",
                fmt::format("there is no file '{}'", file.string()),
                "name a folder that make wrote");
    return Exit::bad_input;
  }
  const auto tools = find_tools(diagnostics);
  const bool of_two = tools && is_of_training(text->text);
  const auto schema =
      tools ? certificate_schema(tools->home, diagnostics, of_two ? kTrainingForm : kKernelForm)
            : std::nullopt;
  auto certificate = schema ? read_certificate(text, *schema, diagnostics) : std::nullopt;
  if (!certificate) return exit_for(diagnostics);
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (!files_are_named(folder, *certificate, diagnostics)) return Exit::bad_input;
  if (of_two && !options.bench.empty()) {
    cannot_draw(diagnostics, "report.bench",
                fmt::format("a benchmark is of one kernel, and {} holds two", folder.string()),
                "make the page of the folder `forward` or `backward` of a copy of it");
    return Exit::bad_input;
  }
  if (of_two)
    return write_training(tools->home, folder, diagnostics) ? Exit::holds : Exit::bad_input;
  if (!options.bench.empty() && !keep_benchmark(options.bench, folder, *certificate, diagnostics))
    return Exit::bad_input;
  if (write_report(*tools, folder, *certificate)) return Exit::holds;
  cannot_draw(diagnostics, "report.write", fmt::format("cannot write into '{}'", folder.string()),
              "name a folder that can be written");
  return Exit::bad_input;
}

}  // namespace kw::driver
