#include "kelvin/report/page/glossary.h"

#include <algorithm>

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

// A table.  NOLINTNEXTLINE(readability-function-size)
const std::vector<Term>& collapse_glossary() {
  static const std::vector<Term> terms = {
      {.name = "nc1_trace_pinv",
       .label = "NC1, Tr(S_W S_B^+) / K",
       .meaning = "How far samples spread around their class mean, in the directions in which the "
                  "means differ and relative to how far: 0 if every class is one point."},
      {.name = "nc1_trace_ratio",
       .label = "NC1, Tr S_W / Tr S_B",
       .meaning = "The within-class variance over that of the class means, each class counted "
                  "once: 0 if every class is one point."},
      {.name = "nc1_cdnv",
       .label = "NC1, class-distance variance",
       .meaning = "The variance of two classes over the squared distance of their means, mean over "
                  "all pairs: 0 if every class is one point."},
      {.name = "nc1_trace_pinv_unscaled",
       .label = "NC1, Tr(S_W S_B^+)",
       .meaning = "NC1, not divided by the number of classes."},
      {.name = "nc1_trace_svd",
       .label = "NC1, K - 1 directions / K",
       .meaning =
           "NC1 with K - 1 directions of the class means inverted whatever they hold: larger "
           "than the one with a cutoff where the means hardly use some of them."},
      {.name = "nc1_trace_svd_unscaled",
       .label = "NC1, K - 1 directions",
       .meaning = "NC1 with K - 1 directions inverted, not divided by the number of classes, as "
                  "in the original notebook."},
      {.name = "nc1_trace_pinv_weighted_mean",
       .label = "NC1 around the mean of samples",
       .meaning = "NC1 with class means taken around the mean of all samples rather than around "
                  "the mean of the class means; the same if all classes are of one size."},
      {.name = "nc1_trace_ratio_weighted_mean",
       .label = "NC1, ratio around the mean of samples",
       .meaning = "The ratio of traces with class means taken around the mean of all samples; the "
                  "same as the plain one if all classes are of one size."},
      {.name = "nc2_equinorm",
       .label = "NC2, lengths of means",
       .meaning = "The relative spread of the distances of the class means to their centre: 0 if "
                  "all are equally far."},
      {.name = "nc2_equiangular",
       .label = "NC2, angles of means",
       .meaning = "How far the cosines between centred class means are from -1/(K-1), the most "
                  "that K directions can be apart: 0 if all pairs are."},
      {.name = "nc2_etf_error",
       .label = "NC2, distance to a simplex",
       .meaning = "How far the products of centred class means are from those of a simplex of "
                  "equal lengths and angles, both of norm 1: 0 for such a simplex."},
      {.name = "nc2_etf_error_per_pair",
       .label = "NC2, distance to a simplex / K²",
       .meaning = "The distance of the class means to a simplex over the square of the number of "
                  "classes, as some papers print it."},
      {.name = "nc2_etf_error_weighted_mean",
       .label = "NC2, distance to a simplex around the mean of samples",
       .meaning = "The distance of the class means to a simplex if they are taken around the mean "
                  "of all samples; the same if all classes are of one size."},
      {.name = "nc2_distance_variance",
       .label = "NC2, variance of distances",
       .meaning = "How unequal the distances between the directions of the class means are: 0 if "
                  "all pairs are equally far."},
      {.name = "nc2_log_distance_variance",
       .label = "NC2, variance of log distances",
       .meaning = "How unequal the logarithms of the distances between the directions of the class "
                  "means are: 0 if all pairs are equally far."},
      {.name = "nc2_riesz_variance",
       .label = "NC2, variance of the Riesz kernel",
       .meaning = "How unequal the distances between the directions of the class means are to the "
                  "power of two less than the number of features: 0 if all pairs are equally far."},
      {.name = "nc0_weight_sum",
       .label = "NC0, sum of the classifier's rows",
       .meaning = "The length of the sum of the classifier's rows over its width: 0 if the rows "
                  "are centred by themselves."},
      {.name = "nc0_weight_sum_squared",
       .label = "NC0, squared",
       .meaning = "The squared length of the sum of the classifier's rows over the number of "
                  "classes: 0 if the rows are centred by themselves."},
      {.name = "nc2_weight_equinorm",
       .label = "NC2, lengths of weights",
       .meaning = "The relative spread of the lengths of the classifier's rows: 0 if all are "
                  "equally long."},
      {.name = "nc2_weight_equiangular",
       .label = "NC2, angles of weights",
       .meaning = "How far the cosines between the classifier's rows are from -1/(K-1): 0 if all "
                  "pairs are as far apart as K directions can be."},
      {.name = "nc2_weight_etf_error",
       .label = "NC2, distance of weights to a simplex",
       .meaning = "How far the products of the classifier's rows are from those of a simplex of "
                  "equal lengths and angles, both of norm 1: 0 for such a simplex."},
      {.name = "nc2_weight_etf_error_per_pair",
       .label = "NC2, distance of weights to a simplex / K²",
       .meaning = "The distance of the classifier's rows to a simplex over the square of the "
                  "number of classes, as some papers print it."},
      {.name = "nc2_product_etf_error",
       .label = "NC2M, distance of W M to a simplex / K²",
       .meaning = "The distance of the products of the classifier's rows and the centred class "
                  "means to those of a simplex, over the square of the number of classes."},
      {.name = "nc3_self_duality",
       .label = "NC3, weights against means",
       .meaning = "The squared distance between the classifier and the centred class means, each "
                  "scaled to norm 1: 0 if they are the same but for scale."},
      {.name = "nc3_self_duality_norm",
       .label = "NC3, not squared",
       .meaning = "The distance between the classifier and the centred class means, each scaled to "
                  "norm 1: 0 if they are the same but for scale."},
      {.name = "nc3_self_duality_per_entry",
       .label = "NC3, per entry",
       .meaning = "The distance between the scaled classifier and class means over the number of "
                  "their entries, as some papers print it."},
      {.name = "nc3_dual_etf_error",
       .label = "NC3, distance of W M to a simplex",
       .meaning = "How far the products of the classifier's rows and the centred class means are "
                  "from those of a simplex, both of norm 1: 0 if both are the same simplex."},
      {.name = "nc3_dual_etf_error_weighted_mean",
       .label = "NC3, distance of W M to a simplex around the mean of samples",
       .meaning = "The same with class means taken around the mean of all samples."},
      {.name = "nc3_dual_variance",
       .label = "NC3U, variance of <w_c, m_c>",
       .meaning = "How unequally the classes' rows of the classifier answer to their centred "
                  "means: 0 if all do alike. It grows with the scale of both."},
      {.name = "nc4_ncc_mismatch",
       .label = "NC4, not the nearest mean",
       .meaning = "The share of samples for which the network does not predict the class whose "
                  "mean is nearest, in the classifier's input or in a layer; means are those of "
                  "the training split.",
       .is_fraction = true},
      {.name = "nc4_ncc_mismatch_without_bias",
       .label = "NC4, bias ignored",
       .meaning = "The share of samples for which the classifier without its bias does not predict "
                  "the class whose mean is nearest.",
       .is_fraction = true},
      {.name = "nc4_centre_logits",
       .label = "NC4, logits at the centre",
       .meaning = "The length of the logits that the classifier gives the centre of the class "
                  "means: 0 if the bias makes up for the centre."},
      {.name = "orthodev",
       .label = "NC5, OrthoDev",
       .meaning = "The mean absolute cosine between the class means and the mean of OOD "
                  "samples, nothing centred: 0 if OOD samples lie orthogonal to all classes."},
      {.name = "orthodev_class_means",
       .label = "NC5, OrthoDev of class means",
       .meaning = "OrthoDev with the mean of the OOD classes' means, each class counted once; "
                  "the same if the OOD classes are of one size."},
  };
  return terms;
}

