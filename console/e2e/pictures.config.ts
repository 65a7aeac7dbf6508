import { defineConfig } from "vitest/config";

// npm run pictures: no test, but it needs the same service and browser.
export default defineConfig({
  test: { include: ["e2e/pictures.ts"], testTimeout: 600_000, hookTimeout: 60_000 },
});
