/** Trees that several tables use, and patterns of messages that several tools share. */
import { directory, type Files, link } from "../../src/testing/Files.ts"

export const project: Files = {
  ".env": "KEY=1\n",
  ".gitignore": "build/\n*.log\n",
  "a b.txt": "with space\n",
  "build/out.js": "hello built\n",
  "debug.log": "hello log\n",
  "dir/.hidden": "hidden hello\n",
  "dir/inner/deep.ts": "export const deep = 1\n",
  "dir/x.ts": "import { deep } from './inner/deep'\nhello\n",
  empty: directory,
  "empty.txt": "",
  inside: link("dir/x.ts"),
  linked: link("dir"),
  nowhere: link("gone.txt"),
  out: link("../outside.txt"),
  "readme.md": "# Title\n\nhello\n",
  "é日.txt": "héllo\n"
}

export const utf16 = (text: string, order: "le" | "be"): Uint8Array => {
  const bytes = Buffer.from(`\ufeff${text}`, "utf16le")
  return new Uint8Array(order === "le" ? bytes : bytes.swap16())
}

export const seven = "a\nb\nc\nd\ne\nf\ng"

export const encodings: Files = {
  "bad.txt": new Uint8Array([0x61, 0x0a, 0xff, 0x62]),
  "bom.txt": "\ufeffone\ntwo\n",
  "crlf.txt": "one\r\ntwo\r\n",
  "cr.txt": "one\rstill one\n",
  "null.bin": new Uint8Array([0x61, 0x00, 0x62]),
  "odd.txt": "a\u2028b\u0085c\fd\n",
  "png.dat": new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00]),
  "seven.txt": seven,
  "u16be.txt": utf16("hé\nyo\n", "be"),
  "u16le.txt": utf16("hé\r\nyo", "le")
}

export const text = "one\ntwo\nthree\ntwo\n"

export const work: Files = {
  ".hidden": "h\n",
  "a.txt": text,
  "bin.dat": new Uint8Array([0xff, 0x00, 0xfe]),
  "d/b.txt": "b\n",
  "d/e/c.txt": "c\n",
  empty: directory,
  link: link("a.txt"),
  linked: link("d"),
  nowhere: link("d/new.txt"),
  out: link("../outside.txt"),
  "é 日.txt": "e\n"
}

export const escapes = /^"out" leads out of the root through a link, which is refused\. /
export const isRoot = /^The root cannot be removed, moved or replaced/
export const climbs = /^"\.\.\/x" is not a valid path: .*relative to the root/
