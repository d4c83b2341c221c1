import { describe } from "@effect/vitest"
import { suite } from "../../../src/testing/index.ts"
import { filesystem } from "./laws.ts"
import { busybox, missing, shared } from "./shells.ts"

const lacks = missing(busybox)
if (lacks === undefined) suite("a shell of busybox", filesystem(shared(busybox), { wholeSeconds: true }))
else describe.skip(lacks)
