#include "app/cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "app/cli/help_text.h"
#include "app/cli/verb.h"
#include "app/cli/version.h"

namespace kelvin {
namespace {

// The text as it is: troff would take some of its characters for commands, and others for
// typography.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '\\':
        safe += "\\e";
        break;
      case '-':
        safe += "\\-";
        break;
      case '\'':
        safe += "\\(aq";
        break;
      case '"':
        safe += "\\(dq";
        break;
      case '`':
        safe += "\\(ga";
        break;
      case '^':
        safe += "\\(ha";
        break;
      case '~':
        safe += "\\(ti";
        break;
      default:
        safe += letter;
    }
  }
  return safe.starts_with('.') ? "\\&" + safe : safe;
}

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return text;
}

// Lines are not stretched and words not cut: names of settings are to be found and copied.
std::string header(const std::string& name, const std::string& summary) {
  return fmt::format(".TH {} 1 \"{}\" \"kelvin {}\" kelvin\n.ad l\n.nh\n.SH NAME\n{} \\- {}\n",
                     escaped(upper_case(name)), kDate, kVersion, escaped(name), escaped(summary));
}

std::string entries_text(const HelpEntries& entries) {
  std::string text;
  for (const auto& [name, meaning] : entries) {
    text += fmt::format(".TP\n.B {}\n{}\n", escaped(name), escaped(meaning));
  }
  return text;
}

std::string synopsis(const CLI::App& command) {
  return fmt::format(".B {}\n", escaped(usage_of(command)));
}

// A section of the help under "FLAGS OF EVERY VERB".
std::string titled(const std::string& title, const HelpEntries& entries) {
  return fmt::format(".SH {}\n{}", escaped(upper_case(title)), entries_text(entries));
}

// A job's part of its verb's page.  What every verb has is at the end of the page.
std::string job_text(const CLI::App& job) {
  auto text = fmt::format(".SS {}\n{}.PP\n{}.\n", escaped(job.get_name()), synopsis(job),
                          escaped(job.get_description()));
  for (const auto& section : help_sections(job)) {
    if (section.title != kCommonFlags) text += entries_text(section.entries);
  }
  return text;
}

constexpr auto kBeginning = R"(.SH SYNOPSIS
.B kelvin VERB [flags]
.br
.B kelvin VERB \-\-help
.br
.B kelvin \-\-version
.SH DESCRIPTION
Rank, spectra, effective depth, neural collapse, calibration and detection of out\-of\-distribution data of
neural networks, and how the temperature of the softmax changes them.
Every verb has a page of its own, such as
.BR kelvin\-train (1).
Start with
.BR "kelvin demo" .
.SH VERBS
)";

constexpr auto kEnd = R"(.SH EXIT STATUS
.TP
.B 0
success
.TP
.B 2
something that the user can mend: one line on stderr says where, what is required and what was received
.TP
.B 70
a bug in kelvin
.TP
.B 129, 130, 143
ended by SIGHUP, Ctrl\-C or SIGTERM: finished work is kept, and a message says how to continue
.SH ENVIRONMENT
.TP
.B KELVIN_DATA
folder of the datasets, unless \-\-data\-dir is given; by default \(ti/.cache/kelvin
.TP
.B OMP_NUM_THREADS
number of threads, unless \-\-threads is given; by default one per usable core
.TP
.B COLUMNS
width of text, instead of the terminal's
)";

}  // namespace

std::string man_page() {
  auto page = header("kelvin", kToolSummary) + kBeginning;
  for (const auto& [name, verb] : verbs().entries()) {
    page += fmt::format(".TP\n.BR kelvin\\-{} (1)\n{}\n", escaped(name), escaped(verb.summary));
  }
  return page + kEnd;
}

std::string man_page(const std::string& verb) {
  const auto declared = command_of(verb);
  const auto& command = *declared.command;
  const auto jobs = jobs_of(command);
  auto page = header("kelvin-" + verb, command.get_description()) + ".SH SYNOPSIS\n";
  if (jobs.empty()) page += synopsis(command);
  for (const auto* job : jobs) page += synopsis(*job) + (job == jobs.back() ? "" : ".br\n");
  if (!jobs.empty()) page += ".SH JOBS\n";
  for (const auto* job : jobs) page += job_text(*job);
  for (const auto& section : help_sections(command)) {
    if (section.title != kJobs) page += titled(section.title, section.entries);
  }
  return page + ".SH SEE ALSO\n.BR kelvin (1)\n";
}

}  // namespace kelvin
