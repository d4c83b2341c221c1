/**
 * Flags that users know from other tools. If the command behaves so anyway, the flag is dropped; if it has another name here,
 * it is replaced. This also holds in clusters of letters, so `-v` there never prints the version and `-h` never the help.
 */

/** The flags of other tools by command: `""` if the flag changes nothing, or the name of our flag. */
export const habits: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ls: { a: "", all: "", A: "", "almost-all": "", h: "", "human-readable": "", "1": "" },
  tree: { a: "" },
  grep: {
    n: "",
    "line-number": "",
    r: "",
    R: "",
    recursive: "",
    E: "",
    "extended-regexp": "",
    P: "",
    "perl-regexp": "",
    H: "",
    "with-filename": "",
    I: "",
    include: "glob",
    "exclude-dir": "exclude",
    "fixed-strings": "literal",
    "word-regexp": "word",
    "files-with-matches": "files",
    "max-count": "max",
    // No command has this flag; the error names the one that was meant.
    v: "invert-match"
  },
  mkdir: { v: "", verbose: "" },
  cp: { r: "", R: "", recursive: "", force: "overwrite", v: "", verbose: "" },
  mv: { force: "overwrite", v: "", verbose: "" },
  rm: { R: "recursive", force: "missing-ok", v: "", verbose: "" }
}

/** The flags of other tools for every command. */
export const sharedHabits: Readonly<Record<string, string>> = { "no-color": "color=never" }

/** The commands of other tools, and our command for the same purpose. */
export const counterparts: ReadonlyMap<string, string> = new Map([
  ["dir", "ls"],
  ["ll", "ls --long"],
  ["less", "cat FILE"],
  ["more", "cat FILE"],
  ["head", "cat --lines :10 FILE"],
  ["tail", "cat FILE | tail"],
  ["find", "glob '*.ts'"],
  ["fd", "glob '*.ts'"],
  ["rg", "grep PATTERN"],
  ["touch", "write FILE --mode append --text ''"],
  ["sed", "edit FILE --old TEXT --new TEXT"],
  ["rename", "mv FROM TO"],
  ["rmdir", "rm DIR"],
  ["undo", "restore"]
])
