import type { Metric, Rule } from "../api/types";
import { quantity, span } from "./quantity";

/** When a rule raises its alert and when that is over, in a sentence. */
export function sentence(rule: Rule, metrics: readonly Metric[]): string {
  const metric = metrics.find((known) => known.of === "device" && known.name === rule.metric);
  const label = metric?.label ?? rule.metric;
  const lasting = rule.for_s > 0 ? ` for ${span(rule.for_s)}` : "";
  const above = rule.comparison === "above";
  if (metric?.unit === "flag") return `${above ? label : `Not ${label.toLowerCase()}`}${lasting}`;
  const amount = (value: number) => quantity(metric?.unit ?? "count", value);
  if (above && rule.threshold === 1 && (metric?.unit ?? "count") === "count")
    return `Any ${label.toLowerCase()}${lasting}`;
  const clear = rule.clear ?? rule.threshold;
  const over = clear === rule.threshold ? "" : `, until it is at ${amount(clear)}`;
  return `${label} is at or ${above ? "above" : "below"} ${amount(rule.threshold)}${lasting}${over}`;
}
