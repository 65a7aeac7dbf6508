import { defineConfig } from "vitest/config";

// Each test has a service and a browser of its own, and drives real devices: one at a time.
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
});
