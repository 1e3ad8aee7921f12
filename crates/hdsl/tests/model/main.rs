//! Similarities, their files and k-NN, checked against dense arithmetic and brute force.

mod base;
mod file;
mod knn;
mod path;
mod preprocess;
mod reduced;
mod rule;
mod similarity;
mod strategies;
