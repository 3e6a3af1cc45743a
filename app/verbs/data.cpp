#include "app/data/jobs.h"
#include "app/job_verb.h"

namespace kelvin {
namespace {

const bool registered =
    verbs().add("data", {
                            .summary = "Datasets: what there is, fetch, verify, show",
                            .make = [] { return std::make_unique<JobVerb>(data_jobs()); },
                        });

}  // namespace
}  // namespace kelvin
