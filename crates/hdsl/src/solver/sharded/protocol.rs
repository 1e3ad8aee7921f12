//! What the coordinator asks of a shard, and what the shard answers. One message has several requests, so that one round
//! trip serves them all.
//!
//! Every answer is a sum over the triplets of the shard, or a bound of one. Features are internal; all shards number them
//! in the same way.

use crate::atoms::{ActiveSet, Atom, Sign, Step};
use crate::error::{Error, Result};
use crate::solver::direction::Direction;
use crate::solver::partner::Partner;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// An atom as it is sent: its features, and whether its sign is minus.
type SentAtom = (u32, u32, bool);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Replaces the iterate. The answer is a [`Reply::State`].
    Start(Vec<(SentAtom, f64)>),
    /// Computes C X_{:,i} for a feature i, and lists its partners with the largest D_j + |H_ij|, and the given columns.
    Row {
        feature: u32,
        /// List only partners that reach this value.
        floor: f64,
        columns: Vec<u32>,
    },
    /// More partners of the feature of the last [`Request::Row`]: all that reach `floor`, up to a number of them, if it is
    /// given, and the given columns.
    More {
        feature: u32,
        floor: Option<f64>,
        most: u32,
        columns: Vec<u32>,
    },
    /// The features with the largest D, and D of the given ones.
    Diagonal { most: u32, columns: Vec<u32> },
    /// For each feature, an upper bound of |H_ij| over all j.
    RowBounds,
    /// D of every feature.
    Diagonals,
    /// Begins a line search, and minimizes over the triplets of the shard alone.
    Line { direction: Sent, gamma_max: f64 },
    /// φ' and φ'' at the lower end of an interval, and the breakpoints of φ' within it.
    Breakpoints { low: f64, high: f64, most: u32 },
    /// φ' and φ'' at each of these γ.
    Derivatives(Vec<f64>),
    /// Takes a step along the direction of the last line search. The answer is a [`Reply::State`].
    Advance { step: SentStep, gamma: f64 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    State(State),
    Partners(Partners),
    Values(Vec<f64>),
    /// The γ that minimizes φ over this shard.
    Line(f64),
    Derivatives(Vec<(f64, f64)>),
    Breakpoints {
        /// φ' and φ'' at the lower end.
        low: (f64, f64),
        /// (γ, change of φ''), in any order; `None` if there are too many.
        breakpoints: Option<Vec<(f64, f64)>>,
    },
}

/// Sums at an iterate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// V f.
    pub(crate) value: f64,
    /// V <M, -∇f>.
    pub(crate) model_gain: f64,
    /// The score of every active atom.
    pub(crate) scores: Vec<f64>,
}

/// Columns j with D_j and, for a feature i, H_ij.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Partners {
    /// D_i; 0 without a feature i.
    pub(crate) diagonal: f64,
    pub(crate) listed: Vec<Partner>,
    /// An upper bound of D_j + |H_ij| of all columns that are not listed. `None` if there is no new one.
    pub(crate) bound: Option<f64>,
}

/// A [`Direction`] as it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Sent {
    Forward(SentAtom),
    Away(SentAtom),
    Pairwise { to: SentAtom, from: SentAtom },
}

/// A [`Step`] as it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum SentStep {
    Forward(SentAtom, f64),
    Away(SentAtom, f64),
    Drop(SentAtom),
    Pairwise(SentAtom, SentAtom, f64),
    Swap(SentAtom, SentAtom),
}

fn sent(atom: Atom) -> SentAtom {
    (atom.i(), atom.j(), atom.sign() == Sign::Minus)
}

fn received((i, j, is_minus): SentAtom) -> Result<Atom> {
    Atom::new(i, j, if is_minus { Sign::Minus } else { Sign::Plus })
}

pub(crate) fn sent_active(active: &ActiveSet) -> Vec<(SentAtom, f64)> {
    active.iter().map(|(atom, w)| (sent(atom), w)).collect()
}

pub(crate) fn received_active(weighted: &[(SentAtom, f64)]) -> Result<ActiveSet> {
    let atoms = weighted.iter().map(|&(atom, w)| Ok((received(atom)?, w)));
    ActiveSet::from_weighted(&atoms.collect::<Result<Vec<_>>>()?)
}

impl Sent {
    pub(crate) fn of(direction: Direction) -> Self {
        match direction {
            Direction::Forward(atom) => Self::Forward(sent(atom)),
            Direction::Away(atom) => Self::Away(sent(atom)),
            Direction::Pairwise { to, from } => Self::Pairwise {
                to: sent(to),
                from: sent(from),
            },
        }
    }

    pub(crate) fn received(&self) -> Result<Direction> {
        Ok(match *self {
            Self::Forward(atom) => Direction::Forward(received(atom)?),
            Self::Away(atom) => Direction::Away(received(atom)?),
            Self::Pairwise { to, from } => Direction::Pairwise {
                to: received(to)?,
                from: received(from)?,
            },
        })
    }
}

impl SentStep {
    pub(crate) fn of(step: &Step) -> Self {
        match *step {
            Step::Forward { atom, gamma } => Self::Forward(sent(atom), gamma),
            Step::Away { atom, gamma } => Self::Away(sent(atom), gamma),
            Step::Drop { atom } => Self::Drop(sent(atom)),
            Step::Pairwise { to, from, gamma } => Self::Pairwise(sent(to), sent(from), gamma),
            Step::Swap { to, from } => Self::Swap(sent(to), sent(from)),
        }
    }

    pub(crate) fn received(&self) -> Result<Step> {
        Ok(match *self {
            Self::Forward(atom, gamma) => Step::Forward {
                atom: received(atom)?,
                gamma,
            },
            Self::Away(atom, gamma) => Step::Away {
                atom: received(atom)?,
                gamma,
            },
            Self::Drop(atom) => Step::Drop {
                atom: received(atom)?,
            },
            Self::Pairwise(to, from, gamma) => Step::Pairwise {
                to: received(to)?,
                from: received(from)?,
                gamma,
            },
            Self::Swap(to, from) => Step::Swap {
                to: received(to)?,
                from: received(from)?,
            },
        })
    }
}

/// A message as bytes.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(message).expect("messages have no unsupported types")
}

/// A message from bytes.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|error| {
        Error::data(format!(
            "a message between coordinator and shard cannot be read: {error}; both need the same version of hdsl"
        ))
    })
}
