/** Decides whether the key of a server is known: by its SHA-256 fingerprint, or by a known_hosts file of OpenSSH. */
import { crypto } from "../../runtime/node.ts"

/** Returns the fingerprint of a key as ssh-keygen prints it. */
export const fingerprintOf = (key: Uint8Array): string =>
  `SHA256:${crypto().createHash("sha256").update(key).digest("base64").replace(/=+$/, "")}`

export const isFingerprint = (text: string): boolean => /^SHA256:[A-Za-z0-9+/]{43}$/.test(text)

export interface KnownKey {
  readonly isRevoked: boolean
  /** The name of the key's algorithm, such as `ssh-ed25519`. */
  readonly type: string
  readonly key: string
}

export interface KnownHosts {
  /** The keys of this host. */
  readonly keys: ReadonlyArray<KnownKey>
  /** True if a line for this host names a certificate authority, which this library does not check. */
  readonly hasAuthority: boolean
}

/**
 * Tests a name against a pattern, in which `*` stands for any characters and `?` for one. The time is at most proportional to
 * the product of both lengths.
 */
const matches = (pattern: string, name: string): boolean => {
  let at = 0
  let star = -1
  let resume = 0
  let n = 0
  while (n < name.length) {
    if (pattern[at] === "*") {
      star = at++
      resume = n
    } else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === name[n])) {
      at++
      n++
    } else if (star >= 0) {
      at = star + 1
      n = ++resume
    } else return false
  }
  while (pattern[at] === "*") at++
  return at === pattern.length
}

const isHashOf = (hashed: string, name: string): boolean => {
  const [, salt, hash] = /^\|1\|([A-Za-z0-9+/=]+)\|([A-Za-z0-9+/=]+)$/.exec(hashed) ?? []
  if (salt === undefined || hash === undefined) return false
  return crypto().createHmac("sha1", Buffer.from(salt, "base64")).update(name).digest("base64") === hash
}

/** Tests whether the patterns of a line include the host. A negated pattern that matches excludes the host. */
const includes = (patterns: string, name: string): boolean => {
  if (patterns.startsWith("|")) return isHashOf(patterns, name)
  let isIncluded = false
  for (const pattern of patterns.toLowerCase().split(",")) {
    if (pattern.startsWith("!")) {
      if (matches(pattern.slice(1), name)) return false
    } else if (matches(pattern, name)) isIncluded = true
  }
  return isIncluded
}

/** Returns the name that a host has in a known_hosts file. */
const knownName = (host: string, port: number): string => (port === 22 ? host.toLowerCase() : `[${host.toLowerCase()}]:${port}`)

/** Finds the lines of a known_hosts file for a host. Ignores malformed lines, as OpenSSH does. */
export const parseKnownHosts = (text: string, host: string, port: number): KnownHosts => {
  const name = knownName(host, port)
  const keys: Array<KnownKey> = []
  let hasAuthority = false
  for (const line of text.split(/\r?\n/)) {
    const words = line.trim().split(/[ \t]+/)
    if (words[0] === "" || words[0]!.startsWith("#")) continue
    const marker = words[0]!.startsWith("@") ? words.shift()! : undefined
    const [patterns, type, key] = words
    if (patterns === undefined || type === undefined || key === undefined || !includes(patterns, name)) continue
    if (marker === "@cert-authority") hasAuthority = true
    else if (marker === undefined || marker === "@revoked") keys.push({ isRevoked: marker === "@revoked", type, key })
  }
  return { keys, hasAuthority }
}

/** The signature algorithms of each type of key, in order of preference. */
const algorithmsOfType: Readonly<Record<string, ReadonlyArray<string>>> = {
  "ssh-ed25519": ["ssh-ed25519"],
  "ecdsa-sha2-nistp256": ["ecdsa-sha2-nistp256"],
  "ecdsa-sha2-nistp384": ["ecdsa-sha2-nistp384"],
  "ecdsa-sha2-nistp521": ["ecdsa-sha2-nistp521"],
  "ssh-rsa": ["rsa-sha2-512", "rsa-sha2-256"]
}

/** Returns the algorithms to offer. The algorithms of the known keys come first, so that the server sends one of these keys. */
export const algorithmsFor = (keys: ReadonlyArray<KnownKey>): ReadonlyArray<string> => {
  const known = keys.filter(({ isRevoked }) => !isRevoked).map(({ type }) => type)
  const types = [...new Set([...known, ...Object.keys(algorithmsOfType)])]
  return types.flatMap((type) => algorithmsOfType[type] ?? [])
}

/** Returns why a key is refused, or `undefined` if it is known. */
export const refusal = (
  key: Uint8Array,
  host: string,
  port: number,
  known: { readonly fingerprints: ReadonlyArray<string> } | { readonly hosts: KnownHosts; readonly file: string }
): string | undefined => {
  const fingerprint = fingerprintOf(key)
  const name = knownName(host, port)
  const advice = "compare it with the server's administrator"
  if ("fingerprints" in known) {
    if (known.fingerprints.includes(fingerprint)) return undefined
    return known.fingerprints.length === 0
      ? `the host key of ${name} is not known; its fingerprint is ${fingerprint}; ${advice}, then give hostKeys: ["${fingerprint}"]`
      : `the host key of ${name} has the fingerprint ${fingerprint}, which is not in hostKeys; the key was changed, or another machine answers; ${advice}`
  }
  const encoded = Buffer.from(key).toString("base64")
  const { hasAuthority, keys } = known.hosts
  const same = keys.filter(({ key }) => key === encoded)
  if (same.some(({ isRevoked }) => isRevoked)) return `the host key ${fingerprint} of ${name} is revoked in ${known.file}`
  if (same.length > 0) return undefined
  if (keys.some(({ isRevoked }) => !isRevoked)) {
    return `the host key of ${name} has the fingerprint ${fingerprint}, which is not in ${known.file}; the key was changed, or another machine answers; ${advice}`
  }
  const authority = hasAuthority ? " (@cert-authority is not supported)" : ""
  return `${name} is not in ${known.file}${authority}; its host key has the fingerprint ${fingerprint}; ${advice}, then add it with ssh-keyscan or give hostKeys: ["${fingerprint}"]`
}
