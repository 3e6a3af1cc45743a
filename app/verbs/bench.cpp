#include "app/bench/jobs.h"
#include "app/job_verb.h"

namespace kelvin {
namespace {

const bool registered =
    verbs().add("bench", {
                             .summary = "Speed of training on this machine, beside PyTorch",
                             .make = [] { return std::make_unique<JobVerb>(bench_jobs()); },
                         });

}  // namespace
}  // namespace kelvin
