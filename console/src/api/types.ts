// The shapes of the API, as docs/api.md has them.

export type Role = "viewer" | "operator" | "administrator";
export interface Session {
  name: string;
  role: Role;
  via: string;
}
export interface Version {
  version: string;
  api: number;
  pid: number;
}
export interface Health {
  ready: boolean;
  attached: number;
  failed: number;
  addresses: string[];
}
export interface Client {
  peer: string;
  tls: boolean;
  since: number;
  requests: number;
  read_bytes: number;
  written_bytes: number;
  in_flight: number;
}
export type FieldValue = string | number | boolean | null | unknown[] | Record<string, unknown>;
/** A device: the fields that the pages use by name, and all the others that `/fields` explains. */
export interface Device {
  name: string;
  path: string;
  state: string;
  health: string;
  uri?: string;
  tcp_uri?: string;
  label?: string;
  uuid?: string;
  profile?: string;
  read_only?: boolean;
  beacon?: boolean;
  drill_device?: boolean;
  drills?: string[];
  clients?: Client[];
  config?: Record<string, string>;
  emulation?: { scale: number; seed: number };
  encryption?: string;
  key_slots?: string[];
  paths?: string[];
  bytes?: number;
  advertised_bytes?: number;
  raw_bytes?: number;
  sector_bytes?: number;
  mapped_bytes?: number;
  over_provisioning_percent?: number;
  celsius?: number;
  lost_dies?: number[];
  rebuilding_die?: number;
  rebuild_percent?: number;
  scrub_percent?: number;
  parity_files?: number;
  files?: number;
  write_amplification?: number;
  [field: string]: FieldValue | undefined;
}
export interface Field {
  name: string;
  label: string;
  unit: string;
  brief: boolean;
  meaning: string;
  source: string;
}
export interface Event {
  device?: string;
  number: number;
  at_ms: number;
  event: string;
  what: string;
}
export interface EraseBin {
  /** Erases, at least and at most. */
  from: number;
  to: number;
  blocks: number;
}
export interface Lifetime {
  host_written_bytes: number;
  host_read_bytes: number;
  media_written_bytes: number;
  write_amplification?: number | null;
  since?: number | null;
  erases?: {
    total: number;
    min?: number | null;
    max?: number | null;
    average?: number | null;
    histogram?: EraseBin[] | null;
    source?: string | null;
  } | null;
  reserve_percent?: number | null;
  active_media_percent?: number | null;
  rated_written_bytes?: number | null;
  rated_left_percent?: number | null;
  written_per_day_bytes?: number | null;
  rate_over_s?: number | null;
  ends?: number | null;
  source?: string | null;
}
export interface Metric {
  name: string;
  of: string;
  label: string;
  unit: string;
  source: string;
  over_time: string;
  meaning: string;
}
export type Values = Record<string, number | boolean | null>;
export interface Sample {
  at_ms: number;
  service: Values;
  devices: Record<string, { state: string; health: string; values: Values }>;
}
export interface History {
  device: string;
  uuid?: string | null;
  resolution_s: number;
  from: number;
  to: number;
  at: number[];
  values: Record<string, (number | null)[]>;
}
export type Severity = "information" | "warning" | "critical";
export interface Alert {
  id: number;
  rule: string;
  device?: string | null;
  severity: Severity;
  what: string;
  value?: number | null;
  threshold?: number | null;
  raised_ms: number;
  cleared_ms?: number | null;
  acknowledged_ms?: number | null;
  acknowledged_by?: string | null;
  note?: string | null;
}
/** Answer of `GET /alerts` and `GET /alerts/history`. */
export interface Alerts {
  alerts: Alert[];
}
export interface Rule {
  name: string;
  meaning: string;
  metric: string;
  device?: string | null;
  comparison: string;
  threshold: number;
  clear?: number | null;
  for_s: number;
  severity: Severity;
  enabled: boolean;
  built_in: boolean;
}
export interface Smtp {
  host: string;
  port: number;
  security: string;
  user?: string | null;
  password?: string | null;
  from: string;
  to: string[];
}
export interface Webhook {
  url: string;
  secret?: string | null;
}
export interface Notifications {
  smtp?: Smtp | null;
  webhooks: Webhook[];
  least_severity: Severity;
}
/** What came of one way of sending. */
export interface Sent {
  to: string;
  error?: string | null;
}
/** Answer of `GET /history`. */
export interface Histories {
  file_bytes: number;
}
export interface Job {
  id: number;
  kind: string;
  device?: string | null;
  state: "running" | "done" | "failed" | "cancelled";
  progress?: number | null;
  what?: string | null;
  began_ms: number;
  ended_ms?: number | null;
  error?: string | null;
  result?: unknown;
}
export interface Choice {
  capacity: string;
  bytes: number;
  over_provisioning_percent: number;
  iops?: number | null;
  bytes_per_s?: number | null;
  p50_us?: number | null;
  p99_us?: number | null;
  p999_us?: number | null;
  write_amplification?: number | null;
  lifetime_written_bytes?: number | null;
  lifetime_days?: number | null;
}
export interface Prediction {
  workload: string;
  profile: string;
  scale: number;
  source: string;
  choices: Choice[];
}
export interface Host {
  name: string;
  address: string;
  reachable: boolean;
  error?: string | null;
  seen_ms?: number | null;
  version?: string | null;
  attached?: number | null;
  failed?: number | null;
  alerts?: number | null;
}
export interface AccessKey {
  id: string;
  note: string;
  created: number;
}
export interface Account {
  name: string;
  role: Role;
  password: boolean;
  keys: AccessKey[];
  created: number;
}
export interface AuditEntry {
  number: number;
  at_ms: number;
  who: string;
  role?: string;
  via?: string;
  peer: string;
  method: string;
  path: string;
  status: number;
  what: string;
}
/** Answer of `GET /audit`, the newest first. */
export interface Audit {
  entries: AuditEntry[];
}
export interface Drills {
  said: string;
  powered_off: boolean;
  drills: unknown[];
}
export interface RecordStatus {
  recording: boolean;
  path?: string;
  format?: string;
  written: number;
  dropped: number;
}
/** Answer of `GET /devices/{name}/demo`. */
export interface Demo {
  running: boolean;
  job?: Job | null;
}
/** Something of the lab that has a name: a protocol, a workload, a data sheet. */
export interface Named {
  name: string;
  description: string;
  /** Of a data sheet: `flash`, `bridged`, `disk` or `array`. */
  kind?: string | null;
}
export interface LabRun {
  name: string;
  protocol: string;
  made_ms: number;
  /** Its report can be read. */
  report: boolean;
}
