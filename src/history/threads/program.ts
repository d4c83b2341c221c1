/**
 * Builds the program of a thread from the sources of the functions that it runs.
 *
 * The build of the package replaces this module by the finished program text. A bundler may rename or wrap the functions,
 * and then their sources would not run.
 */
import { makeEncoder } from "../git/encoder.ts"
import { makeDeflater } from "../zip/deflater.ts"
import { directoryStates } from "./orders.ts"
import { work } from "./work.ts"

export const program = (): string => `
const __name = (target) => target;
const fs = require("node:fs");
const zlib = require("node:zlib");
const crypto = require("node:crypto");
const { parentPort: port } = require("node:worker_threads");
const encoder = (${makeEncoder.toString()})(zlib);
const deflated = (${makeDeflater.toString()})(zlib);
(${work.toString()})({ fs, zlib, crypto, encoder, deflated, port, is: ${JSON.stringify(directoryStates)} });
`
