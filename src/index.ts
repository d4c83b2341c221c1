/**
 * Every public module as a namespace; each is a subpath too, which loads less.
 *
 * @since 0.1.0
 */
export * as Archive from "./history/Archive.ts"
export * as Backend from "./port/Backend.ts"
export * as Decorator from "./filesystem/Decorator.ts"
export * as Entry from "./model/Entry.ts"
export * as FileStore from "./history/FileStore.ts"
export * as Filesystem from "./filesystem/Filesystem.ts"
export * as FsError from "./model/FsError.ts"
export * as FsPath from "./model/FsPath.ts"
export * as InMemory from "./backends/InMemory.ts"
export * as Limits from "./model/Limits.ts"
export * as Mounts from "./filesystem/Mounts.ts"
export * as Operation from "./port/Operation.ts"
export * as Overlay from "./filesystem/Overlay.ts"
export * as Platform from "./filesystem/Platform.ts"
export * as PosixHost from "./backends/PosixHost.ts"
export * as Rules from "./port/Rules.ts"
export * as Snapshots from "./history/Snapshots.ts"
export * as SnapshotStore from "./history/SnapshotStore.ts"
