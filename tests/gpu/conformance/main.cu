// Runs every family and prints one line a device function; exit 1 if one disagrees, 2 if CUDA
// itself refuses. A hang (a barrier that never completes) is ended by a watchdog.
#include <unistd.h>

#include <csignal>

#include "conformance.h"

namespace conformance {
namespace {

template <class T>
bool same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
size_t differing(const std::vector<T>& got, const std::vector<T>& want) {
  size_t count = got.size() == want.size() ? 0 : 1;
  for (size_t n = 0; n < got.size() && n < want.size(); ++n) count += !same(got[n], want[n]);
  return count;
}

template <class T>
void first_difference(const std::vector<T>& got, const std::vector<T>& want, const char* format) {
  for (size_t n = 0; n < got.size() && n < want.size(); ++n) {
    if (same(got[n], want[n])) continue;
    std::printf("    first at %zu: ", n);
    std::printf(format, got[n], want[n]);
    return;
  }
}

}  // namespace

void Report::line(const std::string& function, const char* what, size_t n, double worst,
                  const char* unit, bool ok) {
  std::printf("%-16s %-52s %8zu  %10.3g %-16s %s\n", function.c_str(), what, n, worst, unit,
              ok ? "ok" : "WRONG");
  failures_ += !ok;
}

void Report::exact(const std::string& function, const char* what, const std::vector<float>& got,
                   const std::vector<float>& want) {
  const size_t wrong = differing(got, want);
  line(function, what, want.size(), double(wrong), "differ", wrong == 0 && !want.empty());
  if (wrong) first_difference(got, want, "got %g, want %g\n");
}
void Report::exact(const std::string& function, const char* what, const std::vector<int>& got,
                   const std::vector<int>& want) {
  const size_t wrong = differing(got, want);
  line(function, what, want.size(), double(wrong), "differ", wrong == 0 && !want.empty());
  if (wrong) first_difference(got, want, "got %d, want %d\n");
}
void Report::exact(const std::string& function, const char* what, const std::vector<kw::bf16>& got,
                   const std::vector<kw::bf16>& want) {
  std::vector<float> g, w;
  for (kw::bf16 x : got) g.push_back(widen(x));
  for (kw::bf16 x : want) w.push_back(widen(x));
  exact(function, what, g, w);
}

void Report::close(const std::string& function, const char* what, const std::vector<float>& got,
                   const std::vector<double>& want, const std::vector<double>& bound) {
  double worst = 0;
  for (size_t n = 0; n < want.size(); ++n) {
    const double error = got[n] == want[n] ? 0 : std::fabs(got[n] - want[n]) / bound[n];
    worst = std::isnan(error) ? INFINITY : std::fmax(worst, error);
    if (std::isinf(worst)) break;
  }
  line(function, what, want.size(), worst, "of the bound", worst <= 1 && !want.empty());
}

}  // namespace conformance

// A kernel that waits for ever, or faults, is an error of a function like any other.
const char* conformance::running = "a kernel";
// Also called by a signal's handler: no buffers, no destructors.
void conformance::wrong(const char* how) {
  char text[256];
  const int n = std::snprintf(text, sizeof text, "%-16s %s WRONG\n", running, how);
  [[maybe_unused]] const auto written = write(1, text, size_t(n) < sizeof text ? n : sizeof text);
  _exit(1);
}
static void watchdog(int) { conformance::wrong("hangs"); }

int main() {
  using namespace conformance;
  std::signal(SIGALRM, watchdog);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  cudaDeviceProp device;
  succeed(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  std::printf("%s, compute capability %d.%d\n", device.name, device.major, device.minor);
  Report report;
  test_scalars(report);
  test_maps(report);
  test_rows(report);
  test_copies(report);
  test_products(report);
  test_matrices(report);
  test_sync(report);
  test_clusters(report);
  test_blocks(report);
  test_lists(report);
  test_row_maps(report);
  test_sums(report);
  test_combine(report);
  test_lines(report);
  test_ampere(report);
  std::printf(report.failures() ? "%d WRONG\n" : "all conform\n", report.failures());
  return report.failures() ? 1 : 0;
}
