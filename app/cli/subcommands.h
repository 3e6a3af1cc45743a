#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/cli/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {

// A verb that is a family of jobs: `kelvin VERB JOB ...`.
class SubcommandVerb : public Verb {
 public:
  explicit SubcommandVerb(const Registry<VerbEntry>& jobs) : jobs_(jobs) {}

  int run() override {
    for (const auto& [job, verb] : verbs_) {
      if (job->parsed()) return verb->run();
    }
    std::vector<std::string> names;
    for (const auto& [name, entry] : jobs_.entries()) {
      if (!entry.is_internal) names.push_back(name);
    }
    check(false, "a job is required; there are: ", join(names, ", "));
    return 0;
  }

 protected:
  void declare_flags(CLI::App& command) override {
    command.require_subcommand(0, 1);  // none gets a message of ours
    for (const auto& [name, entry] : jobs_.entries()) {
      auto* job = command.add_subcommand(name, entry.summary);
      if (entry.is_internal) job->group("");
      verbs_[job] = entry.make();
      verbs_[job]->share_common_flags(*this);
      verbs_[job]->declare(*job);
    }
  }

 private:
  const Registry<VerbEntry>& jobs_;
  std::map<const CLI::App*, std::unique_ptr<Verb>> verbs_;
};

}  // namespace kelvin
