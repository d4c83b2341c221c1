/**
 * Runs one table, alone in its process, so no table profits from what another has warmed. Its result is the last line.
 * With a peer's name after `memory`, the result is the memory of that peer, which needs its own process.
 */
import * as Agree from "./agree.ts"
import { childrenPeakMiB } from "./clocks.ts"
import * as Corpus from "./corpus.ts"
import * as Measure from "./measure.ts"
import type { Peer } from "./peer.ts"
import { isOurs } from "./peer.ts"
import type { Result, Row } from "./result.ts"
import * as Tables from "./tables.ts"

const [id, files, tree, mode, ...ids] = process.argv.slice(2)
const table = Tables.all(tree === "real").find((table) => table.id === id)!
const root = Corpus.ensure(table.shape, Number(files))

const reason = (error: unknown): string => String(error instanceof Error ? error.message : error).slice(0, 300)

/** Compares each peer with the first one, and returns what is wrong with each. */
const examined = async (peers: ReadonlyArray<Peer>, left: ReadonlySet<string>) => {
  const reference = peers[0]!
  const expected = Agree.linesOutside(left, await reference.answer())
  const wrong = new Map<Peer, ReadonlyArray<string>>()
  for (const peer of peers.slice(1)) {
    try {
      const found = Agree.differences(reference, expected, peer, Agree.linesOutside(left, await peer.answer()))
      if (found.length > 0) wrong.set(peer, found)
    } catch (error) {
      wrong.set(peer, [`${peer.name} failed: ${reason(error)}`])
    }
  }
  return { results: expected.length, wrong }
}

const timed = async (): Promise<Result> => {
  const size = Corpus.warm(root)
  const { close, peers: all } = await table.open(root)
  const peers = all.filter(({ id }) => ids.length === 0 || ids.includes(id))
  const left = table.contents && table.shape === "real" ? Agree.notText(root) : new Set<string>()
  const { results, wrong } = await examined(peers, left)
  const right = peers.filter((peer) => !wrong.has(peer))
  Corpus.warm(root)
  const timings = await Measure.measure(right)
  const rows: Array<Row> = []
  for (const peer of peers) {
    const at = right.indexOf(peer)
    rows.push({
      id: peer.id,
      name: peer.lacks === undefined ? peer.name : `${peer.name}, without ${peer.lacks.what}`,
      wrong: wrong.get(peer) ?? [],
      ...(at < 0 ? {} : { timing: timings[at]! }),
      ...(at >= 0 && isOurs(peer) ? { delay: await Measure.delay(peer.run) } : {})
    })
  }
  const idle = await Measure.idle()
  await close()
  return { id: table.id, results, size, left: left.size, idle, rows }
}

/** Returns the MiB of this process beyond those before it opened anything, and all MiB of its search processes. */
const needed = async (): Promise<number> => {
  globalThis.gc?.()
  const before = process.memoryUsage().rss
  const { close, peers } = await table.open(root)
  const peer = peers.find(({ id }) => id === ids[0])!
  for (let i = 0; i < 3; i++) await peer.run()
  const high = process.resourceUsage().maxRSS * 1024
  const children = childrenPeakMiB()
  await close()
  return Math.max(0, high - before) / 1024 ** 2 + children
}

console.log(JSON.stringify(await (mode === "memory" ? needed() : timed())))
