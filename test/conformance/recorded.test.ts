import * as Layer from "effect/Layer"
import { decorate } from "../../src/filesystem/Filesystem.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { suite } from "../../src/testing/index.ts"
import { inMemory, posixHost } from "./filesystems.ts"

const soaks = process.env["FS_ALGEBRA_SOAK"] === "1"
const programs = soaks ? 2000 : 50

/** Every law once over memory and once over a disk; what differs by an option only in what is written down meets programs alone. */
const laws = soaks ? undefined : []

const recorded = (options?: Journal.RecordOptions) => decorate(Journal.record(options))

const withJournal = Layer.provide(Journal.layerMemory)

suite("recorded InMemory", withJournal(recorded()(inMemory)), { programs })
suite("InMemory recorded with what is looked at", withJournal(recorded({ reads: true })(inMemory)), { programs, laws })
suite("InMemory recorded without what was there", withJournal(recorded({ previous: false })(inMemory)), { programs, laws })
suite("recorded PosixHost", withJournal(recorded()(posixHost)), { programs })
