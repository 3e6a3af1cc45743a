#include "kelvin/report/calibration_glossary.h"

namespace kelvin {

// Errors are no percentages here: they are small, and a report rounds those to one decimal.
const std::vector<Term>& calibration_glossary() {
  static const std::vector<Term> terms = {
      {.name = "brier",
       .label = "Brier score",
       .meaning =
           "The squared distance between a sample's probabilities and its label, summed over "
           "the classes, mean over the samples: 0 if all are right for sure, 2 if all are "
           "wrong for sure."},
      {.name = "ece",
       .label = "calibration error (ECE)",
       .meaning = "How far the share of right answers is from the mean confidence, over samples of "
                  "similar confidence: bins of equal width, weighted by the samples in them."},
      {.name = "ece_equal_mass",
       .label = "calibration error, equal mass",
       .meaning = "The calibration error over bins that hold equally many samples, so that the "
                  "many confident ones are told apart."},
      {.name = "ece_classwise",
       .label = "calibration error, class-wise",
       .meaning = "The calibration error of the probability of each class, not of the highest "
                  "alone, mean over the classes."},
      {.name = "mce",
       .label = "largest calibration error (MCE)",
       .meaning = "The largest distance between share of right answers and mean confidence in any "
                  "bin of equal width, however few samples it holds."},
      {.name = "temperature",
       .label = "fitted temperature",
       .meaning =
           "The temperature at which the softmax of the logits has the highest likelihood on "
           "samples that the network was not trained on: above the training temperature if "
           "the network is too sure of itself."},
  };
  return terms;
}

}  // namespace kelvin
