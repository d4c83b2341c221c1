import * as Layer from "effect/Layer"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"
import { suite } from "../../src/testing/index.ts"
import { runs } from "../runs.ts"

const layer = Layer.provide(Repository.layer({ workspace: "laws" }), Stores.layerMemory)

suite("Repository over memory", layer, { programs: runs(60) })
