import { describe } from "@effect/vitest"
import { suite } from "../../../src/testing/index.ts"
import { filesystem } from "./laws.ts"
import { dash, missing, shared } from "./shells.ts"

const lacks = missing(dash)
if (lacks === undefined) suite("a shell with GNU's tools", filesystem(shared(dash)))
else describe.skip(lacks)
