import type { Host } from "../api/types";
import { State } from "./State";

/** Whether another host is there, and whether all is well with it. */
export function HostState({ of }: { of: Host }) {
  if (!of.reachable) return <State tone="critical">unreachable</State>;
  return of.failed ? <State tone="warning">{of.failed} failed</State> : <State tone="ok">reachable</State>;
}
