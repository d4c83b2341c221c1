/** Makes random tests repeatable, except in the soak. Seeds of properties come from effect's Random, which uses Math.random. */
const mulberry32 = (seed: number) => (): number => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
}

if (process.env["FS_ALGEBRA_SOAK"] !== "1") Math.random = mulberry32(20_261_122)
