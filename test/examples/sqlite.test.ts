import { suite } from "../../src/testing/index.ts"
import * as Sqlite from "./sqlite.ts"

suite("SQLite", Sqlite.layer({ file: ":memory:" }))
