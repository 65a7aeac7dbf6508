//! The page around the figures.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use super::figure::{figure, table_markup};
use super::payload::payload;
use super::policy::policy;
use super::{Block, Page, Section};
use crate::theme::{self, STEPS};

const PAGE_STYLE: &str = include_str!("../../assets/page.css");
const SCRIPT: &str = include_str!("../../assets/page.js");
const UPLOT: &str = include_str!("../../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("../../assets/uPlot.LICENSE");

/// The whole file.
pub(super) fn page(page: &Page) -> Markup {
    let chart_style = theme::rules();
    let style = format!("{}{}{PAGE_STYLE}{UPLOT_STYLE}", theme::switching(":root"), shades());
    let uplot = uplot();
    let allowed = policy(&[&chart_style, &style], &[&uplot, SCRIPT]);
    let charts: Value = page.charts().map(payload).collect();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(allowed);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(page.made_by);
                title { (page.title) }
                style id="chart-style" { (PreEscaped(&chart_style)) }
                style { (PreEscaped(&style)) }
            }
            body {
                header id="top" {
                    h1 { (page.title) }
                    @if !page.summary.is_empty() { p .summary { (page.summary) } }
                    (caveat(page))
                    (facts(&page.facts))
                }
                div .columns {
                    nav aria-label="Contents" {
                        details open {
                            summary { "Contents" }
                            ol { @for section in &page.sections { (entry(section)) } }
                        }
                    }
                    main { @for section in &page.sections { (part(section)) } }
                }
                footer { p { (page.made_by) } }
                script type="application/json" id="charts" { (PreEscaped(embedded(&charts))) }
                script { (PreEscaped(&uplot)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

/// The library with its license, which wants to go with every copy. Its own first comment is an address only.
fn uplot() -> String {
    let code = UPLOT.split_once("*/").map_or(UPLOT, |(_, code)| code).trim_start();
    format!("/* uPlot 1.6.32\n{}\n*/\n{code}", UPLOT_LICENSE.trim_end())
}

/// JSON that cannot end the element it stands in.
fn embedded(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

/// Shading of table cells.
fn shades() -> String {
    (0..STEPS).map(|step| format!("td.sh{step}{{background:var(--q{step});color:var(--t{step})}}\n")).collect()
}

fn caveat(page: &Page) -> Markup {
    html! { @if !page.caveat.is_empty() { p .caveat { (page.caveat) } } }
}

fn facts(facts: &[(String, String)]) -> Markup {
    html! {
        @if !facts.is_empty() {
            dl .facts { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } }
        }
    }
}

fn entry(section: &Section) -> Markup {
    let charts = section.blocks.iter().filter(|block| matches!(block, Block::Chart(_))).count();
    html! {
        li {
            a href={ "#" (section.id) } { (section.title) }
            @if charts > 1 { " " span .count { (charts) " charts" } }
        }
    }
}

/// Whether the context of a chart is to be said: the facts at the head of a section say it for all its charts. Where there are none,
/// the first chart of a device says it, which is its first line.
fn is_news(section: &Section, at: usize) -> bool {
    let context = |block: &Block| match block {
        Block::Chart(chart) => Some(chart.context.first().cloned()),
        _ => None,
    };
    let before = section.blocks[..at].iter().rev().find_map(context);
    section.facts.is_empty() && before != context(&section.blocks[at])
}

fn part(section: &Section) -> Markup {
    html! {
        section id=(section.id) aria-labelledby={ (section.id) "-h" } {
            h2 id={ (section.id) "-h" } { (section.title) }
            (facts(&section.facts))
            div .blocks {
                @for (at, block) in section.blocks.iter().enumerate() {
                    @match block {
                        Block::Heading(text) => h3 { (text) },
                        Block::Text(text) => p .whole { (text) },
                        Block::Verdict(good, text) => p .whole .verdict .good[*good] { strong { (if *good { "✓ " } else { "! " }) } (text) },
                        Block::Chart(chart) => (figure(chart, is_news(section, at))),
                        Block::Table(table) => div .whole { (table_markup(table)) },
                    }
                }
            }
            p .back { a href="#top" { "Back to the top" } }
        }
    }
}
