import { adversarial, laws, renameless, suite } from "../../src/testing/index.ts"
import { decorate } from "../../src/filesystem/Filesystem.ts"
import { caseless, combinators, decorated, programs } from "./filesystems.ts"

suite("adversarial InMemory", decorated(adversarial), { programs })
suite("adversarial InMemory that ignores case", decorate(adversarial)(caseless), { programs })
for (const [name, layer] of combinators.filter(([name]) => name === "overlay")) {
  suite(`adversarial ${name}`, decorate(adversarial)(layer), { programs })
}

const renames =
  /^(?:an open file keeps its content when the file is renamed|port rename (?:renames|moves a link|replaces|with replace moves))/

suite("InMemory whose rename always fails with EXDEV", decorated(renameless), {
  programs,
  laws: laws.filter(({ name }) => !renames.test(name))
})
