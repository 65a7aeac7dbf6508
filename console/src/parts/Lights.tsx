interface Props {
  attached: boolean;
  writing: boolean;
  reading: boolean;
  /** The location beacon lights all three, as on the card. */
  beacon: boolean;
}

/** The three lights of a card's bracket: writes, reads, attached. */
export function Lights({ attached, writing, reading, beacon }: Props) {
  const lit = (on: boolean) => (on || beacon ? "lit" : "");
  const words = beacon
    ? "beacon: all lights lit"
    : [attached ? "attached" : "not attached", writing && "write activity", reading && "read activity"]
        .filter(Boolean)
        .join(", ");
  return (
    <span class="lights" role="img" aria-label={`Lights: ${words}`} title={words}>
      <i class={lit(writing)} />
      <i class={lit(reading)} />
      <i class={lit(attached)} />
    </span>
  );
}
