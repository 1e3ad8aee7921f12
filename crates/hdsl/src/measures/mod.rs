//! How good a similarity is where there are no classes: triplet accuracy, and the usual measures of rankings.
//!
//! Sparse similarities give many pairs the same score, so ties are counted as if they were broken at random: every measure
//! is the expected value over all orders of documents with equal scores, and a tied triplet counts one half.
//!
//! | file | job |
//! |---|---|
//! | `ranked.rs` | nDCG@k, average precision, recall@k and reciprocal rank of one ranking |
//! | `judged.rs` | rankings of documents by a similarity, and means over queries |
//! | `pair_ranking.rs` | how well a similarity separates similar from dissimilar pairs |
//! | `triplet_accuracy.rs` | the share of triplets that a similarity agrees with |

mod judged;
mod pair_ranking;
mod ranked;
mod triplet_accuracy;

pub use judged::{RankingQuality, rank_documents};
pub use pair_ranking::pair_auc;
pub use ranked::RankedGains;
pub use triplet_accuracy::TripletAccuracy;
