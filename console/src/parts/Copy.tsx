import { useState } from "preact/hooks";

/** Copies a text, and says so. */
export function Copy({
  text,
  what,
  children = "Copy",
}: {
  text: string | (() => string);
  what: string;
  children?: string;
}) {
  const [done, setDone] = useState<"" | "Copied" | "Not copied">("");
  const copy = async () => {
    const copied = await toClipboard(typeof text === "string" ? text : text());
    setDone(copied ? "Copied" : "Not copied");
    setTimeout(() => setDone(""), 1500);
  };
  return (
    <button type="button" class="quiet small" onClick={() => void copy()} aria-label={`${children} ${what}`}>
      <span role="status">{done || children}</span>
    </button>
  );
}

async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers refuse the clipboard to pages without TLS that are not on this machine; selecting is then the way.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}
