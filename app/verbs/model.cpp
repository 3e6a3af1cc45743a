#include "app/job_verb.h"
#include "app/model/jobs.h"

namespace kelvin {
namespace {

const bool registered =
    verbs().add("model", {
                             .summary = "Networks: layers of one, norms of their first logits",
                             .make = [] { return std::make_unique<JobVerb>(model_jobs()); },
                         });

}  // namespace
}  // namespace kelvin
