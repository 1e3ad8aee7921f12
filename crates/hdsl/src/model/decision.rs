//! How neighbours decide a class, as a value that a model carries.

use super::cosine::Formed;
use super::similarity::Similarity;
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Who decides the class of a row: `majority`, `weighted` or `class-mean`.
///
/// - `majority`: each of the k nearest rows has one vote. Classes that tie: the one whose nearest member is nearest.
/// - `weighted`: each of the k nearest rows votes with its similarity, or with 0 where that is below 0. Classes that tie:
///   as under `majority`, so that it is the majority's vote where nobody has any weight.
/// - `class-mean`: the class whose rows have the highest mean similarity to the query. Every row counts, there is no k.
///   Classes that tie: the first. A class without rows is never chosen.
///
/// ```
/// use hdsl::Vote;
/// assert_eq!("class-mean".parse::<Vote>()?, Vote::ClassMean);
/// assert_eq!(Vote::default().to_string(), "majority");
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vote {
    /// One vote for each of the k nearest.
    #[default]
    Majority,
    /// The k nearest vote with their similarity.
    Weighted,
    /// The highest mean similarity to all rows of a class.
    ClassMean,
}

impl Vote {
    /// All of them.
    pub const ALL: [Vote; 3] = [Vote::Majority, Vote::Weighted, Vote::ClassMean];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Vote::Majority => "majority",
            Vote::Weighted => "weighted",
            Vote::ClassMean => "class-mean",
        }
    }

    /// Whether it asks a number of nearest rows, rather than all.
    pub fn has_k(self) -> bool {
        self != Vote::ClassMean
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Vote {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Vote::ALL
            .into_iter()
            .find(|vote| vote.name() == text)
            .ok_or_else(|| Error::param("vote", text, "majority, weighted or class-mean"))
    }
}

/// The form in which a similarity ranks: `dot` (as it is) or `cosine` (S(x, z) / √(S(x, x) S(z, z)), see
/// [`Cosine`](super::Cosine)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    /// S(x, z).
    #[default]
    Dot,
    /// S(x, z) / √(S(x, x) S(z, z)).
    Cosine,
}

impl Form {
    /// Both.
    pub const ALL: [Form; 2] = [Form::Dot, Form::Cosine];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Form::Dot => "dot",
            Form::Cosine => "cosine",
        }
    }

    /// A similarity in this form.
    ///
    /// ```
    /// use hdsl::{Dot, Form, Similarity, SparseRow};
    /// let (a, b) = (SparseRow::new(&[0, 1], &[3.0, 4.0]), SparseRow::new(&[0], &[2.0]));
    /// assert_eq!(Form::Dot.of(&Dot).score(a, b), 6.0);
    /// assert_eq!(Form::Cosine.of(&Dot).score(a, b), 0.6);
    /// ```
    pub fn of<S: Similarity + ?Sized>(self, similarity: &S) -> Formed<'_, S> {
        Formed::new(self, similarity)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Form {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Form::ALL
            .into_iter()
            .find(|form| form.name() == text)
            .ok_or_else(|| Error::param("form", text, "dot or cosine"))
    }
}

/// How the class of a row is decided from labelled rows. [`knn::classify`](crate::knn::classify) does it.
///
/// ```
/// use hdsl::{Decision, Form, Vote};
/// assert_eq!(Decision::default(), Decision { k: 3, vote: Vote::Majority, form: Form::Dot });
/// assert_eq!(Decision::nearest(15).to_string(), "majority of 15 neighbours, dot");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decision {
    /// How many nearest rows vote. `class-mean` does not use it.
    pub k: usize,
    /// Who decides.
    pub vote: Vote,
    /// How the similarity ranks.
    pub form: Form,
}

impl Default for Decision {
    /// The paper's: the majority of 3, under the similarity as it is.
    fn default() -> Self {
        Self::nearest(3)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { k, vote, form } = self;
        let s = if *k == 1 { "" } else { "s" };
        match vote {
            Vote::Majority => write!(f, "majority of {k} neighbour{s}, {form}"),
            Vote::Weighted => write!(f, "weighted vote of {k} neighbour{s}, {form}"),
            Vote::ClassMean => write!(f, "class mean, {form}"),
        }
    }
}

impl Decision {
    /// The majority of the `k` nearest, under the similarity as it is.
    pub fn nearest(k: usize) -> Self {
        Self {
            k,
            vote: Vote::Majority,
            form: Form::Dot,
        }
    }

    /// Whether so many labelled rows are enough to decide by.
    pub fn check(&self, n_rows: usize) -> Result<()> {
        if self.k == 0 {
            return Err(Error::param("k", self.k, "a whole number above 0"));
        }
        if n_rows == 0 {
            return Err(Error::data("there are no training rows to decide by"));
        }
        if self.vote.has_k() && self.k > n_rows {
            return Err(Error::Data(format!(
                "fewer rows than neighbours asked for: {n_rows} to choose from, k is {}",
                self.k
            )));
        }
        Ok(())
    }

    /// As key and text, for a model to keep.
    pub(crate) fn settings(&self) -> [(String, String); 3] {
        [
            ("form".to_owned(), self.form.to_string()),
            ("k".to_owned(), self.k.to_string()),
            ("vote".to_owned(), self.vote.to_string()),
        ]
    }

    /// From what a model keeps; what is absent is the default.
    pub(super) fn from_settings(settings: &[(String, String)]) -> Result<Self> {
        let mut decision = Self::default();
        for (key, text) in settings {
            match key.as_str() {
                "form" => decision.form = text.parse()?,
                "k" => {
                    decision.k = text
                        .parse()
                        .ok()
                        .filter(|&k| k > 0)
                        .ok_or_else(|| Error::param("k", text, "a whole number above 0"))?;
                }
                "vote" => decision.vote = text.parse()?,
                _ => {}
            }
        }
        Ok(decision)
    }
}
