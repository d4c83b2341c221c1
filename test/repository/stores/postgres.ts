/** A Postgres server for tests. The server and its files are removed after the tests, even if the tests are killed. */
import { afterAll, describe } from "@effect/vitest"
import { inMemory } from "../../scratch.ts"
import { lacking, type Server, startProcess } from "./postgresProcess.ts"

/** Runs `describe` if a server can run; fails if no test may be skipped. */
export const describePostgres = (name: string, body: () => void): void => {
  if (lacking === undefined) return void describe(name, body)
  if (process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error(lacking)
  describe.skip(`${name} (${lacking})`)
}

/** Starts a server that ends after the tests of the file. */
export const startServer = async (): Promise<Server> => {
  const started = await startProcess(inMemory())
  afterAll(started.crash)
  return started
}

let shared: Promise<Server> | undefined
/** Returns the server that the tests of a file share. */
export const server = (): Promise<Server> => (shared ??= startServer())
