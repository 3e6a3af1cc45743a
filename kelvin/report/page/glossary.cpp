#include "kelvin/report/page/glossary.h"

#include <algorithm>

namespace kelvin {
namespace {

constexpr bool kFraction = true;

}  // namespace

// A table: name, label, meaning.  NOLINTNEXTLINE(readability-function-size)
const std::vector<Term>& glossary() {
  static const std::vector<Term> terms = {
      // Logits: accuracy, rank, norm, spectrum.
      {"accuracy", "accuracy",
       "How many samples of the split get their own class as the highest logit.", kFraction},
      {"nll", "negative log-likelihood",
       "The mean of minus the logarithm of the probability that a sample's own class gets at "
       "the training temperature."},
      {"solution_rank", "solution rank (SR)",
       "How many directions the logits use: the number of singular values of the matrix M of "
       "logits (classes by samples) above gamma times the largest one, after each sample's mean "
       "over the classes is removed, because the softmax ignores it."},
      {"solution_rank_at_equal_accuracy", "SR at equal training accuracy",
       "SR at the first epoch at which a run reaches the training accuracy that every run "
       "reaches: an undertrained network has a low rank as well, and this view takes that "
       "difference away."},
      {"post_softmax_rank", "rank after the softmax",
       "The numerical rank of softmax(M / T), the matrix of predicted probabilities: the "
       "softmax can raise the rank, so a high one here needs no high rank of the logits."},
      {"logits_norm", "logits norm ‖M‖", "The Frobenius norm of the matrix of logits."},
      {"logits_norm_over_t", "logits norm ‖M/T‖",
       "The Frobenius norm of the logits divided by the temperature: what the softmax sees."},
      {"logits_norm_per_sample", "logits norm per sample",
       "The Frobenius norm of the logits over the root of the number of samples, so that sets "
       "of different size compare."},
      {"logits_norm_growth", "growth of the logits norm",
       "The norm of the logits at the end of training over the one at initialisation."},
      {"singular_value", "singular value",
       "A singular value of the matrix of logits, or with a layer of its centred outputs; those "
       "far below the first carry little."},

      // How alike samples are to the loss.
      {"entropy_ratio", "entropy of the probabilities",
       "The mean entropy of a sample's probabilities softmax(M / T) over that of equal ones: at "
       "100 % all classes look alike to the loss.",
       kFraction},
      {"loss_spread", "spread of the losses",
       "The standard deviation of the samples' cross-entropies: 0 if the loss does not tell "
       "samples apart."},
      {"loss_distance", "loss − ln C",
       "The mean cross-entropy less the one of equal probabilities: 0 where nothing is known, "
       "below it where labels are."},
      {"probability_cosine", "cosine of the probabilities",
       "The mean cosine between the probabilities of two different samples: 1 if all samples "
       "get the same."},
      {"gradient_diversity", "gradient diversity",
       "The summed squared norms of the samples' gradients in the last weight matrix over the "
       "squared norm of their sum: one over the number of samples if all point the same way, 1 "
       "if they are orthogonal, more if they cancel."},

      // Attention.
      {"attention_logits_rank", "rank of attention logits",
       "The numerical rank of a head's matrix of logits (queries by keys), mean over samples, "
       "after each query's mean over the keys is removed, because the softmax ignores it. It "
       "cannot exceed the width of a head."},
      {"attention_shares_rank", "rank of attention shares",
       "The numerical rank of a head's matrix of shares (queries by keys), mean over samples: "
       "the softmax can raise the rank of the logits."},
      {"attention_entropy", "entropy of attention",
       "The entropy of a query's shares over that of equal shares: 100 % looks at all tokens "
       "alike, 0 % at one alone.",
       kFraction},

      // Probes of layers.
      {"kappa", "effective depth κ",
       "The share of the layers needed until a linear probe reaches a threshold, 99 % unless "
       "its definition says otherwise, of the last layer's test accuracy: 40 % means that the "
       "remaining 60 % of the layers add next to nothing.",
       kFraction},
      {"rho", "OOD generalisation loss ρ",
       "How far the last layer's probe accuracy on out-of-distribution data lies below that of "
       "the best layer, relative to the best: what the deep layers destroy.",
       kFraction},
      {"ood_retained", "OOD accuracy retained",
       "The last layer's probe accuracy on out-of-distribution data over that of the best "
       "layer.",
       kFraction},
      {"probe_accuracy", "probe accuracy",
       "The test accuracy of a linear classifier trained on the frozen output of one "
       "layer.",
       kFraction},

      // Detection of OOD data.
      {"auroc", "AUROC",
       "The probability that a detector scores a random in-distribution sample above a random "
       "out-of-distribution one: 50 % is guessing, 100 % is perfect.",
       kFraction},
      {"fpr95_id", "FPR95, ID accepted",
       "The share of out-of-distribution samples that pass when the threshold accepts 95 % of "
       "the in-distribution ones; lower is better.",
       kFraction},
      {"fpr95_ood", "FPR95, OOD caught",
       "The share of in-distribution samples that are rejected when the threshold catches 95 % "
       "of the out-of-distribution ones; lower is better.",
       kFraction},
      {"aupr_in", "AUPR, ID positive",
       "The area under the precision-recall curve with in-distribution as the positive "
       "class.",
       kFraction},
      {"aupr_out", "AUPR, OOD positive",
       "The area under the precision-recall curve with out-of-distribution as the positive "
       "class.",
       kFraction},

      // Calibration.  Errors are no percentages here: they are small, and a report rounds those to
      // one decimal.
      {"brier", "Brier score",
       "The squared distance between a sample's probabilities and its label, summed over the "
       "classes, mean over the samples: 0 if all are right for sure, 2 if all are wrong for "
       "sure."},
      {"ece", "calibration error (ECE)",
       "How far the share of right answers is from the mean confidence, over samples of similar "
       "confidence: bins of equal width, weighted by the samples in them."},
      {"ece_equal_mass", "calibration error, equal mass",
       "The calibration error over bins that hold equally many samples, so that the many "
       "confident ones are told apart."},
      {"ece_classwise", "calibration error, class-wise",
       "The calibration error of the probability of each class, not of the highest alone, mean "
       "over the classes."},
      {"mce", "largest calibration error (MCE)",
       "The largest distance between share of right answers and mean confidence in any bin of "
       "equal width, however few samples it holds."},
      {"temperature", "fitted temperature",
       "The temperature at which the softmax of the logits has the highest likelihood on "
       "samples that the network was not trained on: above the training temperature if the "
       "network is too sure of itself."},

      // Spectra, layers, weights and gradients.
      {"covariance_rank", "covariance rank",
       "How many directions the outputs of a layer vary in: eigenvalues of their covariance "
       "above gamma times the largest. Of a wide layer it is that of a projection, and marked "
       "where that is not reliable."},
      {"numerical_rank", "numerical rank",
       "How many singular values of the centred outputs of a layer exceed gamma times the "
       "largest."},
      {"effective_rank", "effective rank",
       "How many directions a spectrum spreads over: the exponential of the entropy of the "
       "singular values divided by their sum; without a layer, of the logits."},
      {"rankme", "RankMe",
       "The effective rank with 1e-7 added to each share, as RankMe defines it, so that numbers "
       "compare with published ones."},
      {"stable_rank", "stable rank",
       "The sum of the squared singular values over the largest square: 1 if one direction "
       "holds everything."},
      {"participation_ratio", "participation ratio",
       "The squared sum of the squared singular values over the sum of their squares: how many "
       "directions share the variance."},
      {"post_softmax_effective_rank", "effective rank after the softmax",
       "The effective rank of softmax(M / T), the matrix of predicted probabilities."},
      {"post_softmax_rankme", "RankMe after the softmax",
       "RankMe of softmax(M / T), the matrix of predicted probabilities."},
      {"post_softmax_stable_rank", "stable rank after the softmax",
       "The stable rank of softmax(M / T), the matrix of predicted probabilities."},
      {"post_softmax_participation_ratio", "participation ratio after the softmax",
       "The participation ratio of softmax(M / T), the matrix of predicted probabilities."},
      {"post_softmax_singular_value", "singular value after the softmax",
       "A singular value of softmax(M / T), the matrix of predicted probabilities."},
      {"between_class_variance", "between-class variance",
       "The mean squared distance of the samples' class means to the mean of all samples, in a "
       "layer's features."},
      {"within_class_variance", "within-class variance",
       "The mean squared distance of the samples to the mean of their class, in a layer's "
       "features; with the between-class one it adds up to the total."},
      {"class_variance_ratio", "within / between classes",
       "The within-class variance over the between-class one: it falls towards 0 as classes "
       "collapse to points."},
      {"class_rank", "rank of a class",
       "How many directions the samples of one class vary in: eigenvalues of the class's "
       "covariance above gamma times its largest, on a fixed sample, mean over classes; with an "
       "index, of that class."},
      {"cka", "CKA",
       "How alike two layers' features are on a fixed sample, from 0 to 1, whatever their "
       "rotation and scale: linear centred kernel alignment with the last layer, and with the "
       "next."},
      {"cka_neighbours", "CKA of neighbouring layers",
       "The mean CKA of each layer with the next: near 1 if layers change little."},
      {"alignment", "alignment",
       "Largest cosine between the leading singular directions of a layer's weights and those "
       "of its inputs; 1 means that the weights amplify exactly where the inputs are."},
      {"gradient_rank", "gradient rank",
       "How many directions the gradient of a layer's weights has on one batch, counting "
       "singular values above gamma times the largest."},
      {"activation_rank", "input rank",
       "How many directions a layer's inputs have on the same batch as its gradient; bounds the "
       "exact rank of the gradient."},
      {"gradient_rank_violations", "gradient rank violations",
       "Layers whose numerical gradient rank exceeds that of their inputs; the bound holds for "
       "exact rank, so it may be above 0."},
      {"gradient_singular_value", "singular value of the gradient",
       "One of the five largest singular values of a layer's gradient."},
      {"norm_of_singular_values", "norm by singular values",
       "How large a layer's product W A would be if the singular vectors of weights and inputs "
       "matched in order; the most that any rotation gives."},
      {"norm_alignment", "norm alignment",
       "Which part of that largest norm the layer's product really has, from 0 to 1; times "
       "norm_of_singular_values it is the norm of W A."},
      {"layer_top_singular_value", "top singular value of the weights",
       "The most by which a layer's weight matrix stretches a vector."},
      {"weight_norm", "weight norm", "Frobenius norm of a layer's weight matrix."},
      {"weight_stable_rank", "stable rank of the weights",
       "Sum of the squared singular values of a layer's weights over the largest square; low if "
       "few directions hold the norm."},
      {"weight_rank", "rank of the weights",
       "How many singular values of a layer's weights exceed gamma times the largest."},
      {"top_singular_product", "product of top singular values",
       "By how much a network would amplify its input if every layer passed on its leading "
       "direction to the next."},
      {"network_gain", "gain of the logits",
       "Largest singular value of the logits over that of the network's input: by how much the "
       "network really amplifies."},
      {"top_singular_share", "share of the product",
       "The gain of the logits over the product of top singular values; near 1 if all layers "
       "are aligned and linear."},

      // Neural collapse.
      {"nc1_trace_pinv", "NC1, Tr(S_W S_B^+) / K",
       "How far samples spread around their class mean, in the directions in which the means "
       "differ and relative to how far: 0 if every class is one point."},
      {"nc1_trace_ratio", "NC1, Tr S_W / Tr S_B",
       "The within-class variance over that of the class means, each class counted once: 0 if "
       "every class is one point."},
      {"nc1_cdnv", "NC1, class-distance variance",
       "The variance of two classes over the squared distance of their means, mean over all "
       "pairs: 0 if every class is one point."},
      {"nc1_trace_pinv_unscaled", "NC1, Tr(S_W S_B^+)",
       "NC1, not divided by the number of classes."},
      {"nc1_trace_svd", "NC1, K - 1 directions / K",
       "NC1 with K - 1 directions of the class means inverted whatever they hold: larger than "
       "the one with a cutoff where the means hardly use some of them."},
      {"nc1_trace_svd_unscaled", "NC1, K - 1 directions",
       "NC1 with K - 1 directions inverted, not divided by the number of classes, as in the "
       "original notebook."},
      {"nc1_trace_pinv_weighted_mean", "NC1 around the mean of samples",
       "NC1 with class means taken around the mean of all samples rather than around the mean "
       "of the class means; the same if all classes are of one size."},
      {"nc1_trace_ratio_weighted_mean", "NC1, ratio around the mean of samples",
       "The ratio of traces with class means taken around the mean of all samples; the same as "
       "the plain one if all classes are of one size."},
      {"nc2_equinorm", "NC2, lengths of means",
       "The relative spread of the distances of the class means to their centre: 0 if all are "
       "equally far."},
      {"nc2_equiangular", "NC2, angles of means",
       "How far the cosines between centred class means are from -1/(K-1), the most that K "
       "directions can be apart: 0 if all pairs are."},
      {"nc2_etf_error", "NC2, distance to a simplex",
       "How far the products of centred class means are from those of a simplex of equal "
       "lengths and angles, both of norm 1: 0 for such a simplex."},
      {"nc2_etf_error_per_pair", "NC2, distance to a simplex / K²",
       "The distance of the class means to a simplex over the square of the number of classes, "
       "as some papers print it."},
      {"nc2_etf_error_weighted_mean", "NC2, distance to a simplex around the mean of samples",
       "The distance of the class means to a simplex if they are taken around the mean of all "
       "samples; the same if all classes are of one size."},
      {"nc2_distance_variance", "NC2, variance of distances",
       "How unequal the distances between the directions of the class means are: 0 if all pairs "
       "are equally far."},
      {"nc2_log_distance_variance", "NC2, variance of log distances",
       "How unequal the logarithms of the distances between the directions of the class means "
       "are: 0 if all pairs are equally far."},
      {"nc2_riesz_variance", "NC2, variance of the Riesz kernel",
       "How unequal the distances between the directions of the class means are to the power of "
       "two less than the number of features: 0 if all pairs are equally far."},
      {"nc0_weight_sum", "NC0, sum of the classifier's rows",
       "The length of the sum of the classifier's rows over its width: 0 if the rows are "
       "centred by themselves."},
      {"nc0_weight_sum_squared", "NC0, squared",
       "The squared length of the sum of the classifier's rows over the number of classes: 0 if "
       "the rows are centred by themselves."},
      {"nc2_weight_equinorm", "NC2, lengths of weights",
       "The relative spread of the lengths of the classifier's rows: 0 if all are equally long."},
      {"nc2_weight_equiangular", "NC2, angles of weights",
       "How far the cosines between the classifier's rows are from -1/(K-1): 0 if all pairs are "
       "as far apart as K directions can be."},
      {"nc2_weight_etf_error", "NC2, distance of weights to a simplex",
       "How far the products of the classifier's rows are from those of a simplex of equal "
       "lengths and angles, both of norm 1: 0 for such a simplex."},
      {"nc2_weight_etf_error_per_pair", "NC2, distance of weights to a simplex / K²",
       "The distance of the classifier's rows to a simplex over the square of the number of "
       "classes, as some papers print it."},
      {"nc2_product_etf_error", "NC2M, distance of W M to a simplex / K²",
       "The distance of the products of the classifier's rows and the centred class means to "
       "those of a simplex, over the square of the number of classes."},
      {"nc3_self_duality", "NC3, weights against means",
       "The squared distance between the classifier and the centred class means, each scaled to "
       "norm 1: 0 if they are the same but for scale."},
      {"nc3_self_duality_norm", "NC3, not squared",
       "The distance between the classifier and the centred class means, each scaled to norm 1: "
       "0 if they are the same but for scale."},
      {"nc3_self_duality_per_entry", "NC3, per entry",
       "The distance between the scaled classifier and class means over the number of their "
       "entries, as some papers print it."},
      {"nc3_dual_etf_error", "NC3, distance of W M to a simplex",
       "How far the products of the classifier's rows and the centred class means are from "
       "those of a simplex, both of norm 1: 0 if both are the same simplex."},
      {"nc3_dual_etf_error_weighted_mean",
       "NC3, distance of W M to a simplex around the mean of samples",
       "The same with class means taken around the mean of all samples."},
      {"nc3_dual_variance", "NC3U, variance of <w_c, m_c>",
       "How unequally the classes' rows of the classifier answer to their centred means: 0 if "
       "all do alike. It grows with the scale of both."},
      {"nc4_ncc_mismatch", "NC4, not the nearest mean",
       "The share of samples for which the network does not predict the class whose mean is "
       "nearest, in the classifier's input or in a layer; means are those of the training "
       "split.",
       kFraction},
      {"nc4_ncc_mismatch_without_bias", "NC4, bias ignored",
       "The share of samples for which the classifier without its bias does not predict the "
       "class whose mean is nearest.",
       kFraction},
      {"nc4_centre_logits", "NC4, logits at the centre",
       "The length of the logits that the classifier gives the centre of the class means: 0 if "
       "the bias makes up for the centre."},
      {"orthodev", "NC5, OrthoDev",
       "The mean absolute cosine between the class means and the mean of OOD samples, nothing "
       "centred: 0 if OOD samples lie orthogonal to all classes."},
      {"orthodev_class_means", "NC5, OrthoDev of class means",
       "OrthoDev with the mean of the OOD classes' means, each class counted once; the same if "
       "the OOD classes are of one size."},
  };
  return terms;
}

Term term(const std::string& name) {
  const auto& terms = glossary();
  const auto found =
      std::find_if(terms.begin(), terms.end(), [&](const Term& each) { return each.name == name; });
  return found != terms.end() ? *found : Term{.name = name, .label = name, .meaning = ""};
}

}  // namespace kelvin
