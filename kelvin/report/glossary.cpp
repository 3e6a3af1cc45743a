#include "kelvin/report/glossary.h"

#include <algorithm>

#include "kelvin/report/calibration_glossary.h"
#include "kelvin/report/collapse_glossary.h"
#include "kelvin/report/layer_glossary.h"

namespace kelvin {
namespace {

// A table.  NOLINTNEXTLINE(readability-function-size)
std::vector<Term> first_terms() {
  return {
      {.name = "accuracy",
       .label = "accuracy",
       .meaning = "How many samples of the split get their own class as the highest logit.",
       .is_fraction = true},
      {.name = "nll",
       .label = "negative log-likelihood",
       .meaning = "The mean of minus the logarithm of the probability that a sample's own class "
                  "gets at the training temperature."},
      {.name = "solution_rank",
       .label = "solution rank (SR)",
       .meaning =
           "How many directions the logits use: the number of singular values of the matrix M of "
           "logits (classes by samples) above gamma times the largest one, after each sample's "
           "mean over the classes is removed, because the softmax ignores it."},
      {.name = "solution_rank_at_equal_accuracy",
       .label = "SR at equal training accuracy",
       .meaning =
           "SR at the first epoch at which a run reaches the training accuracy that every run "
           "reaches: an undertrained network has a low rank as well, and this view takes that "
           "difference away."},
      {.name = "post_softmax_rank",
       .label = "rank after the softmax",
       .meaning =
           "The numerical rank of softmax(M / T), the matrix of predicted probabilities: the "
           "softmax can raise the rank, so a high one here needs no high rank of the logits."},
      {.name = "logits_norm",
       .label = "logits norm ‖M‖",
       .meaning = "The Frobenius norm of the matrix of logits."},
      {.name = "logits_norm_over_t",
       .label = "logits norm ‖M/T‖",
       .meaning = "The Frobenius norm of the logits divided by the temperature: what the softmax "
                  "sees."},
      {.name = "logits_norm_per_sample",
       .label = "logits norm per sample",
       .meaning = "The Frobenius norm of the logits over the root of the number of samples, so "
                  "that sets of different size compare."},
      {.name = "logits_norm_growth",
       .label = "growth of the logits norm",
       .meaning = "The norm of the logits at the end of training over the one at initialisation."},
      {.name = "singular_value",
       .label = "singular value",
       .meaning = "A singular value of the matrix of logits, or with a layer of its centred "
                  "outputs; those far below the first carry little."},
      {.name = "entropy_ratio",
       .label = "entropy of the probabilities",
       .meaning = "The mean entropy of a sample's probabilities softmax(M / T) over that of equal "
                  "ones: at 100 % all classes look alike to the loss.",
       .is_fraction = true},
      {.name = "loss_spread",
       .label = "spread of the losses",
       .meaning = "The standard deviation of the samples' cross-entropies: 0 if the loss does not "
                  "tell samples apart."},
      {.name = "loss_distance",
       .label = "loss − ln C",
       .meaning = "The mean cross-entropy less the one of equal probabilities: 0 where nothing is "
                  "known, below it where labels are."},
      {.name = "probability_cosine",
       .label = "cosine of the probabilities",
       .meaning = "The mean cosine between the probabilities of two different samples: 1 if all "
                  "samples get the same."},
      {.name = "gradient_diversity",
       .label = "gradient diversity",
       .meaning =
           "The summed squared norms of the samples' gradients in the last weight matrix over the "
           "squared norm of their sum: one over the number of samples if all point the same way, "
           "1 if they are orthogonal, more if they cancel."},
      {.name = "attention_logits_rank",
       .label = "rank of attention logits",
       .meaning =
           "The numerical rank of a head's matrix of logits (queries by keys), mean over samples, "
           "after each query's mean over the keys is removed, because the softmax ignores it. It "
           "cannot exceed the width of a head."},
      {.name = "attention_shares_rank",
       .label = "rank of attention shares",
       .meaning = "The numerical rank of a head's matrix of shares (queries by keys), mean over "
                  "samples: the softmax can raise the rank of the logits."},
      {.name = "attention_entropy",
       .label = "entropy of attention",
       .meaning = "The entropy of a query's shares over that of equal shares: 100 % looks at all "
                  "tokens alike, 0 % at one alone.",
       .is_fraction = true},
      {.name = "kappa",
       .label = "effective depth κ",
       .meaning =
           "The share of the layers needed until a linear probe reaches a threshold, 99 % unless "
           "its definition says otherwise, of the last layer's test accuracy: 40 % means that the "
           "remaining 60 % of the layers add next to nothing.",
       .is_fraction = true},
      {.name = "rho",
       .label = "OOD generalisation loss ρ",
       .meaning =
           "How far the last layer's probe accuracy on out-of-distribution data lies below that of "
           "the best layer, relative to the best: what the deep layers destroy.",
       .is_fraction = true},
      {.name = "ood_retained",
       .label = "OOD accuracy retained",
       .meaning = "The last layer's probe accuracy on out-of-distribution data over that of the "
                  "best layer.",
       .is_fraction = true},
      {.name = "probe_accuracy",
       .label = "probe accuracy",
       .meaning = "The test accuracy of a linear classifier trained on the frozen output of one "
                  "layer.",
       .is_fraction = true},
      {.name = "auroc",
       .label = "AUROC",
       .meaning = "The probability that a detector scores a random in-distribution sample above a "
                  "random out-of-distribution one: 50 % is guessing, 100 % is perfect.",
       .is_fraction = true},
      {.name = "fpr95_id",
       .label = "FPR95, ID accepted",
       .meaning = "The share of out-of-distribution samples that pass when the threshold accepts "
                  "95 % of the in-distribution ones; lower is better.",
       .is_fraction = true},
      {.name = "fpr95_ood",
       .label = "FPR95, OOD caught",
       .meaning = "The share of in-distribution samples that are rejected when the threshold "
                  "catches 95 % of the out-of-distribution ones; lower is better.",
       .is_fraction = true},
      {.name = "aupr_in",
       .label = "AUPR, ID positive",
       .meaning = "The area under the precision-recall curve with in-distribution as the positive "
                  "class.",
       .is_fraction = true},
      {.name = "aupr_out",
       .label = "AUPR, OOD positive",
       .meaning = "The area under the precision-recall curve with out-of-distribution as the "
                  "positive class.",
       .is_fraction = true},
  };
}

}  // namespace

const std::vector<Term>& glossary() {
  static const auto terms = [] {
    auto all = first_terms();
    all.insert(all.end(), calibration_glossary().begin(), calibration_glossary().end());
    all.insert(all.end(), layer_glossary().begin(), layer_glossary().end());
    all.insert(all.end(), collapse_glossary().begin(), collapse_glossary().end());
    return all;
  }();
  return terms;
}

Term term(const std::string& name) {
  const auto& terms = glossary();
  const auto found =
      std::find_if(terms.begin(), terms.end(), [&](const Term& each) { return each.name == name; });
  return found != terms.end() ? *found : Term{.name = name, .label = name, .meaning = ""};
}

}  // namespace kelvin
