#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"

namespace kelvin::readme_test {

namespace fs = std::filesystem;

fs::path root() { return KELVIN_SOURCE_DIR; }

// README.md and every page of docs/.
std::vector<fs::path> pages() {
  std::vector<fs::path> found = {root() / "README.md"};
  if (!fs::is_directory(root() / "docs")) return found;
  for (const auto& file : fs::directory_iterator(root() / "docs")) {
    if (file.path().extension() == ".md") found.push_back(file.path());
  }
  return found;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The commands of all ```sh blocks: continued lines joined, without prompts, comments and outputs.
std::vector<std::string> shell_lines(const std::string& page) {
  std::vector<std::string> commands;
  bool is_inside = false;
  std::string command;
  for (const auto& line : lines_of(page)) {
    const auto text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (text.starts_with("```")) {
      is_inside = !is_inside && text == "```sh";
      continue;
    }
    if (!is_inside) continue;
    command += text;
    if (command.ends_with('\\')) {
      command.back() = ' ';
      continue;
    }
    if (command.starts_with("$ ")) command.erase(0, 2);
    commands.push_back(command);
    command.clear();
  }
  return commands;
}

// The words of a line's commands: those of `a && b | c` are three lists.
std::vector<std::vector<std::string>> commands_of(const std::string& line) {
  std::vector<std::vector<std::string>> commands(1);
  std::istringstream stream(line);
  for (std::string word; stream >> word;) {
    if (word.starts_with("#")) break;
    const bool is_separator = word == "&&" || word == "||" || word == "|" || word == ";";
    if (is_separator) {
      commands.emplace_back();
      continue;
    }
    const bool is_assignment = std::regex_match(word, std::regex("[A-Z_]+=.*"));
    const bool is_wrapper = word == "sudo" || word == "time" || word == "env";
    if (commands.back().empty() && (is_assignment || is_wrapper)) continue;
    const bool ends_here = word.size() > 1 && word.ends_with(';');
    if (ends_here) word.pop_back();
    commands.back().push_back(word);
    if (ends_here) commands.emplace_back();
  }
  return commands;
}

std::set<std::string> make_targets() {
  std::set<std::string> targets;
  const std::regex rule("^([a-z][a-z-]*):([^=].*)?$");
  for (const auto& line : lines_of(whole_file(root() / "Makefile"))) {
    std::smatch match;
    if (std::regex_match(line, match, rule)) targets.insert(match[1]);
  }
  return targets;
}

// All matches of the first group.
std::set<std::string> found_in(const std::string& text, const std::regex& pattern) {
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    found.insert((*match)[1]);
  }
  return found;
}

// Names of the verbs, from the lines "  name   what it does" below "Verbs:".
std::set<std::string> verbs() {
  const auto help = run_tool({"--help"}).out;
  const auto start = help.find("Verbs:\n");
  if (start == std::string::npos) return {};
  const auto end = help.find("\n\n", start);
  return found_in(help.substr(start, end - start), std::regex("\n  ([a-z]+) "));
}

// Every flag of a verb, or of a job of it, from the lines "  -T, --temperature X  what it does" of
// its help.
std::set<std::string> flags_of(const std::vector<std::string>& verb) {
  static std::map<std::vector<std::string>, std::set<std::string>> known;
  if (const auto found = known.find(verb); found != known.end()) return found->second;
  std::set<std::string> flags;
  auto words = verb;
  words.push_back("--help");
  for (const auto& line : lines_of(run_tool(words).out)) {
    if (!line.starts_with("  -")) continue;
    std::istringstream names(line.substr(2));
    for (std::string name; names >> name && name.starts_with('-');) {
      if (name.ends_with(',')) name.pop_back();
      flags.insert(name);
    }
  }
  return known[verb] = flags;
}

void expect_make_target(const std::vector<std::string>& words, const std::string& line) {
  static const auto targets = make_targets();
  for (size_t i = 1; i < words.size(); ++i) {
    const bool is_target = !words[i].starts_with("-") && words[i].find('=') == std::string::npos;
    if (!is_target) continue;
    EXPECT_TRUE(targets.contains(words[i])) << "no such target: " << line;
  }
}

void expect_verb_and_flags(const std::vector<std::string>& words, const std::string& line) {
  static const auto known = verbs();
  if (words.size() < 2 || words[1] == "--help" || words[1] == "--version") return;
  ASSERT_TRUE(known.contains(words[1])) << "no such verb: " << line;
  const bool has_jobs = words[1] == "data" || words[1] == "model" || words[1] == "bench" ||
                        words[1] == "theory" || words[1] == "attention";
  const auto flags =
      has_jobs && words.size() > 2 ? flags_of({words[1], words[2]}) : flags_of({words[1]});
  for (size_t i = 2; i < words.size(); ++i) {
    const auto flag = words[i].substr(0, words[i].find('='));
    const bool is_flag = std::regex_match(flag, std::regex("--?[A-Za-z][A-Za-z-]*"));
    if (!is_flag) continue;
    EXPECT_TRUE(flags.contains(flag)) << "no flag " << flag << ": " << line;
  }
}

bool is_tool(const std::string& word) {
  return word == "kelvin" || word == "build/kelvin" || word == "./build/kelvin";
}

// Targets of [text](target) and ![text](target) outside of code blocks.
std::set<std::string> links_of(const std::string& page) {
  std::string prose;
  bool is_code = false;
  for (const auto& line : lines_of(page)) {
    if (line.find("```") != std::string::npos) is_code = !is_code;
    if (!is_code) prose += line + "\n";
  }
  return found_in(prose, std::regex(R"(\]\(([^)\s]+)\))"));
}

