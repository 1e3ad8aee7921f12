//! Similarities, their files and k-NN, checked against dense arithmetic and brute force.

mod decision;
mod file;
mod knn;
mod path;
mod reduced;
mod scaling;
mod similarity;
mod strategies;
