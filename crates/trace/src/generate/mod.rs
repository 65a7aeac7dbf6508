//! Traces that are made up, by a stated recipe and a seed.

mod mail_server;

pub use mail_server::MailServer;
