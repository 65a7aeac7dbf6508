import type { FormHTMLAttributes } from "preact";

type Props = Omit<FormHTMLAttributes, "onSubmit"> & { onSubmit: () => void };

/** A form that the page answers itself. */
export function Form({ onSubmit, ...rest }: Props) {
  return (
    <form
      {...rest}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    />
  );
}
