//! Detects easily guessed passwords: common words, keyboard sequences, and usual additions to them.
//!
//! Lists of leaked passwords consist mostly of variations of a few hundred stems, so the stems are listed here and
//! the variations are undone: case, digits for letters, and digits and punctuation between and around them.

/// Whether a password consists of little else than common words, keyboard sequences and the user's own name.
pub fn is_easily_guessed(password: &str, user: &str) -> bool {
    let lower = password.to_lowercase();
    let letters: Vec<char> = lower.chars().collect();
    let few_letters = |most: usize| {
        let mut different = letters.clone();
        different.sort_unstable();
        different.dedup();
        different.len() <= most
    };
    if few_letters(1) || (few_letters(4) && letters.len() < LONG) {
        return true;
    }
    if letters.iter().all(char::is_ascii_digit) {
        return letters.len() < LONG;
    }
    let user = user.to_lowercase();
    let own = [user.as_str()];
    let own: &[&str] = if user.chars().count() < OWN_MIN { &[] } else { &own };
    let words = || WORDS.split_whitespace();
    // A name may be part of a common word, and a common word part of the name.
    let read = |text: &str| {
        left_over(text, own.iter().copied().chain(words())) <= LEFT_MAX
            || left_over(text, words().chain(own.iter().copied())) <= LEFT_MAX
    };
    read(&lower) || read(&lower.chars().map(meant).collect::<String>())
}

/// Number of letters left after removing these words, keyboard sequences, digits and punctuation.
fn left_over<'a>(text: &str, stems: impl Iterator<Item = &'a str>) -> usize {
    let mut rest = text.to_owned();
    for stem in stems {
        if rest.contains(stem) {
            // Replaced by a space, so that the text on both sides is not joined to one word.
            rest = rest.replace(stem, " ");
        }
    }
    for row in ROWS {
        for length in (RUN_MIN..=row.len()).rev() {
            for start in 0..=row.len() - length {
                let run = &row[start..start + length];
                let back: String = run.chars().rev().collect();
                rest = rest.replace(run, " ").replace(&back, " ");
            }
        }
    }
    rest.chars().filter(|letter| letter.is_alphabetic()).count()
}

/// Letter that a digit or sign stands for.
fn meant(letter: char) -> char {
    match letter {
        '0' => 'o',
        '1' | '!' | '|' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        other => other,
    }
}

/// Extra letters beside common words that do not make a password strong: `mypassword1`.
const LEFT_MAX: usize = 2;

/// Shorter names are allowed in a password.
const OWN_MIN: usize = 3;

/// From this length on, a password may consist of few different characters, or of digits.
const LONG: usize = 20;

/// Shortest keyboard sequence.
const RUN_MIN: usize = 4;

/// Keys that are side by side or below each other, and the alphabet.
const ROWS: [&str; 8] = [
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "qwertzuiop",
    "azertyuiop",
    "qazwsxedcrfvtgbyhnujmikolp",
    "qweasdzxc",
    "abcdefghijklmnopqrstuvwxyz",
];

/// Longer words come before those that they contain. Names of this product and its kind come first, since
/// attackers try them first here.
const WORDS: &str = "
    tickwright xxl-job xxl_job xxljob scheduler executor default_token default token quartz crontab
    administrator admin superuser supervisor operator manager master sysadmin root user guest test demo
    passphrase password passwort passw0rd parola motdepasse contrasena senha mima pass pwd secret private login access
    changeme change letmein welcome hello howdy welkom bonjour hallo nihao woaini iloveyou loveyou love trustno
    monkey dragon tiger lion eagle panda shadow phoenix falcon panther dolphin butterfly kitten puppy
    football baseball basketball soccer hockey liverpool chelsea arsenal barcelona realmadrid juventus yankees cowboys
    superman batman spiderman ironman starwars pokemon naruto minecraft fortnite matrix ninja samurai warrior
    sunshine princess angel flower summer winter spring autumn freedom whatever nothing computer internet server
    michael jordan jennifer jessica daniel charlie thomas robert andrew joshua matthew ashley nicole hunter harley
    samsung google apple facebook linkedin twitter microsoft windows oracle mysql postgres redis docker kubernetes
    monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december
    company office database production prod staging temp qwerty qwe asd zxc azerty abc xyz
    zaq12wsx cde3 vfr4 q1w2e3r4t5 1q2w3e4r 1qaz2wsx 1qaz 2wsx 3edc 4rfv zaq1 xsw2 a1b2c3d4 a1b2c3 q1w2e3
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variations_of_common_words_are_refused_and_unrelated_words_are_not() {
        let check = |password: &str, easy: bool| {
            assert_eq!(is_easily_guessed(password, "annabel"), easy, "{password}")
        };
        for easy in [
            "aaaaaaaaaaaa",
            "1234567890",
            "0123456789",
            "0987654321",
            "9876543210",
            "qwertyuiop",
            "Qwertyuiop1",
            "asdfghjkl;'",
            "1q2w3e4r5t",
            "1qaz2wsx3edc",
            "zaq12wsxcde3",
            "q1w2e3r4t5",
            "qazwsxedc123",
            "abcdefghij",
            "abc123abc123",
            "password12",
            "Password123!",
            "P@ssw0rd2026",
            "passwordpassword",
            "my-password-1",
            "administrator",
            "Admin@123456",
            "adminadmin",
            "Welcome2026!",
            "Winter2026!",
            "ILoveYou12345",
            "letmein12345",
            "changeme1234",
            "xxl-job-admin",
            "tickwright1",
            "Tickwright2026",
            "default_token",
            "annabel2026",
            "Annabel12345",
            "superman2000",
            "football1234",
            "1111122222",
            "19841984198",
        ] {
            check(easy, true);
        }
        for good in [
            "correct horse battery",
            "another password",
            "ten-ten-10",
            "plum-otter-vista",
            "jw8#Kd0;qLm2",
            "the quick brown fox",
            "vjfkre3-hxw9",
            "31415926535897932384626",
            "咖啡和一本旧书和雨天的下午",
        ] {
            check(good, false);
        }
    }
}
