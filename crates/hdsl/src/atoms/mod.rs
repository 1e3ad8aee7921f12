//! The building blocks of a similarity: atoms λ(e_i ± e_j)(e_i ± e_j)ᵀ and convex combinations of them.

mod active_set;
mod path;

pub use active_set::ActiveSet;
pub use path::Path;

use crate::data::SparseRow;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Whether the two features of an atom make rows more or less similar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Sign {
    /// P in the paper: feature i in one row and j in the other make them *more* similar.
    #[serde(rename = "+")]
    Plus,
    /// N in the paper: feature i in one row and j in the other make them *less* similar.
    #[serde(rename = "-")]
    Minus,
}

impl Sign {
    /// 1 or -1.
    pub fn value(self) -> f64 {
        match self {
            Sign::Plus => 1.0,
            Sign::Minus => -1.0,
        }
    }
}

/// (e_i ± e_j)(e_i ± e_j)ᵀ, with i < j. The order of atoms (i, then j, then plus) settles ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Atom {
    i: u32,
    j: u32,
    sign: Sign,
}

/// What was read as an atom.
#[derive(Deserialize)]
struct Unchecked {
    i: u32,
    j: u32,
    sign: Sign,
}

impl TryFrom<Unchecked> for Atom {
    type Error = Error;

    fn try_from(Unchecked { i, j, sign }: Unchecked) -> Result<Self> {
        Self::new(i, j, sign)
    }
}

impl Atom {
    /// An atom of two different features, given in any order.
    pub fn new(i: u32, j: u32, sign: Sign) -> Result<Self> {
        if i == j {
            return Err(Error::data(format!(
                "an atom joins two different features, not feature {i} with itself"
            )));
        }
        let (i, j) = (i.min(j), i.max(j));
        Ok(Self { i, j, sign })
    }

    /// P^(ij), with sign plus.
    pub fn plus(i: u32, j: u32) -> Result<Self> {
        Self::new(i, j, Sign::Plus)
    }

    /// N^(ij), with sign minus.
    pub fn minus(i: u32, j: u32) -> Result<Self> {
        Self::new(i, j, Sign::Minus)
    }

    /// The lower feature.
    pub fn i(&self) -> u32 {
        self.i
    }

    /// The higher feature.
    pub fn j(&self) -> u32 {
        self.j
    }

    /// Plus or minus.
    pub fn sign(&self) -> Sign {
        self.sign
    }

    /// x_i ± x_j, the coordinate of a row under this atom.
    pub(crate) fn project(&self, x: SparseRow<'_>) -> f64 {
        x.get(self.i) + self.sign.value() * x.get(self.j)
    }
}

/// What one iteration did to the weights. Replaying the steps of a run gives every iterate again, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "lowercase")]
pub enum Step {
    /// M ← (1-γ) M + γ B.
    Forward {
        /// B.
        atom: Atom,
        /// γ, in (0, 1].
        gamma: f64,
    },
    /// M ← (1+γ) M - γ B.
    Away {
        /// B, which is active.
        atom: Atom,
        /// γ, below weight / (1 - weight).
        gamma: f64,
    },
    /// The away step that removes an atom.
    Drop {
        /// B, which is active and not alone.
        atom: Atom,
    },
    /// M ← M + γ (to - from), γ below the weight of `from`.
    Pairwise {
        /// The atom that gains.
        to: Atom,
        /// The active atom that loses.
        from: Atom,
        /// γ.
        gamma: f64,
    },
    /// The pairwise step that moves all the weight of `from`.
    Swap {
        /// The atom that gains.
        to: Atom,
        /// The active atom that is removed.
        from: Atom,
    },
}

impl Step {
    /// The atoms whose weights change by more than the rescaling of all.
    pub(crate) fn atoms_mut(&mut self) -> impl Iterator<Item = &mut Atom> {
        let (first, second) = match self {
            Step::Forward { atom, .. } | Step::Away { atom, .. } | Step::Drop { atom } => {
                (atom, None)
            }
            Step::Pairwise { to, from, .. } | Step::Swap { to, from } => (to, Some(from)),
        };
        std::iter::once(first).chain(second)
    }
}
