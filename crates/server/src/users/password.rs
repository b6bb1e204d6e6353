//! Passwords: hashing, verification, generation.

use std::time::Duration;

use argon2::password_hash::{Output, ParamsString, PasswordHash, PasswordVerifier, SaltString};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use ring::digest::{SHA256, digest};
use tokio::sync::Semaphore;

use super::common;
use crate::executors::random;
use crate::request_error::RequestError;
use protocol::v1::ProblemCode;

/// Hashes and verifies passwords, few at a time: each hash takes 19 MiB and about 20 ms of CPU, on purpose.
pub struct Passwords {
    strangers: Semaphore,
    known: Semaphore,
}

/// Queue for password verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Devices and addresses from which the account was never signed in to.
    Strangers,
    /// All others.
    Known,
}

impl Passwords {
    /// Creates the verifier with all slots free.
    pub fn new() -> Passwords {
        Passwords { strangers: Semaphore::new(STRANGERS_AT_ONCE), known: Semaphore::new(KNOWN_AT_ONCE) }
    }

    /// Hashes a password for storage: argon2id with a random salt.
    pub async fn hash(&self, password: &str) -> Result<String, RequestError> {
        let password = password.to_owned();
        self.aside(Queue::Known, move || {
            let salt = random::<16>();
            let output = output(password.as_bytes(), &salt);
            let salt = SaltString::encode_b64(&salt).expect("16 bytes are a salt");
            let params = ParamsString::try_from(argon2().params()).expect("numbers can be written");
            let hash = PasswordHash {
                algorithm: Algorithm::Argon2id.ident(),
                version: Some(Version::V0x13.into()),
                params,
                salt: Some(salt.as_salt()),
                hash: Some(output),
            };
            hash.to_string()
        })
        .await
    }

    /// Whether a password matches a hash. Without a hash the result is false, and takes as long to compute.
    pub async fn verify(
        &self,
        password: &str,
        hash: Option<&str>,
        queue: Queue,
    ) -> Result<bool, RequestError> {
        let (password, is_real) = (password.to_owned(), hash.is_some());
        let hash = hash.unwrap_or(NOBODYS).to_owned();
        let fits = self.aside(queue, move || match PasswordHash::new(&hash) {
            Ok(hash) => fits(password.as_bytes(), &hash),
            Err(error) => {
                tracing::error!(%error, "failed to read a stored password hash; its user needs a new password");
                false
            }
        });
        Ok(fits.await? && is_real)
    }

    async fn aside<T: Send + 'static>(
        &self,
        queue: Queue,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RequestError> {
        let slots = match queue {
            Queue::Strangers => &self.strangers,
            Queue::Known => &self.known,
        };
        let busy = || {
            let why = "too many users sign in at once; retry in a few seconds";
            RequestError::new(ProblemCode::TooManyRequests, why).retry_after(WAIT_MAX)
        };
        let slot = tokio::time::timeout(WAIT_MAX, slots.acquire()).await.map_err(|_| busy())?;
        let _place = slot.map_err(|_| busy())?;
        tokio::task::spawn_blocking(work).await.map_err(|_| busy())
    }
}

/// Whether a password matches this hash, in constant time.
fn fits(password: &[u8], hash: &PasswordHash<'_>) -> bool {
    let is_ours = hash.algorithm == Algorithm::Argon2id.ident()
        && ParamsString::try_from(argon2().params()).is_ok_and(|params| params == hash.params);
    let mut bytes = [0; 64];
    let salt = hash.salt.and_then(|salt| salt.decode_b64(&mut bytes).ok());
    match (salt, hash.hash) {
        (Some(salt), Some(expected)) if is_ours => output(password, salt) == expected,
        // A hash that an earlier release made with other parameters.
        _ => argon2().verify_password(password, hash).is_ok(),
    }
}

fn output(password: &[u8], salt: &[u8]) -> Output {
    let argon2 = argon2();
    let mut room: Vec<Block> = Vec::with_capacity(GIVEN_BACK / size_of::<Block>());
    room.resize(argon2.params().block_count(), Block::default());
    let mut output = [0; Params::DEFAULT_OUTPUT_LEN];
    let done = argon2.hash_password_into_with_memory(password, salt, &mut output, &mut room);
    done.expect("passwords are shorter than the algorithm's limit");
    Output::new(&output).expect("32 bytes are an output")
}

