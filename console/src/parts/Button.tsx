import type { ComponentChildren } from "preact";
import type { Role } from "../api/types";
import { may } from "../state/link";

interface Props {
  type?: "button" | "submit";
  class?: string;
  title?: string;
  disabled?: boolean;
  /** The role that it takes. Others see it, and cannot use it. */
  needs?: Role;
  /** What it is done to, read aloud only: buttons of one list look alike. */
  of?: string;
  onClick?: () => void;
  children: ComponentChildren;
}

/** Something that can be done, by those who may. */
export function Button({ type = "button", disabled = false, needs, of, children, ...rest }: Props) {
  return (
    <button type={type} disabled={disabled || (needs !== undefined && !may(needs))} {...rest}>
      {children}
      {of && <span class="spoken"> {of}</span>}
    </button>
  );
}
