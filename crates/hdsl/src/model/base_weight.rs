//! The weight of the base similarity, as people set it.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The weight β of the base similarity in S(x, x') = β <x, x'> + xᵀ M x': a number from 0 on, or `auto`.
///
/// ```
/// use hdsl::model::BaseWeight;
/// assert_eq!("2.5".parse::<BaseWeight>()?, BaseWeight::Value(2.5));
/// assert_eq!("auto".parse::<BaseWeight>()?, BaseWeight::Auto);
/// assert!("-1".parse::<BaseWeight>().is_err());
/// # Ok::<(), hdsl::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
#[non_exhaustive]
pub enum BaseWeight {
    /// β itself. 0 is the method of the paper: a similarity that is learned from nothing.
    Value(f64),
    /// β chosen from the triplets, so that their margins under the base similarity alone are 1 on average.
    Auto,
}

impl BaseWeight {
    /// β = 0: no base similarity.
    pub const NONE: Self = Self::Value(0.0);

    /// Whether there is no base similarity.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// β, if it is a number.
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Value(beta) => Some(beta),
            Self::Auto => None,
        }
    }
}

impl Default for BaseWeight {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Display for BaseWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(beta) => beta.fmt(f),
            Self::Auto => f.pad("auto"),
        }
    }
}

impl FromStr for BaseWeight {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.parse() {
            _ if text == "auto" => Ok(Self::Auto),
            Ok(beta) if f64::is_finite(beta) && beta >= 0.0 => Ok(Self::Value(beta)),
            _ => Err(Error::param("base", text, "a number from 0 on, or auto")),
        }
    }
}

/// A number, or a name.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Name(String),
}

impl From<BaseWeight> for Written {
    fn from(weight: BaseWeight) -> Self {
        match weight {
            BaseWeight::Value(beta) => Self::Number(beta),
            BaseWeight::Auto => Self::Name(weight.to_string()),
        }
    }
}

impl TryFrom<Written> for BaseWeight {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        match written {
            Written::Number(beta) => beta.to_string().parse(),
            Written::Name(name) => name.parse(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_and_written_as_numbers_or_auto() {
        for (weight, json) in [
            (BaseWeight::Value(2.5), "2.5"),
            (BaseWeight::NONE, "0.0"),
            (BaseWeight::Auto, "\"auto\""),
        ] {
            assert_eq!(serde_json::to_string(&weight).unwrap(), json);
            assert_eq!(serde_json::from_str::<BaseWeight>(json).unwrap(), weight);
            assert_eq!(weight.to_string().parse::<BaseWeight>().unwrap(), weight);
        }
        assert_eq!(
            serde_json::from_str::<BaseWeight>("3").unwrap(),
            BaseWeight::Value(3.0)
        );
        for wrong in ["-1", "nan", "inf", "Auto", "", "1e999"] {
            let error = wrong.parse::<BaseWeight>().unwrap_err().to_string();
            assert!(error.contains("a number from 0 on, or auto"), "{error}");
        }
        assert!(serde_json::from_str::<BaseWeight>("-1").is_err());
    }
}
