import { defineConfig } from "vitest/config";

// Each file has a browser, and each test a service of its own, which drives real devices.
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    maxWorkers: 2,
    minWorkers: 1,
    testTimeout: 600_000,
    hookTimeout: 60_000,
  },
});