// A table.  NOLINTNEXTLINE(readability-function-size)
const std::vector<Term>& layer_glossary() {
  static const std::vector<Term> terms = {
      {.name = "covariance_rank",
       .label = "covariance rank",
       .meaning = "How many directions the outputs of a layer vary in: eigenvalues of their "
                  "covariance above gamma times the largest. Of a wide layer it is that of a "
                  "projection, and marked where that is not reliable."},
      {.name = "numerical_rank",
       .label = "numerical rank",
       .meaning = "How many singular values of the centred outputs of a layer exceed gamma times "
                  "the largest."},
      {.name = "effective_rank",
       .label = "effective rank",
       .meaning = "How many directions a spectrum spreads over: the exponential of the entropy of "
                  "the singular values divided by their sum; without a layer, of the logits."},
      {.name = "rankme",
       .label = "RankMe",
       .meaning = "The effective rank with 1e-7 added to each share, as RankMe defines it, so that "
                  "numbers compare with published ones."},
      {.name = "stable_rank",
       .label = "stable rank",
       .meaning = "The sum of the squared singular values over the largest square: 1 if one "
                  "direction holds everything."},
      {.name = "participation_ratio",
       .label = "participation ratio",
       .meaning = "The squared sum of the squared singular values over the sum of their squares: "
                  "how many directions share the variance."},
      {.name = "post_softmax_effective_rank",
       .label = "effective rank after the softmax",
       .meaning = "The effective rank of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "post_softmax_rankme",
       .label = "RankMe after the softmax",
       .meaning = "RankMe of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "post_softmax_stable_rank",
       .label = "stable rank after the softmax",
       .meaning = "The stable rank of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "post_softmax_participation_ratio",
       .label = "participation ratio after the softmax",
       .meaning =
           "The participation ratio of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "post_softmax_singular_value",
       .label = "singular value after the softmax",
       .meaning = "A singular value of softmax(M / T), the matrix of predicted probabilities."},
      {.name = "between_class_variance",
       .label = "between-class variance",
       .meaning = "The mean squared distance of the samples' class means to the mean of all "
                  "samples, in a layer's features."},
      {.name = "within_class_variance",
       .label = "within-class variance",
       .meaning = "The mean squared distance of the samples to the mean of their class, in a "
                  "layer's features; with the between-class one it adds up to the total."},
      {.name = "class_variance_ratio",
       .label = "within / between classes",
       .meaning = "The within-class variance over the between-class one: it falls towards 0 as "
                  "classes collapse to points."},
      {.name = "class_rank",
       .label = "rank of a class",
       .meaning = "How many directions the samples of one class vary in: eigenvalues of the "
                  "class's covariance above gamma times its largest, on a fixed sample, mean over "
                  "classes; with an index, of that class."},
      {.name = "cka",
       .label = "CKA",
       .meaning = "How alike two layers' features are on a fixed sample, from 0 to 1, whatever "
                  "their rotation and scale: linear centred kernel alignment with the last layer, "
                  "and with the next."},
      {.name = "cka_neighbours",
       .label = "CKA of neighbouring layers",
       .meaning = "The mean CKA of each layer with the next: near 1 if layers change little."},
      {.name = "alignment",
       .label = "alignment",
       .meaning =
           "Largest cosine between the leading singular directions of a layer's weights and those "
           "of its inputs; 1 means that the weights amplify exactly where the inputs are."},
      {.name = "gradient_rank",
       .label = "gradient rank",
       .meaning = "How many directions the gradient of a layer's weights has on one batch, "
                  "counting singular values above gamma times the largest."},
      {.name = "activation_rank",
       .label = "input rank",
       .meaning = "How many directions a layer's inputs have on the same batch as its gradient; "
                  "bounds the exact rank of the gradient."},
      {.name = "gradient_rank_violations",
       .label = "gradient rank violations",
       .meaning = "Layers whose numerical gradient rank exceeds that of their inputs; the bound "
                  "holds for exact rank, so it may be above 0."},
      {.name = "gradient_singular_value",
       .label = "singular value of the gradient",
       .meaning = "One of the five largest singular values of a layer's gradient."},
      {.name = "norm_of_singular_values",
       .label = "norm by singular values",
       .meaning = "How large a layer's product W A would be if the singular vectors of weights and "
                  "inputs matched in order; the most that any rotation gives."},
      {.name = "norm_alignment",
       .label = "norm alignment",
       .meaning = "Which part of that largest norm the layer's product really has, from 0 to 1; "
                  "times norm_of_singular_values it is the norm of W A."},
      {.name = "layer_top_singular_value",
       .label = "top singular value of the weights",
       .meaning = "The most by which a layer's weight matrix stretches a vector."},
      {.name = "weight_norm",
       .label = "weight norm",
       .meaning = "Frobenius norm of a layer's weight matrix."},
      {.name = "weight_stable_rank",
       .label = "stable rank of the weights",
       .meaning = "Sum of the squared singular values of a layer's weights over the largest "
                  "square; low if few directions hold the norm."},
      {.name = "weight_rank",
       .label = "rank of the weights",
       .meaning = "How many singular values of a layer's weights exceed gamma times the largest."},
      {.name = "top_singular_product",
       .label = "product of top singular values",
       .meaning = "By how much a network would amplify its input if every layer passed on its "
                  "leading direction to the next."},
      {.name = "network_gain",
       .label = "gain of the logits",
       .meaning = "Largest singular value of the logits over that of the network's input: by how "
                  "much the network really amplifies."},
      {.name = "top_singular_share",
       .label = "share of the product",
       .meaning = "The gain of the logits over the product of top singular values; near 1 if all "
                  "layers are aligned and linear."},
  };
  return terms;
}

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
