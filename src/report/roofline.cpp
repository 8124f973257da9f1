// Both axes are logarithmic. The roofs are figures of gpus/: the tensor cores' rate at the highest
// clock, and memory's bandwidth; a measurement on a GPU that is not in gpus/ stands without roofs.
#include "report/roofline.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "timeline/gpu.h"

namespace kw::report {
namespace {

constexpr double kWidth = 640, kHeight = 300, kLeft = 52, kBottom = 34, kTop = 16, kRight = 16;

struct Roofs {
  std::string gpu;
  double peak = 0;       // TFLOP/s
  double bandwidth = 0;  // TB/s
};

// "NVIDIA H200" is gpus/h200.json.
std::optional<Roofs> roofs_of(const std::string& gpu, const std::string& folder,
                              const std::string& target, const std::string& dtype) {
  std::string wanted = gpu;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), ::tolower);
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".json" || wanted.find(name) == std::string::npos) continue;
    Diagnostics unused;
    const auto found = timeline::find_gpu(folder, name, unused);
    if (!found) continue;
    const bool async = target == "sm_90a";
    const auto rate = timeline::product_rate(*found, async, dtype, unused);
    if (!rate) continue;
    return Roofs{name, *rate * found->multiprocessors * found->clock_mhz / 1e6,
                 found->memory_bytes_per_second / 1e12};
  }
  return std::nullopt;
}

struct Axes {
  double x0, x1, y0, y1;  // of the data
  double x(double v) const {
    return kLeft + (kWidth - kLeft - kRight) * std::log(v / x0) / std::log(x1 / x0);
  }
  double y(double v) const {
    return kHeight - kBottom - (kHeight - kBottom - kTop) * std::log(v / y0) / std::log(y1 / y0);
  }
};

Markup draw_axes(const Axes& a) {
  Markup out;
  for (double v = a.x0; v < a.x1 / 2; v *= 10)
    out += html(
        "<path class=\"grid\" d=\"M{:.1f} {:.0f}V{:.0f}\"/><text class=\"axis\" x=\"{:.1f}\" "
        "y=\"{:.0f}\" text-anchor=\"middle\">{}</text>\n",
        a.x(v), kTop, kHeight - kBottom, a.x(v), kHeight - kBottom + 14, with_commas(int64_t(v)));
  for (double v = a.y0; v <= a.y1; v *= v < 999 ? 10 : 2)
    out += html(
        "<path class=\"grid\" d=\"M{:.0f} {:.1f}H{:.0f}\"/><text class=\"axis\" x=\"{:.0f}\" "
        "y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, a.y(v), kWidth - kRight, kLeft - 6, a.y(v) + 4, with_commas(int64_t(v)));
  return out +
         html(
             "<text class=\"axis\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">operations "
             "for each byte of q, k, v and o</text>\n<text class=\"axis\" x=\"4\" "
             "y=\"10\">TFLOP/s</text>\n",
             (kLeft + kWidth) / 2, kHeight - 4);
}

Markup draw_roofline(const std::vector<Measured>& points, const Roofs& roofs) {
  const Axes a{1, 100000, 10, 2000};
  const double ridge = roofs.peak / roofs.bandwidth;
  const double start = std::max(a.x0, a.y0 / roofs.bandwidth);  // where the roof enters the picture
  Markup out = draw_axes(a);
  out += html(
      "<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{:.1f}\"/>"
      "<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f} TFLOP/s, "
      "tensor cores at the highest clock</text>\n",
      a.x(start), a.y(roofs.bandwidth * start), a.x(ridge), a.y(roofs.peak), a.x(a.x1), a.x(a.x1),
      a.y(roofs.peak) - 6, roofs.peak);
  int drawn = 0;  // labels stand above and below in turn, as points of one kernel lie close
  for (const Measured& m : points)
    if (m.intensity > 0) {
      const double x = std::clamp(m.intensity, a.x0, a.x1), y = std::clamp(m.tflops, a.y0, a.y1);
      out += html(
          "<circle class=\"point\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}: {:.0f} "
          "TFLOP/s</title></circle><text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\">{:.0f}</text>\n",
          a.x(x), a.y(y), m.name, m.tflops, a.x(x) + 6, a.y(y) + (drawn++ % 2 ? 16 : -7), m.tflops);
    }
  return html(
      "<figure><svg class=\"roofline\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
      "aria-label=\"Roofline\">\n{}</svg><figcaption>Under the roofs of {}: {:.0f} TFLOP/s of "
      "products, {:.1f} TB/s of memory.</figcaption></figure>\n",
      kWidth, kHeight, out, roofs.gpu, roofs.peak, roofs.bandwidth);
}

Markup bar(const std::string& name, double tflops, double most, bool ours) {
  return html(
      "<tr{}><th>{}</th><td><span class=\"bar\" style=\"width:{:.0f}%\"></span></td>"
      "<td>{:.0f}</td></tr>\n",
      html(" class=\"{}\"", ours ? "ours" : "peer"), name, 100 * tflops / most, tflops);
}

Markup bars(const Measured& m) {
  double most = m.tflops;
  for (const Measured::Peer& p : m.peers) most = std::max(most, p.tflops);
  Markup rows = bar("this kernel", m.tflops, most, true);
  for (const Measured::Peer& p : m.peers) rows += bar(p.name, p.tflops, most, false);
  return html(
      "<h3>{}</h3><p>{}; {}; TFLOP/s over unmasked entries</p><table class=\"bars\"><tbody>"
      "{}</tbody></table>\n",
      m.name, m.gpu, m.how, rows);
}

}  // namespace

Markup draw_speed(const std::vector<Measured>& all, const std::string& gpus_folder,
                  const std::string& target, const std::string& dtype) {
  if (all.empty())
    return html(
        "<p class=\"absent\"><strong>Not measured.</strong> No run on a GPU is in this folder. "
        "<code>kernelwright-prove</code> times one case, <code>bench/bench.py</code> times it "
        "beside "
        "other implementations; <code>kernelwright report FOLDER</code> then shows it here.</p>\n");
  Markup out;
  std::vector<std::string> seen;
  for (const Measured& m : all) {
    if (std::find(seen.begin(), seen.end(), m.gpu) != seen.end()) continue;
    seen.push_back(m.gpu);
    std::vector<Measured> same;
    std::copy_if(all.begin(), all.end(), std::back_inserter(same),
                 [&](const Measured& o) { return o.gpu == m.gpu && o.intensity > 0; });
    const auto roofs = roofs_of(m.gpu, gpus_folder, target, dtype);
    if (roofs && !same.empty()) out += draw_roofline(same, *roofs);
  }
  for (const Measured& m : all) out += bars(m);
  return out;
}

}  // namespace kw::report