TEST(Readme, NamesMakeTargetsThatExist) {
  ASSERT_TRUE(make_targets().contains("demo"));
  for (const auto& page : pages()) {
    for (const auto& line : shell_lines(whole_file(page))) {
      for (const auto& words : commands_of(line)) {
        if (!words.empty() && words[0] == "make") expect_make_target(words, line);
      }
    }
  }
}

TEST(Readme, NamesVerbsAndFlagsThatExist) {
  ASSERT_TRUE(verbs().contains("train"));
  ASSERT_TRUE(flags_of({"train"}).contains("-T"));
  ASSERT_TRUE(flags_of({"train"}).contains("--temperature"));
  for (const auto& page : pages()) {
    for (const auto& line : shell_lines(whole_file(page))) {
      for (const auto& words : commands_of(line)) {
        if (!words.empty() && is_tool(words[0])) expect_verb_and_flags(words, line);
      }
    }
  }
}

TEST(Readme, ShowsAtLeastOneCommand) {
  EXPECT_FALSE(shell_lines(whole_file(root() / "README.md")).empty());
}

// Whether a published dataset lies where KELVIN_DATA says.
bool is_there(const std::string& dataset) {
  const char* folder = std::getenv("KELVIN_DATA");
  return folder != nullptr && *folder != '\0' &&
         run_tool({"data", "verify", dataset}).exit_code == 0;
}

// What is typed behind a command of the README so that it takes a moment.
const std::string kTiny =
    " data.train_samples=256 data.test_samples=128 train.epochs=1 measure.train_samples=128 "
    "measure.epoch_samples=64";

// Types README.md's commands of the tool into a shell, one after the other in one new folder, as
// somebody who copies them would.
class ReadmeCommands {
 public:
  explicit ReadmeCommands(std::vector<std::string> environment = {})
      : environment_(std::move(environment)) {
    fs::create_directory_symlink(KELVIN_BINARY_DIR, folder_ / "build");
    for (const auto& line : shell_lines(whole_file(root() / "README.md"))) {
      if (line.starts_with("build/kelvin ")) lines_.push_back(line);
    }
  }

  const std::vector<std::string>& lines() const { return lines_; }

  void type(const std::string& line) const {
    const auto command = "cd " + folder_.path().string() + " && " + line;
    const auto result = StartedCommand({"/bin/sh", "-c", command}, environment_).wait();
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    // Of tiny runs there is nothing to prune, which is no result but a remark.
    const bool found_nothing = line.starts_with("build/kelvin prune ") &&
                               result.err.find("nothing to remove") != std::string::npos;
    EXPECT_EQ(result.out.empty(), found_nothing) << line << "\n" << result.err;
  }

 private:
  TemporaryFolder folder_;
  std::vector<std::string> environment_;
  std::vector<std::string> lines_;
};

bool is_job(const std::string& line, const std::string& words) {
  return line.starts_with("build/kelvin " + words + " ");
}

// A second of training takes the place of minutes, and drawn images that of downloaded ones; all
// that follows is typed as it is printed.
void type_with_tiny_runs(const ReadmeCommands& readme) {
  ASSERT_GE(readme.lines().size(), 15U);
  for (const auto& line : readme.lines()) {
    if (is_job(line, "demo") || is_job(line, "bench") || is_job(line, "data fetch")) continue;
    const bool is_download = line.find("cifar10") != std::string::npos;
    readme.type(line + (is_job(line, "train") ? kTiny : "") +
                (is_download ? " data.name=glyphs10" : ""));
  }
}

TEST(ReadmeCommandsSlow, EndWellOnTinyRuns) { type_with_tiny_runs(ReadmeCommands()); }

TEST(ReadmeCommandsSlow, EndWellOnTinyRunsOnOneThread) {
  type_with_tiny_runs(ReadmeCommands({"OMP_NUM_THREADS=1"}));
}

// Every line as it is printed.  Without published data those of CIFAR-10 work on drawn images, and
// nothing is fetched.
void type_all(const ReadmeCommands& readme) {
  ASSERT_GE(readme.lines().size(), 15U);
  for (const auto& line : readme.lines()) {
    const bool is_published = line.find("cifar10") != std::string::npos;
    std::string more;
    if (is_published && !is_there("cifar10")) {
      if (is_job(line, "data fetch")) continue;
      more += " data.name=glyphs10";
    }
    readme.type(line + more);
  }
}

TEST(ReadmeCommandsSlow, EndWellAsPrinted) { type_all(ReadmeCommands()); }

TEST(ReadmeCommandsSlow, EndWellAsPrintedOnOneThread) {
  type_all(ReadmeCommands({"OMP_NUM_THREADS=1"}));
}

TEST(Extending, ShowsTheExamplesThatAreCompiled) {
  const auto page = whole_file(root() / "docs" / "extending.md");
  for (const auto& example : fs::directory_iterator(root() / "examples")) {
    if (!example.is_regular_file()) continue;  // a project of its own
    EXPECT_NE(page.find("```cpp\n" + whole_file(example.path()) + "```"), std::string::npos)
        << "docs/extending.md does not show " << example.path();
  }
}

TEST(Readme, LinksToFilesThatExist) {
  for (const auto& page : pages()) {
    for (const auto& link : links_of(whole_file(page))) {
      const bool is_elsewhere = link.find("://") != std::string::npos ||
                                link.starts_with("mailto:") || link.starts_with("#");
      if (is_elsewhere) continue;
      const auto target = page.parent_path() / link.substr(0, link.find('#'));
      EXPECT_TRUE(fs::exists(target)) << page.string() << ": " << link;
    }
  }
}

}  // namespace kelvin::readme_test
