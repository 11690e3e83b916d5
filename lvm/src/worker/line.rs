//! From words to the one text that `lvm2_run` takes.
//!
//! LVM splits the text at white space; a word that begins with `'` or `"` runs to the next character of that kind,
//! without escapes; a `#` at the beginning of a word ends the line; 64 words are too many (`lvm_split` in LVM's
//! `tools/lvmcmdline.c`, tried against 2.03.16).

use std::fmt::Write as _;

/// Most words that one command may have: LVM refuses to run a line that fills its table of 64.
pub const WORDS_MAX: usize = 63;
/// Longest command line, in bytes; far above what 63 words of ours need.
pub const LINE_MAX: usize = 128 * 1024;

/// Why words make no command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// No command at all.
    #[error("there is no command")]
    Empty,
    /// More words than LVM takes.
    #[error("{words} words; LVM takes at most {WORDS_MAX} in one command")]
    TooManyWords {
        /// Words given.
        words: usize,
    },
    /// More bytes than the worker takes.
    #[error("{bytes} bytes; the worker takes at most {LINE_MAX} in one command")]
    TooLong {
        /// Bytes given.
        bytes: usize,
    },
    /// A control character, which no word of LVM has.
    #[error("{word:?} has a control character")]
    Control {
        /// The word.
        word: String,
    },
    /// Both kinds of quotes in a word that needs quoting: LVM's splitter has no way to say it.
    #[error("{word:?} cannot be quoted for LVM: it has both kinds of quotes")]
    Quotes {
        /// The word.
        word: String,
    },
}

/// Joins words so that LVM splits the line into exactly these words.
///
/// # Errors
///
/// [`LineError`] for words that LVM's splitter cannot give back.
///
/// # Examples
///
/// ```
/// # use lvm::worker::line::command_line;
/// let line = command_line(&["lvs".to_owned(), "-S".to_owned(), "lv_name = x".to_owned()])?;
/// assert_eq!(line, r#"lvs -S "lv_name = x""#);
/// # Ok::<(), lvm::worker::line::LineError>(())
/// ```
pub fn command_line(words: &[String]) -> Result<String, LineError> {
    if words.is_empty() {
        return Err(LineError::Empty);
    }
    if words.len() > WORDS_MAX {
        return Err(LineError::TooManyWords { words: words.len() });
    }
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        push_quoted(&mut line, word)?;
    }
    if line.len() > LINE_MAX {
        return Err(LineError::TooLong { bytes: line.len() });
    }
    Ok(line)
}

fn push_quoted(line: &mut String, word: &str) -> Result<(), LineError> {
    if word.chars().any(char::is_control) {
        return Err(LineError::Control { word: word.to_owned() });
    }
    let bare = !word.is_empty() && !word.contains(' ') && !word.starts_with(['\'', '"', '#']);
    if bare {
        line.push_str(word);
        return Ok(());
    }
    let quote = ['"', '\''].into_iter().find(|quote| !word.contains(*quote));
    let quote = quote.ok_or_else(|| LineError::Quotes { word: word.to_owned() })?;
    // Writing to a String cannot fail.
    let _ = write!(line, "{quote}{word}{quote}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// LVM's splitter, in our words.
    fn split(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut rest = line.trim_start_matches(|c: char| c.is_ascii_whitespace());
        while let Some(first) = rest.chars().next().filter(|c| *c != '#') {
            let quote = Some(first).filter(|c| *c == '"' || *c == '\'');
            let body = &rest[usize::from(quote.is_some())..];
            let end = |c: char| quote.map_or(c.is_ascii_whitespace(), |quote| c == quote);
            let length = body.find(end).unwrap_or(body.len());
            words.push(body[..length].to_owned());
            let after = &body[length..];
            let after = after.get(1..).unwrap_or("");
            rest = after.trim_start_matches(|c: char| c.is_ascii_whitespace());
        }
        words
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn plain_words_stay_as_they_are() {
        assert_eq!(command_line(&words(&["lvs", "a/b", "--x=y", "a'b"])).unwrap(), "lvs a/b --x=y a'b");
    }

    #[test]
    fn words_that_would_split_are_quoted() {
        let given = words(&["a", "b c", "", "#d", "\"e", "'f", "it's mine"]);
        assert_eq!(split(&command_line(&given).unwrap()), given);
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        assert_eq!(command_line(&[]), Err(LineError::Empty));
        assert!(matches!(command_line(&words(&["a\nb"])), Err(LineError::Control { .. })));
        assert!(matches!(command_line(&words(&["a\0"])), Err(LineError::Control { .. })));
        assert!(matches!(command_line(&words(&["a 'b\""])), Err(LineError::Quotes { .. })));
        assert!(matches!(
            command_line(&vec!["a".to_owned(); 64]),
            Err(LineError::TooManyWords { words: 64 })
        ));
        assert!(command_line(&vec!["a".to_owned(); 63]).is_ok());
        assert!(matches!(command_line(&["a".repeat(LINE_MAX + 1)]), Err(LineError::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn the_splitter_gives_back_the_same_words(
            given in prop::collection::vec("[ a-z\"'#=/\\-\\\\;$é]{0,12}", 1..20)
        ) {
            if let Ok(line) = command_line(&given) {
                prop_assert_eq!(split(&line), given);
            }
        }
    }
}
