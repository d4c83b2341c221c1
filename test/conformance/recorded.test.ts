import * as Layer from "effect/Layer"
import { decorate } from "../../src/filesystem/Filesystem.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { suite } from "../../src/testing/index.ts"
import { inMemory, posixHost } from "./filesystems.ts"

const programs = process.env["FS_ALGEBRA_SOAK"] === "1" ? 2000 : 50

const recorded = (options?: Journal.RecordOptions) => decorate(Journal.record(options))

const withJournal = Layer.provide(Journal.layerMemory)

suite("recorded InMemory", withJournal(recorded()(inMemory)), { programs })
suite("InMemory recorded with what is looked at", withJournal(recorded({ reads: true })(inMemory)), { programs })
suite("InMemory recorded without what was there", withJournal(recorded({ previous: false })(inMemory)), { programs, laws: [] })
suite("recorded PosixHost", withJournal(recorded()(posixHost)), { programs })
