import { defineConfig } from "vitest/config";

const daemon = process.env.PTYD_DEV ?? "http://127.0.0.1:7373";

export default defineConfig({
  // Relative addresses: the page works under any base path behind a proxy.
  base: "./",
  build: {
    target: "es2022",
    // No data: addresses, and no inline script that a strict policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The terminal's code is others' work; their licences go with the page.
    license: { fileName: "licenses.txt" },
    chunkSizeWarningLimit: 900,
    // dist/.gitkeep is committed so that the Go package builds without Node.
    emptyOutDir: false,
  },
  plugins: [cleanAssets()],
  server: {
    // The daemon checks where a request comes from: it must look like its own.
    proxy: { "/v1": { target: daemon, ws: true, changeOrigin: true, headers: { origin: daemon } } },
  },
  test: {
    include: ["test/**/*.test.ts"],
    environment: "node",
    // Machines of a build farm are slow at times; no test waits for real time.
    testTimeout: 30_000,
  },
});

// emptyOutDir would take .gitkeep along, so what an earlier build left is
// removed here: everything in dist but .gitkeep.
function cleanAssets() {
  return {
    name: "clean-dist",
    apply: "build" as const,
    async buildStart() {
      const { readdir, rm } = await import("node:fs/promises");
      const dist = new URL("./dist/", import.meta.url);
      for (const name of await readdir(dist).catch(() => [] as string[])) {
        if (name !== ".gitkeep") await rm(new URL(name, dist), { recursive: true });
      }
    },
  };
}
