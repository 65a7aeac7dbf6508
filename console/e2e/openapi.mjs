// Fetches the API's description from a service that is started for it, and validates it: openapi.mjs VSL FILE. Types are made from it.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConfig, lintFromString } from "@redocly/openapi-core";

/** What OpenAPI 3.1 asks of a description, and what programs made from it rely on. */
const RULES = {
  struct: "error",
  "no-unresolved-refs": "error",
  "no-identical-paths": "error",
  "operation-operationId-unique": "error",
  "path-parameters-defined": "error",
};

const [vsl, file] = process.argv.slice(2);
if (!vsl || !file) {
  process.stderr.write("openapi.mjs: say the built vsl, and the file to write\n");
  process.exit(2);
}

const directory = mkdtempSync(join(tmpdir(), "openapi-"));
const env = { ...process.env, OPENVSL_RUNTIME_DIR: directory, OPENVSL_STATE_DIR: join(directory, "state") };
const service = spawn(vsl, ["up", "--foreground"], { env, stdio: ["ignore", "ignore", "inherit"] });
const ended = new Promise((resolve) => service.once("exit", resolve));

const ask = () =>
  new Promise((resolve, reject) => {
    const request = get(
      { socketPath: join(directory, "api.sock"), path: "/api/v1/openapi.json" },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part) => {
          text += part;
        });
        response.on("end", () =>
          response.statusCode === 200
            ? resolve(text)
            : reject(new Error(`status ${response.statusCode}: ${text}`)),
        );
      },
    );
    request.on("error", reject);
  });

let problem = new Error("the service does not come up");
for (let tries = 0; tries < 300 && service.exitCode === null; tries += 1) {
  try {
    const text = `${JSON.stringify(JSON.parse(await ask()), null, 2)}\n`;
    writeFileSync(file, text);
    const found = await lintFromString({ source: text, config: await createConfig({ rules: RULES }) });
    const wrong = found.map(
      ({ ruleId, message, location }) => `${location[0]?.pointer}: ${message} (${ruleId})`,
    );
    problem = wrong.length > 0 ? new Error(`the description is not valid:\n${wrong.join("\n")}`) : null;
    break;
  } catch (error) {
    problem = error;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
service.kill("SIGTERM");
await ended;
rmSync(directory, { recursive: true, force: true });
if (problem !== null) {
  process.stderr.write(`openapi.mjs: ${problem.message}\n`);
  process.exit(1);
}
