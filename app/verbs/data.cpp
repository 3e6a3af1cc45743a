#include <map>

#include "app/data/jobs.h"
#include "app/verb.h"
#include "kelvin/core/check.h"
#include "kelvin/core/text.h"

namespace kelvin {
namespace {

class Data : public Verb {
 public:
  void declare_flags(CLI::App& command) override {
    command.require_subcommand(0, 1);  // none gets a message of ours
    for (const auto& [name, entry] : data_jobs().entries()) {
      auto* job = command.add_subcommand(name, entry.summary);
      verbs_[job] = entry.make();
      verbs_[job]->declare_flags(*job);
    }
  }

  int run() override {
    for (const auto& [job, verb] : verbs_) {
      if (job->parsed()) return verb->run();
    }
    check(false, "a job is required; there are: ", join(data_jobs().names(), ", "));
    return 0;
  }

 private:
  std::map<const CLI::App*, std::unique_ptr<Verb>> verbs_;
};

const bool registered =
    verbs().add("data", {
                            .summary = "Datasets: what there is, fetch, verify, show",
                            .make = [] { return std::make_unique<Data>(); },
                        });

}  // namespace
}  // namespace kelvin
