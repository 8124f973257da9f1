// Bars are merged where they follow each other closely and are of one statement, and left out where
// they are narrower than a hair, which keeps the file small. A colour is a kind of work.
#include "report/timeline.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "report/html.h"
#include "timeline/predict.h"

namespace kw::report {
namespace {

using timeline::Bar;
using timeline::BarKind;

constexpr double kLabels = 118, kHead = 26, kRow = 26, kBarHeight = 20, kAcross = 1100;
constexpr double kCycles = 9000;  // cycles
constexpr double kNarrowest = 1;  // units of the picture

const char* class_of(BarKind kind) {
  return kind == BarKind::product ? "product"
         : kind == BarKind::copy  ? "copy"
         : kind == BarKind::wait  ? "wait"
                                  : "compute";
}

std::string text_of(const Bar& bar) {
  std::string text = bar.stmt ? tl::print_head(*bar.stmt) : "";
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

// The cycles that are drawn: the end of a block and the beginning of the next where there are two.
struct Window {
  double from = 0, to = 1;
  double x(double cycles) const {
    return kLabels + (std::clamp(cycles, from, to) - from) * (kAcross - kLabels) / (to - from);
  }
};

Window window_of(const timeline::Timeline& line) {
  const double middle = line.marks.size() > 2 ? line.marks[1] : line.end / 2;
  const double from = std::max(0.0, std::min(middle + kCycles / 2, line.end) - kCycles);
  return {from, std::min(from + kCycles, line.end)};
}

Markup draw_bar(const Bar& bar, double y, const Window& window) {
  const double x = window.x(bar.begin), width = window.x(bar.end) - x;
  const std::string text = text_of(bar);
  Markup label;
  const size_t fits = size_t(std::max(0.0, width - 6) / 5.3);  // of the 9 unit font
  if (fits >= 6 && bar.kind != BarKind::wait)
    label = html("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + 3, y + 13.5,
                 text.size() <= fits ? text : text.substr(0, fits - 1) + "…");
  return html(
      "<g class=\"{}\"><title>{}: cycles {:.0f} to {:.0f}</title><rect x=\"{:.1f}\" "
      "y=\"{:.0f}\" width=\"{:.1f}\" height=\"{:.0f}\"/>{}</g>\n",
      class_of(bar.kind), text, bar.begin, bar.end, x, y, width, kBarHeight, label);
}

Markup draw_axis(const Window& window, double bottom) {
  Markup out;
  const double last = window.to - 500;  // a number needs room
  for (double t = 1000 * int64_t(window.from / 1000 + 0.999); t <= last; t += 1000)
    out += html(
        "<path class=\"grid\" d=\"M{:.1f} {:.0f}V{:.0f}\"/><text class=\"axis\" "
        "x=\"{:.1f}\" y=\"{:.0f}\">{}</text>\n",
        window.x(t), kHead - 6, bottom, window.x(t) + 3, kHead - 10, with_commas(int64_t(t)));
  return out;
}

// Bars of a track in the window, in order of time; equal neighbours are one.
std::vector<Bar> bars_of(const timeline::Timeline& line, int track, const Window& window) {
  std::vector<Bar> out;
  for (const Bar& bar : line.bars) {
    if (bar.track != track || bar.end <= window.from || bar.begin >= window.to) continue;
    const bool joins = !out.empty() && out.back().stmt == bar.stmt && out.back().kind == bar.kind &&
                       bar.begin - out.back().end < 1;
    if (joins)
      out.back().end = bar.end;
    else
      out.push_back(bar);
  }
  std::erase_if(out,
                [&](const Bar& b) { return window.x(b.end) - window.x(b.begin) < kNarrowest; });
  return out;
}

// Values for the sizes that the program asks its caller for; others than the letters have the
// length of a sequence.
timeline::Shape small_shape(const tl::Program& program) {
  timeline::Shape shape;
  if (const tl::Stmt* args = program.find(tl::Op::args))
    for (const tl::Stmt& s : args->body)
      if (s.op == tl::Op::arg_size)
        for (const tl::Item& d : s.names())
          if (!d.expr)
            shape[d.name] = d.name == "B" ? 1 : d.name == "H" || d.name == "G" ? 2 : 1024;
  return shape;
}

// A GPU that kernels for this target run on.
std::string gpu_for(const std::string& folder, const std::string& target) {
  std::error_code failed;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    Diagnostics unused;
    const auto gpu = timeline::find_gpu(folder, name, unused);
    if (gpu && std::find(gpu->targets.begin(), gpu->targets.end(), target) != gpu->targets.end())
      return name;
  }
  return "";
}

}  // namespace

Pipeline predict_pipeline(const tl::Program& program, const std::string& gpus_folder,
                          const std::string& target) {
  constexpr int kBlocks = 2;
  Pipeline out;
  out.gpu = gpu_for(gpus_folder, target);
  if (out.gpu.empty()) {
    out.absent = fmt::format("no GPU of gpus/ runs {}", target);
    return out;
  }
  Diagnostics found;
  const auto gpu = timeline::find_gpu(gpus_folder, out.gpu, found);
  const timeline::Shape shape = small_shape(program);
  out.shape = "1,024 queries and keys; what the function reads besides q, k and v is 0";
  auto line = gpu ? timeline::pipeline(program, *gpu, shape, kBlocks, found) : std::nullopt;
  if (line)
    out.line = std::move(*line);
  else
    out.absent = found.all().empty() ? "it cannot be told" : found.all().back().message;
  return out;
}

Markup draw_pipeline(const Pipeline& pipeline) {
  const timeline::Timeline& line = pipeline.line;
  const Window window = window_of(line);
  Markup rows;
  double y = kHead;
  for (size_t n = 0; n < line.tracks.size(); ++n) {
    if (line.tracks[n].cta != 0) continue;
    rows +=
        html("<text class=\"track\" x=\"0\" y=\"{:.1f}\">{}</text>\n", y + 14, line.tracks[n].name);
    for (const Bar& bar : bars_of(line, int(n), window)) rows += draw_bar(bar, y, window);
    y += kRow;
  }
  return html(
      "<svg class=\"pipeline\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"Predicted pipeline of a tile\">\n{}{}</svg>\n",
      kAcross, y, draw_axis(window, y - 4), rows);
}

Markup busy_table(const Pipeline& pipeline) {
  const timeline::Timeline& line = pipeline.line;
  const Window window = window_of(line);
  Markup rows;
  for (size_t n = 0; n < line.tracks.size(); ++n) {
    if (line.tracks[n].cta != 0) continue;
    std::map<BarKind, double> spent;
    for (const Bar& bar : line.bars)
      if (bar.track == int(n))
        spent[bar.kind] +=
            std::max(0.0, std::min(bar.end, window.to) - std::max(bar.begin, window.from));
    const auto share = [&](BarKind kind) {
      return fmt::format("{:.0f} %", 100 * spent[kind] / (window.to - window.from));
    };
    rows += html("<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                 line.tracks[n].name, share(BarKind::product), share(BarKind::compute),
                 share(BarKind::copy), share(BarKind::wait));
  }
  return html(
      "<table><thead><tr><th></th><th>products</th><th>arithmetic</th><th>copies</th>"
      "<th>waits</th></tr></thead><tbody>\n{}</tbody></table>\n",
      rows);
}

}  // namespace kw::report
