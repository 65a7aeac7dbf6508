// The shapes of the API, by short names. They stand in `schema.d.ts`, which is made from the service's own description (npm run types).

import type { components } from "./schema";

type Schemas = components["schemas"];

export type Account = Schemas["AccountView"];
export type Alert = Schemas["Alert"];
export type Alerts = Schemas["Alerts"];
export type Audit = Schemas["Audit"];
export type AuditEntry = Schemas["AuditEntry"];
export type CachedVolume = Schemas["CacheView"];
export type Certificate = Schemas["Certificate"];
export type Choice = Schemas["PredictionChoice"];
export type CloneOf = Schemas["CloneView"];
export type Comparison = Schemas["Comparison"];
export type CreateRequest = Partial<Schemas["CreateRequest"]> & Pick<Schemas["CreateRequest"], "paths">;
export type Demo = Schemas["Demo"];
export type Drills = Schemas["Drills"];
export type EndedRecording = Schemas["EndedRecording"];
export type EraseBin = Schemas["EraseBin"];
export type EraseLevel = Schemas["Level"];
export type EraseRequest = Schemas["EraseRequest"];
export type Field = Schemas["FieldView"];
export type FleetDevice = Schemas["FleetDevice"];
export type FleetMove = Schemas["FleetMove"];
export type FormatRequest = Schemas["FormatRequest"];
export type Health = Schemas["Health"];
export type Histories = Schemas["Histories"];
export type History = Schemas["HistoryView"];
export type Host = Schemas["HostView"];
export type Job = Schemas["Job"];
export type KeyRequest = Schemas["KeyRequest"];
export type LabRun = Schemas["LabRun"];
export type Lifetime = Schemas["Lifetime"];
export type MadeKey = Schemas["MadeKey"];
export type Metric = Schemas["MetricView"];
export type Named = Schemas["Named"];
// What may be left out of a request is there in every answer.
export type Notifications = Required<Schemas["Notifications"]>;
export type Opener = Schemas["Opener"];
export type Prediction = Schemas["Prediction"];
export type RecordStatus = Schemas["RecordStatus"];
export type RemoveKeyRequest = Schemas["RemoveKeyRequest"];
export type Role = Schemas["Role"];
export type Rule = Required<Schemas["Rule"]>;
export type Sample = Schemas["Sample"];
export type Schedule = Schemas["ScheduleView"];
export type Security = Schemas["Security"];
export type Sent = Schemas["Sent"];
export type Session = Schemas["Session"];
export type Severity = Schemas["Severity"];
export type Smtp = Schemas["Smtp"];
export type Snapshot = Schemas["SnapshotView"];
export type Snapshots = Schemas["Snapshots"];
export type Values = Schemas["DeviceSample"]["values"];
export type Version = Schemas["Version"];
export type Webhook = Schemas["Webhook"];

/** On the stream an event says whose it is. */
export type Event = Schemas["Event"] & { device?: string };

// What the description leaves open, because it follows from tables or differs from job to job.

export interface Client {
  id: number;
  protocol: string;
  peer: string;
  tls: boolean;
  since: number;
  requests: number;
  read_bytes: number;
  written_bytes: number;
  in_flight: number;
  nvme?: {
    host: string;
    controller: number;
    queue: number;
    header_digest: boolean;
    data_digest: boolean;
  };
  last_error?: number;
  memory_bytes: number;
}
export type FieldValue = string | number | boolean | null | unknown[] | Record<string, unknown>;
/** A device: every field of the description, and what its lists hold. */
export type Device = Omit<
  Schemas["Device"],
  "clients" | "config" | "drills" | "key_slots" | "lost_dies" | "paths"
> & {
  path: string;
  vhost_socket?: string;
  health: string;
  clients?: Client[];
  config?: Record<string, string>;
  drills?: string[];
  key_slots?: string[];
  lost_dies?: number[];
  paths?: string[];
};
