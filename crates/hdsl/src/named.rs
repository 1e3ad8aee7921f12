//! Enums whose variants have a name that people type: on the command line, in Python, in model files.

/// Declares such an enum, with `ALL`, `name`, `help`, `Display`, `FromStr` and serde's traits, all by the same names:
/// `enum Type as "parameter" = "name of the first variant" | "name of the second", default Variant { variants }`.
///
/// Error messages name the parameter. The documentation of a variant is its help text on the command line.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident as $parameter:literal = $($text:literal)|+ $(, default $default:ident)? {
            $($(#[doc = $help:literal])+ $variant:ident,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $help])+ $variant,)+
        }

        $(impl Default for $name {
            fn default() -> Self {
                Self::$default
            }
        })?

        impl $name {
            /// All variants, in the order of their declaration.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// The name of this variant.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// What this variant means, in one line.
            pub fn help(self) -> &'static str {
                let text = match self {
                    $(Self::$variant => concat!($($help),+),)+
                };
                text.trim().trim_end_matches('.')
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::error::Error;
            fn from_str(text: &str) -> $crate::error::Result<Self> {
                let found = Self::ALL.into_iter().find(|variant| variant.name() == text);
                found.ok_or_else(|| {
                    $crate::error::Error::param($parameter, text, $crate::named::one_of(&[$($text),+]))
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use named_enum;

/// `a`, `a or b`, `a, b or c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use crate::knn::Vote;

    #[test]
    fn a_name_is_parsed_displayed_and_serialized_the_same() {
        for vote in Vote::ALL {
            assert_eq!(vote.name().parse::<Vote>().unwrap(), vote);
            let json = serde_json::to_string(&vote).unwrap();
            assert_eq!(json, format!("\"{vote}\""));
            assert_eq!(serde_json::from_str::<Vote>(&json).unwrap(), vote);
        }
        assert_eq!(
            Vote::Weighted.help(),
            "The k nearest rows vote with their similarity"
        );
        let error = "jury".parse::<Vote>().unwrap_err().to_string();
        assert!(
            error.contains("majority, weighted, squared or class-mean"),
            "{error}"
        );
        assert!(serde_json::from_str::<Vote>("\"jury\"").is_err());
    }
}
