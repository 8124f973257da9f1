#include "support/diagnostic.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "support/files.h"
#include "support/process.h"
#include "support/process_tree.h"

namespace kw {
namespace {

TEST(Diagnostic, shows_the_line_with_carets_and_the_notes) {
  const SourcePtr source = make_source("k.tl", "one\n  mma s = q @ k\nthree\n");
  Diagnostics d;
  d.error("mma.C1", Span{source, 14, 15}, "q has 64 columns, k has 128").notes = {
      {"q is declared here", Span{source, 0, 3}}};
  EXPECT_EQ(render(d),
            "k.tl:2:11: error[mma.C1]: q has 64 columns, k has 128\n"
            "     2 |   mma s = q @ k\n"
            "       |           ^\n"
            "  note: q is declared here (k.tl:1:1)\n");
  EXPECT_EQ(to_json(d)[0]["place"]["line"], 2);
}

TEST(Process, returns_output_and_exit_code) {
  const ProcessResult r = run_process({"sh", "-c", "cat; echo bad >&2; exit 3"}, "in");
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.out, "in");
  EXPECT_EQ(r.err, "bad\n");
}

TEST(Process, is_killed_when_its_time_is_up) {
  const ProcessResult r = run_process({"sleep", "20"}, "", 0.2);
  EXPECT_TRUE(r.timed_out);
  EXPECT_EQ(r.exit_code, 128 + 9);
}

// A killed process is gone a moment later.
bool goes(pid_t pid) {
  for (int k = 0; k < 500 && !process_tree(pid).processes.empty(); ++k) usleep(10'000);
  return process_tree(pid).processes.empty();
}

TEST(Process, is_killed_with_all_its_descendants_at_the_limit_of_their_number) {
  ProcessLimits limits;
  limits.seconds = 20;
  limits.processes = 8;
  const ProcessResult r = run_process(
      {"sh", "-c", "for k in 1 2 3 4 5 6 7 8 9; do sleep 20 & echo $!; done; wait"}, "", limits);
  EXPECT_EQ(r.exceeded, "more than 8 processes");
  EXPECT_FALSE(r.timed_out);
  std::istringstream started(r.out);
  for (pid_t pid; started >> pid;) EXPECT_TRUE(goes(pid)) << pid;
}

// A Python program within 300 MiB that takes 600 outside of every process's own pages; then it
// waits.
std::string exceeded_by(const std::string& text, std::vector<std::string> within = {}) {
  ProcessLimits limits;
  limits.seconds = 15;
  limits.memory_bytes = uint64_t{300} << 20;
  within.insert(within.end(), {"python3", "-c",
                               "import ctypes, mmap, os, socket, time\nM = 1 << 20\n"
                               "time.sleep(0.2)\n" +
                                   text + "\ntime.sleep(3)"});
  const ProcessResult r = run_process(within, "", limits);
  return r.exceeded.empty() ? r.err : r.exceeded;
}

// "" where it is within at least once of five times: what others write meanwhile into memory that
// is shared may be held against it where a process does not tell what it has.
std::string exceeded_at_each_of_five(const std::string& text,
                                     const std::vector<std::string>& within = {}) {
  std::string out = exceeded_by(text, within);
  for (int k = 1; k < 5 && !out.empty(); ++k) out = exceeded_by(text, within);
  return out;
}

TEST(Process, files_in_memory_count_towards_its_memory) {
  const std::string due = "more than 0.293 GiB of memory";
  for (const char* text : {
           "f = os.memfd_create('x')\nfor _ in range(250): os.write(f, b'1' * M)\n"
           "g = os.memfd_create('y')\nfor _ in range(250): os.write(g, b'1' * M)",
           // of a child, many, after an exec
           "for _ in range(60):\n f = os.memfd_create('x', 0)\n for _ in range(10): os.write(f, "
           "b'1' * M)\n"
           "os.fork() or os.execvp('sleep', ['sleep', '3'])",
           // mapped and closed, of which no page is touched
           "for k in range(3):\n f = os.memfd_create('x')\n for _ in range(200): os.write(f, b'1' "
           "* M)\n"
           " m = mmap.mmap(f, 4096)\n globals()[f'm{k}'] = m\n os.close(f)\n"
           "os.closerange(3, 50)",
           // shared with a child, and no longer in a page table
           "for k in range(3):\n m = mmap.mmap(-1, 200 * M)\n m.write(b'1' * 200 * M)\n"
           " m.madvise(mmap.MADV_DONTNEED)\n globals()[f'm{k}'] = m",
           // sent through a socket and closed
           "a, b = socket.socketpair()\nfor _ in range(3):\n f = os.memfd_create('x')\n"
           " for _ in range(200): os.write(f, b'1' * M)\n socket.send_fds(a, [b'1'], [f])\n "
           "os.close(f)",
           // by a process that hides its files
           "ctypes.CDLL(None).prctl(4, 0)\nfor _ in range(3):\n f = os.memfd_create('x')\n"
           " for _ in range(200): os.write(f, b'1' * M)",
       })
    EXPECT_EQ(exceeded_by(text), due) << text;
  // Mapped, too, and counted once.
  const std::string mapped = exceeded_at_each_of_five(
      "f = os.memfd_create('x')\nfor _ in range(150): os.write(f, b'1' * M)\n"
      "m = mmap.mmap(f, 150 * M)\nfor k in range(0, 150 * M, 4096): m[k]");
  EXPECT_EQ(mapped, "");
  EXPECT_NE(
      exceeded_by("f = os.memfd_create('x')\nos.ftruncate(f, 400 * M)").find("File too large"),
      std::string::npos);
}

TEST(Process, what_a_sandbox_has_in_its_own_file_systems_counts_towards_its_memory) {
  const std::vector<std::string> sandbox = {"bwrap", "--unshare-all", "--ro-bind", "/",    "/",
                                            "--dev", "/dev",          "--tmpfs",   "/tmp", "--"};
  std::vector<std::string> trial = sandbox;
  trial.push_back("true");
  if (run_process(trial).exit_code != 0) GTEST_SKIP() << "bubblewrap does not work here";
  const auto write = [](const std::string& megabytes) {
    return "for name in ('/tmp/x', '/dev/shm/x', '/tmp/y'):\n"
           " with open(name, 'wb') as f:\n"
           "  for _ in range(" +
           megabytes + "): f.write(b'1' * M)";
  };
  EXPECT_EQ(exceeded_by(write("150"), sandbox), "more than 0.293 GiB of memory");
  EXPECT_EQ(exceeded_at_each_of_five(write("60"), sandbox), "");
}

// A process whose first thread has ended is a zombie to who looks at that thread alone.
TEST(Process, whose_first_thread_has_ended_counts_as_before) {
  const std::string goes_on =
      "import threading\ndef work():\n time.sleep(0.1)\n {}\n time.sleep(3)\n"
      "threading.Thread(target=work).start()\nctypes.CDLL(None).pthread_exit(None)";
  const auto with = [&](const std::string& work) {
    std::string text = goes_on;
    return text.replace(text.find("{}"), 2, work);
  };
  EXPECT_EQ(exceeded_by(with("f = os.memfd_create('x')\n for _ in range(280): os.write(f, b'1' * "
                             "M)\n g = bytearray(100 * M)")),
            "more than 0.293 GiB of memory");
  ProcessLimits limits;
  limits.seconds = 15;
  limits.processes = 8;
  const ProcessResult r = run_process(
      {"python3", "-c",
       "import ctypes, os, time\n" +
           with("os.system('for k in 1 2 3 4 5 6 7 8 9; do sleep 20 & echo $!; done; wait')")},
      "", limits);
  EXPECT_EQ(r.exceeded, "more than 8 processes");
  std::istringstream started(r.out);
  int count = 0;
  for (pid_t pid; started >> pid; ++count) EXPECT_TRUE(goes(pid)) << pid;
  EXPECT_GE(count, 7);
}

// Of a large process fork(2) takes milliseconds, also after it has been told to stop.
TEST(Process, no_child_that_it_starts_while_it_is_ended_gets_away) {
  ProcessLimits limits;
  limits.seconds = 15;
  limits.processes = 8;
  const TemporaryFolder folder;
  const std::string file = folder.path() / "pids";
  for (int k = 0; k < 10; ++k)
    run_process({"python3", "-c",
                 "import os, sys, time\nx = bytearray(200 << 20)\nfor _ in range(100):\n"
                 " if os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n"
                 "  with open(sys.argv[1], 'a') as f: print(os.getpid(), file=f)\n"
                 "  time.sleep(20)\n  os._exit(0)\ntime.sleep(20)",
                 file},
                "", limits);
  usleep(200'000);  // who got away has written by then
  std::istringstream started(read_source(file)->text);
  int count = 0;
  for (pid_t pid; started >> pid; ++count) EXPECT_TRUE(goes(pid)) << pid;
  EXPECT_GE(count, 10);
}

TEST(Process, what_waits_in_sockets_counts_towards_its_memory) {
  EXPECT_EQ(exceeded_by("kept = []\nfor _ in range(1000):\n a, b = socket.socketpair()\n"
                        " a.setsockopt(1, 7, 4 * M)\n a.setblocking(False)\n kept += [a, b]\n"
                        " try:\n  while True: a.send(b'1' * 65536)\n except OSError: pass"),
            "more than 0.293 GiB of memory");
}

TEST(Process, dies_with_who_started_it) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "pid";
  const pid_t parent = fork();
  if (parent == 0) {
    run_process({"sh", "-c", "echo $$ > \"$0.new\"; mv \"$0.new\" \"$0\"; exec sleep 60", file});
    _exit(0);
  }
  for (int k = 0; k < 500 && !std::filesystem::exists(file); ++k) usleep(10'000);
  const pid_t child = std::stoi(read_source(file)->text);
  EXPECT_FALSE(process_tree(child).processes.empty());
  kill(parent, SIGKILL);
  int status = 0;
  waitpid(parent, &status, 0);
  EXPECT_TRUE(goes(child));
}

TEST(Process, takes_what_it_left_in_its_group_with_it) {
  const ProcessResult r = run_process({"sh", "-c", "sleep 20 > /dev/null 2>&1 & echo $!"});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_TRUE(goes(std::stoi(r.out)));
}

TEST(Files, a_path_that_is_too_long_is_told_by_its_part) {
  EXPECT_EQ(too_long("out/x"), "");
  EXPECT_NE(too_long("out/" + std::string(300, 'x')).find("xxxxx...' has 300 bytes"),
            std::string::npos);
  std::string deep;
  for (int k = 0; k < 50; ++k) deep += std::string(100, 'd') + "/";
  EXPECT_NE(too_long(deep).find("the path has "), std::string::npos);
}

TEST(Files, an_uncommitted_folder_leaves_nothing) {
  namespace fs = std::filesystem;
  const fs::path target = fs::path(testing::TempDir()) / "staged";
  fs::remove_all(target);
  {
    StagedFolder folder(target);
    EXPECT_TRUE(write_file(folder.path() / "a", "1"));
  }
  EXPECT_FALSE(fs::exists(target));
  {
    StagedFolder folder(target);
    EXPECT_TRUE(write_file(folder.path() / "a", "2"));
    EXPECT_TRUE(folder.commit());
  }
  EXPECT_EQ(read_source((target / "a").string())->text, "2");
  fs::remove_all(target);
}

TEST(Files, sha256_of_nothing) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace kw
