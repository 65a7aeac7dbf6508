/** Something of a list that has a name: a protocol, a workload, a data sheet. */
export type Named = string | { name: string; title?: string; meaning?: string; what?: string };

export const nameOf = (one: Named) => (typeof one === "string" ? one : one.name);
export const aboutOf = (one: Named) =>
  typeof one === "string" ? "" : (one.title ?? one.meaning ?? one.what ?? "");
