//! Pages made from runs and from traces.

mod pages;
mod traces;
