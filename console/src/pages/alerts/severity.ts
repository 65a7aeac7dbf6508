import type { Severity } from "../../api/types";

export const SEVERITIES: readonly Severity[] = ["information", "warning", "critical"];
