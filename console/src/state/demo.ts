import { post, remove, seg } from "../api/client";
import { act } from "./action";

/** The device that the demo of a first visit makes. */
export const DEMO = "demo";

/** Makes the demo device, with a load on it. */
export const startDemo = () => act("The demo runs", () => post("/demo"));
export const stopDemo = () => act("The demo is gone", () => remove("/demo"));

/** Puts the moderate load on a device, which overwrites what it holds, or takes it off. */
export function setLoad(device: string, on: boolean) {
  const path = `/devices/${seg(device)}/demo`;
  return on
    ? act(`The load on ${device} runs`, () => post(path, { confirm: device }))
    : act(`The load on ${device} has stopped`, () => remove(path));
}
