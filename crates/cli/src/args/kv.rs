//! The command line of `vsl kv`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::values;

/// `vsl kv`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    after_long_help = "\
A program keeps its keys in a store with the SDK. The device of a store holds nothing else. It may be detached, and is then named by its \
file, or attached.

Examples:
  vsl kv cache.vsl create --max-value 64KiB
  vsl kv cache.vsl put greeting 'good morning'
  vsl kv cache.vsl get greeting
  vsl kv cache.vsl list --pool sessions"
)]
pub struct Kv {
    /// The device that holds the store.
    pub device: String,
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// Which pool of a store.
#[derive(Debug, Args)]
pub struct InPool {
    /// The pool; without one, the pool that is always there.
    #[arg(long, value_name = "NAME")]
    pub pool: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Make a store on an empty device.
    Create {
        /// The longest value. The longer, the fewer keys the store has room for.
        #[arg(long, value_name = "SIZE", value_parser = values::size, default_value = "4KiB")]
        max_value: u64,
    },
    /// Print the value of a key, as it is.
    Get {
        /// The key.
        key: String,
        #[command(flatten)]
        pool: InPool,
    },
    /// Put a value behind a key, whether there is one or not. It is durable when the command ends.
    Put {
        /// The key.
        key: String,
        /// The value; standard input without one.
        #[arg(conflicts_with = "file")]
        value: Option<String>,
        /// A file that holds the value.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        #[command(flatten)]
        pool: InPool,
    },
    /// Delete a key.
    Delete {
        /// The key.
        key: String,
        #[command(flatten)]
        pool: InPool,
    },
    /// List the keys of a pool, and how long their values are.
    List {
        #[command(flatten)]
        pool: InPool,
    },
    /// List the pools.
    Pools,
    /// Give back the space of what expired and of deleted pools.
    Sweep,
}
