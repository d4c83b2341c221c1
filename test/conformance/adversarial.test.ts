import { adversarial, suite } from "../../src/testing/index.ts"
import { decorate } from "../../src/filesystem/Filesystem.ts"
import { caseless, combinators, decorated, programs } from "./filesystems.ts"

suite("adversarial InMemory", decorated(adversarial), { programs })
suite("adversarial InMemory where case does not distinguish", decorate(adversarial)(caseless), { programs })
for (const [name, layer] of combinators.filter(([name]) => name === "overlay")) {
  suite(`adversarial ${name}`, decorate(adversarial)(layer), { programs })
}
