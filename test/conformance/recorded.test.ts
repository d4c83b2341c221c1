import * as Layer from "effect/Layer"
import { decorate } from "../../src/filesystem/Filesystem.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { suite } from "../../src/testing/index.ts"
import { inMemory } from "./filesystems.ts"

const soaks = process.env["FS_ALGEBRA_SOAK"] === "1"
const programs = soaks ? 2000 : 50

/** With the soak every law runs on each recording. Otherwise, recordings with other options run only random programs. */
const laws = soaks ? undefined : []

const recorded = (options?: Journal.RecordOptions) => decorate(Journal.record(options))

const withJournal = Layer.provide(Journal.layerMemory)

suite("recorded InMemory", withJournal(recorded()(inMemory)), { programs })
suite("InMemory, recorded with reads", withJournal(recorded({ reads: true })(inMemory)), { programs, laws })
suite("InMemory, recorded without the previous content", withJournal(recorded({ previous: false })(inMemory)), {
  programs,
  laws
})
