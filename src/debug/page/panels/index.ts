/** The views beside the files: what differs, what happened, what was kept, and the journal. */
export { Changes } from "./Changes.tsx"
export { Events } from "./Events.tsx"
export { History } from "./History.tsx"
export { Journal } from "./Journal.tsx"
export { Slices } from "./Slices.tsx"
