//! Rules about apps that all APIs share.

use crate::outbound::{Address, Outbound};
use crate::request_error::RequestError;

/// Rejects a name that is not safe in a URL, a file name and a configuration.
pub fn check_name(name: &str) -> Result<(), RequestError> {
    let is_letter = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let length = name.chars().count();
    if (NAME_MIN..=NAME_MAX).contains(&length) && name.chars().all(is_letter) {
        return Ok(());
    }
    let why = format!("must have {NAME_MIN} to {NAME_MAX} letters, digits, dots, dashes or underscores");
    Err(RequestError::field("app", why))
}

/// Rejects addresses that must not be called.
pub async fn check_addresses(outbound: &Outbound, addresses: &[String]) -> Result<(), RequestError> {
    let wrong = |why: String| RequestError::field("addressing.addresses", why);
    if addresses.len() > ADDRESSES_MAX {
        return Err(wrong(format!("must have at most {ADDRESSES_MAX} addresses")));
    }
    for written in addresses {
        if written.trim().is_empty() || written.contains(',') {
            return Err(wrong("must not contain an empty address".into()));
        }
        let address = Address::parse(written).map_err(|error| wrong(error.to_string()))?;
        outbound.vet(&address).await.map_err(|error| wrong(error.to_string()))?;
    }
    Ok(())
}

/// XXL-JOB's limits.
const NAME_MIN: usize = 4;
const NAME_MAX: usize = 64;

/// Same as the maximum number of shards of one fire.
const ADDRESSES_MAX: usize = 1_000;