/// Blocks over 32 MiB are returned to the system when freed; the allocator may keep smaller ones, once per thread
/// that ever needed one. Only the used part of the allocation takes memory.
const GIVEN_BACK: usize = 33 * 1024 * 1024;

fn argon2() -> Argon2<'static> {
    let params =
        Params::new(MEMORY_KIB, PASSES, LANES, None).expect("these are within the algorithm's limits");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Whether a password matches XXL-JOB's hash: MD5 up to 3.1, SHA-256 since, without salt.
pub fn fits_legacy(password: &str, hash: &str) -> bool {
    let hashed = match hash.len() {
        32 => format!("{:x}", md5::compute(password)),
        64 => {
            digest(&SHA256, password.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
        }
        _ => return false,
    };
    hashed.eq_ignore_ascii_case(hash)
}

/// Rejects a new password that is too short, too long or easily guessed.
pub fn check_new(password: &str, user: &str) -> Result<(), RequestError> {
    let length = password.chars().count();
    match () {
        () if length < LENGTH_MIN => Err(RequestError::field(
            "password",
            format!("a password must have at least {LENGTH_MIN} characters"),
        )),
        () if length > LENGTH_MAX => Err(RequestError::field(
            "password",
            format!("a password must have at most {LENGTH_MAX} characters"),
        )),
        () if common::is_easily_guessed(password, user) => Err(RequestError::field(
            "password",
            "this password is easy to guess; use for example several unrelated words",
        )),
        () => Ok(()),
    }
}

/// Generates a password for the first administrator: 120 random bits, in letters that are not easily confused.
pub fn generate() -> String {
    let letters = random::<24>().map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    let groups: Vec<String> = letters.chunks(4).map(|group| group.iter().collect()).collect();
    groups.join("-")
}

/// 32 letters, so that each is 5 bits.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

/// Recommended argon2id parameters for interactive logins: an attacker needs as much for each guess.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// At most 38 MiB, however many strangers try to sign in; and scheduling keeps enough CPU time.
const STRANGERS_AT_ONCE: usize = 2;

/// Slot that strangers cannot occupy, for users who have signed in before.
const KNOWN_AT_ONCE: usize = 1;

/// How long an attempt waits for a slot.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Hash that no password matches, verified if the user does not exist.
const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

const LENGTH_MIN: usize = 10;
const LENGTH_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hash_fits_its_password_and_no_two_are_alike() {
        let passwords = Passwords::new();
        let one = passwords.hash("correct horse").await.unwrap();
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert_ne!(one, passwords.hash("correct horse").await.unwrap());
        assert!(passwords.verify("correct horse", Some(&one), Queue::Known).await.unwrap());
        assert!(!passwords.verify("correct horsf", Some(&one), Queue::Strangers).await.unwrap());
        assert!(!passwords.verify("", None, Queue::Strangers).await.unwrap());
        assert!(!passwords.verify("correct horse", Some("not a hash"), Queue::Known).await.unwrap());
    }

    #[test]
    fn xxl_jobs_own_hashes_are_known() {
        let sha = "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92";
        let check = |password: &str, hash: &str, fits: bool| assert_eq!(fits_legacy(password, hash), fits);
        check("123456", "e10adc3949ba59abbe56e057f20f883e", true);
        check("123456", sha, true);
        check("123457", sha, false);
        check("", "", false);
        check("!", "!", false);
    }

    #[test]
    fn new_passwords_are_long_enough_and_not_the_first_to_be_tried() {
        let check =
            |password: &str, good: bool| assert_eq!(check_new(password, "ann").is_ok(), good, "{password}");
        check("seven77", false);
        check("nine-9999", false);
        check("ten-ten-10", true);
        check(&"long".repeat(32), true);
        check(&"long".repeat(33), false);
        check("aaaaaaaaaaaa", false);
        check("1234567890", false);
        check("Password123!", false);
    }

    #[test]
    fn generated_passwords_are_long_and_never_the_same() {
        let password = generate();
        assert_eq!(password.len(), 24 + 5);
        assert!(check_new(&password, "admin").is_ok());
        assert_ne!(password, generate());
    }
}
