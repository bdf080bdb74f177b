//! Reference points: what the machine allows without a storage engine.
//!
//! They stand beside the engines in a run to show what is not the engines' doing: [`null`] the
//! cost of the harness itself, [`memory`] an ordered map without any disk, [`raw_append`] the bytes
//! written and nothing else.

pub mod memory;
pub mod null;
pub mod raw_append;

use crate::registry::{Kind, Registration};

/// The registration of [`null::Null`].
pub(crate) const NULL: Registration = Registration {
    name: null::NAME,
    kind: Kind::Reference,
    summary: "takes every call and keeps nothing: the cost of the harness",
    available: || Ok(()),
    persistent: false,
    durability: |_| Some(STORES_NOTHING),
    most_key_bytes: None,
    recognizes: |_| false,
    open: |directory, options| Ok(Box::new(null::Null::open(directory, options)?)),
};

/// The registration of [`memory::Memory`].
pub(crate) const MEMORY: Registration = Registration {
    name: memory::NAME,
    kind: Kind::Reference,
    summary: "an ordered map in memory, never written to disk",
    available: || Ok(()),
    persistent: false,
    durability: |_| Some(STORES_NOTHING),
    most_key_bytes: None,
    recognizes: |_| false,
    open: |directory, options| Ok(Box::new(memory::Memory::open(directory, options)?)),
};

/// The registration of [`raw_append::RawAppend`].
pub(crate) const RAW_APPEND: Registration = Registration {
    name: raw_append::NAME,
    kind: Kind::Reference,
    summary: "each record appended to one file with one plain write call",
    available: || Ok(()),
    persistent: true,
    durability: |level| Some(raw_append::durability(level)),
    most_key_bytes: None,
    recognizes: raw_append::recognizes,
    open: |directory, options| Ok(Box::new(raw_append::RawAppend::open(directory, options)?)),
};

/// The reference points without a disk run at every level, because what they show does not depend
/// on it; [`Capabilities::persistent`](crate::Capabilities::persistent) tells that they keep none.
const STORES_NOTHING: &str = "none at any level: nothing outlives the process";
