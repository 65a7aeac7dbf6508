import { defineConfig } from "vitest/config";

export default defineConfig({
  // The console is served from the root of the service's own address; paths stay relative so that a proxy may put it elsewhere.
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    // One script: the whole console weighs less than a second request would cost.
    modulePreload: false,
    reportCompressedSize: false,
  },
  server: {
    fs: { allow: [".."] },
    // `npm run dev` beside a running service: VSL_CONSOLE names its address, such as http://127.0.0.1:8460.
    proxy: { "/api": { target: process.env.VSL_CONSOLE ?? "http://127.0.0.1:8460" } },
  },
  test: { include: ["test/**/*.test.ts"] },
});
