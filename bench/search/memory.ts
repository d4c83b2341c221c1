/** Compares a tree in our memory, in that of memfs, and on the host. */
import { Volume } from "memfs"
import { readdirSync, readFileSync } from "node:fs"
import * as JavaScript from "./javascript.ts"
import * as Ours from "./ours.ts"
import type { Peer, Question } from "./peer.ts"

const loaded = (root: string): Volume => {
  const volume = new Volume()
  const visit = (directory: string, into: string): void => {
    volume.mkdirSync(into, { recursive: true })
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const [from, to] = [`${directory}/${entry.name}`, `${into}/${entry.name}`]
      if (entry.isDirectory()) visit(from, to)
      else if (entry.isFile()) volume.writeFileSync(to, readFileSync(from))
    }
  }
  visit(root, "/tree")
  return volume
}

const renamed = (peers: ReadonlyArray<Peer>, id: string, where: string): Peer => {
  const stream = peers.at(-1)!
  return { ...stream, id, name: `${stream.name}, ${where}` }
}

/** Loads a peer's tree at its first question, so that a measurement of its memory includes no other tree. */
const lazily = ({ id, name }: Pick<Peer, "id" | "name">, make: () => Promise<Peer>): Peer => {
  let made: Promise<Peer> | undefined
  const peer = () => (made ??= make())
  return { id, name, run: async () => (await peer()).run(), answer: async () => (await peer()).answer() }
}

export const open = async (root: string, question: Question) => {
  const opened: Array<Ours.Ours> = []
  const ours = (make: (root: string) => Promise<Ours.Ours>, id: string, where: string) =>
    lazily({ id, name: `fs.grepStream, counted, ${where}` }, async () => {
      const self = await make(root)
      opened.push(self)
      return renamed(Ours.grep(self, question), id, where)
    })
  const name = `readFileSync of ${JavaScript.named("memfs")}, split, test`
  const peers: ReadonlyArray<Peer> = [
    JavaScript.naivePeer("naive", "readFileSync of Node, split, test", JavaScript.nodeFs, root, question),
    ours(Ours.inMemory, "ours-memory", "InMemory"),
    ours(Ours.onHost, "ours-host", "PosixHost"),
    lazily({ id: "memfs", name }, async () =>
      JavaScript.naivePeer("memfs", name, loaded(root) as unknown as JavaScript.Readable, "/tree", question)
    )
  ]
  return { peers, close: async () => void (await Promise.all(opened.map(({ close }) => close()))) }
}
