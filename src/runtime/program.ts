/**
 * Builds the program of a worker from the sources of the functions that it runs.
 *
 * The build of the package replaces this module by the finished text, because a bundler may rename or wrap the
 * functions and break their sources.
 */
import { acrossLines } from "./acrossLines.ts"
import { code, makePlain, makeSimd } from "./kernel.ts"
import { makeLineFinder } from "./lineFinder.ts"
import { makeLister } from "./lister.ts"
import { scan } from "./scan.ts"
import { makeSearcher } from "./searcher.ts"
import { progress, serve } from "./serve.ts"

export const program = (): string => `
const __name = (target) => target;
const fs = require("node:fs");
const { isAscii, isUtf8 } = require("node:buffer");
const { parentPort: port, workerData: shared } = require("node:worker_threads");
const scan = ${scan.toString()};
const acrossLines = ${acrossLines.toString()};
const makeLineFinder = ${makeLineFinder.toString()};
const kernel = (${makeSimd.toString()})(${JSON.stringify(code)}) ?? (${makePlain.toString()})();
const searcher = (${makeSearcher.toString()})({
  fs, isAscii, isUtf8, kernel, scan, acrossLines, makeLineFinder, now: () => performance.now()
});
const list = (${makeLister.toString()})(fs);
(${serve.toString()})({ port, shared, at: ${JSON.stringify(progress)}, list, searcher });
`
