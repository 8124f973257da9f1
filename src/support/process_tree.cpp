#include "support/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>

namespace kw {
namespace {

constexpr int kRounds = 1000;  // of a millisecond or more

struct Process {
  std::string folder;  // in /proc
  char state = 0;      // proc(5): 'T' stopped, 'Z' ended
  pid_t parent = 0;
  int64_t threads = 0;
  uint64_t resident_pages = 0;
};

// FOLDER/stat, proc(5): what stands after the last ")", since a name may hold anything.
bool read_stat(const std::string& folder, Process& into) {
  const int file = open((folder + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[1024];
  const ssize_t n = read(file, text, sizeof text - 1);
  close(file);
  text[n > 0 ? n : 0] = 0;
  const char* rest = strrchr(text, ')');
  into.folder = folder;
  // Fields 3 (state), 4 (parent), 20 (threads) and 24 (resident pages).
  return rest &&
         sscanf(rest + 1,
                " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %*u "
                "%*u %lu",
                &into.state, &into.parent, &into.threads, &into.resident_pages) == 4;
}

// Calls with each number that names something in a folder of /proc, until one call is true.
bool any_in(const std::string& folder, const std::function<bool(pid_t)>& call) {
  DIR* open = opendir(folder.c_str());
  if (!open) return false;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(open)) {
    const pid_t number = atoi(entry->d_name);
    found = number > 0 && call(number);
  }
  closedir(open);
  return found;
}

// A process that has not ended. Its first thread alone may have, and then tells nothing.
bool read_process(pid_t pid, Process& into) {
  const std::string folder = "/proc/" + std::to_string(pid);
  if (!read_stat(folder, into)) return false;
  if (into.state != 'Z') return true;
  return into.threads > 1 && any_in(folder + "/task", [&](pid_t thread) {
           return read_stat(folder + "/task/" + std::to_string(thread), into) && into.state != 'Z';
         });
}

// Whether no thread of it runs any more.
bool is_stopped(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  return !any_in(folder, [&](pid_t thread) {
    Process one;
    return read_stat(folder + "/" + std::to_string(thread), one) && one.state != 'T' &&
           one.state != 'Z';
  });
}

}  // namespace

ProcessTree process_tree(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  std::map<pid_t, Process> all;
  any_in("/proc", [&](pid_t pid) {
    Process process;
    if (read_process(pid, process)) {
      children.emplace(process.parent, pid);
      all.emplace(pid, process);
    }
    return false;
  });
  ProcessTree tree;
  if (all.contains(root)) tree.processes.push_back(root);
  for (size_t k = 0; k < tree.processes.size(); ++k) {
    const Process& process = all.at(tree.processes[k]);
    tree.folders.push_back(process.folder);
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
    std::ifstream file(tree.folders[k] + "/smaps_rollup");
    std::string word;
    uint64_t kilobytes = 0, shared = 0;
    bool told = false;
    while (file >> word) {  // "Pss: 1234 kB", proc(5): its pages, divided by how many share each
      if (word == "Pss:") told = static_cast<bool>(file >> kilobytes);
      if (word == "Pss_Shmem:") file >> shared;
    }
    if (Process now; !told && (!read_stat(tree.folders[k], now) || now.state == 'Z')) continue;
    out.bytes += told ? kilobytes * 1024 : tree.resident[k];
    out.shared += shared * 1024;
    out.silent = out.silent || !told;
  }
  return out;
}

void kill_tree(pid_t root) {
  // Stopped first, so that none starts another while the rest is looked for; the root last, as long
  // as it lives its descendants are found. Who is stopped in the middle of fork(2) still ends it,
  // and of a large process that takes milliseconds; who is killed in it does not.
  for (int round = 0; round < kRounds; ++round) {
    const bool stopped = is_stopped(root);
    const ProcessTree tree = process_tree(root);
    for (const pid_t pid : tree.processes) kill(pid, SIGSTOP);
    for (size_t k = tree.processes.size(); k-- > 1;) kill(tree.processes[k], SIGKILL);
    if (stopped && tree.processes.size() <= 1) break;
    usleep(1000);
  }
  kill(root, SIGKILL);
}

}  // namespace kw
