#include "support/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

namespace kw {
namespace {

struct Process {
  pid_t parent = 0;
  int64_t threads = 0;
  uint64_t resident_pages = 0;
};

// /proc/PID/stat, proc(5): what stands after the last ")", since a name may hold anything.
bool read_stat(pid_t pid, Process& into) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[1024];
  const ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  text[n > 0 ? n : 0] = 0;
  const char* rest = strrchr(text, ')');
  char state = 0;
  // Fields 3 (state), 4 (parent), 20 (threads) and 24 (resident pages).
  return rest &&
         sscanf(rest + 1,
                " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %*u "
                "%*u %lu",
                &state, &into.parent, &into.threads, &into.resident_pages) == 4 &&
         state != 'Z';
}

}  // namespace

ProcessTree process_tree(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  std::map<pid_t, Process> all;
  if (DIR* folder = opendir("/proc")) {
    while (const dirent* entry = readdir(folder)) {
      const pid_t pid = atoi(entry->d_name);
      Process process;
      if (pid <= 0 || !read_stat(pid, process)) continue;
      children.emplace(process.parent, pid);
      all.emplace(pid, process);
    }
    closedir(folder);
  }
  ProcessTree tree;
  if (all.contains(root)) tree.processes.push_back(root);
  for (size_t k = 0; k < tree.processes.size(); ++k) {
    const Process& process = all.at(tree.processes[k]);
    tree.threads += process.threads;
    tree.resident.push_back(process.resident_pages * sysconf(_SC_PAGESIZE));
    tree.resident_bytes += tree.resident.back();
    const auto [begin, end] = children.equal_range(tree.processes[k]);
    for (auto child = begin; child != end; ++child) tree.processes.push_back(child->second);
  }
  return tree;
}

MemoryOfTree memory_of(const ProcessTree& tree) {
  MemoryOfTree out;
  for (size_t k = 0; k < tree.processes.size(); ++k) {
    std::ifstream file("/proc/" + std::to_string(tree.processes[k]) + "/smaps_rollup");
    std::string word;
    uint64_t kilobytes = 0, shared = 0;
    bool told = false;
    while (file >> word) {  // "Pss: 1234 kB", proc(5): its pages, divided by how many share each
      if (word == "Pss:") told = static_cast<bool>(file >> kilobytes);
      if (word == "Pss_Shmem:") file >> shared;
    }
    out.bytes += told ? kilobytes * 1024 : tree.resident[k];
    out.shared += shared * 1024;
    out.silent = out.silent || !told;
  }
  return out;
}

void kill_tree(pid_t root) {
  // Stopped first, so that none starts another while the rest is looked for; the root last, as long
  // as it lives its descendants are found.
  for (int round = 0; round < 3; ++round) {
    const ProcessTree tree = process_tree(root);
    for (const pid_t pid : tree.processes) kill(pid, SIGSTOP);
    for (size_t k = tree.processes.size(); k-- > 1;) kill(tree.processes[k], SIGKILL);
    if (tree.processes.size() <= 1) break;
  }
  kill(root, SIGKILL);
}

}  // namespace kw
