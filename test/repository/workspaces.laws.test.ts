import * as Layer from "effect/Layer"
import * as Effect from "effect/Effect"
import * as Workspaces from "../../src/repository/Workspaces.ts"
import { suite } from "../../src/testing/index.ts"
import { runs } from "../runs.ts"
import { sharedRunner } from "./workspaces.ts"

let count = 0
const layer = Layer.provide(Layer.unwrap(Effect.sync(() => Workspaces.layer(`laws ${count++}`))), sharedRunner)

suite("a workspace of a cluster", layer, { programs: runs(200) })
