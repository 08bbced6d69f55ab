/**
 * The attachment queue of moss-desk.
 *
 * A queue entry outlives the tab: progress is written to the encrypted notebook
 * after each acknowledged part, never before. The worst that a crash can do is
 * to send one part twice, which depot allows (ADR-0021).
 *
 * Review blocker: nothing in this file may read a whole attachment into memory.
 */

export const PART_BYTES = 8 * 1024 * 1024; // fixed by the contract, MOSS-4131 otherwise
export const MAX_ATTACHMENT_BYTES = 500 * 1000 * 1000; // MOSS-4132
const PARALLEL_PARTS = 3;
const FIRST_DELAY_MS = 30_000;
const LONGEST_DELAY_MS = 3_600_000;

export interface QueueEntry {
  readonly uploadId: string;
  readonly size: number;
  readonly sha256: string;
  /** Parts that depot has acknowledged, by number, starting at 1. */
  acknowledged: Set<number>;
  failures: number;
}

export interface Depot {
  putPart(uploadId: string, part: number, bytes: Blob, sha256: string): Promise<void>;
  complete(uploadId: string, sha256: string): Promise<void>;
}

export interface Store {
  save(entry: QueueEntry): Promise<void>;
  remove(entry: QueueEntry): Promise<void>;
}

export function partCount(size: number): number {
  return Math.max(1, Math.ceil(size / PART_BYTES));
}

export function missingParts(entry: QueueEntry): number[] {
  const missing: number[] = [];
  for (let part = 1; part <= partCount(entry.size); part += 1) {
    if (!entry.acknowledged.has(part)) missing.push(part);
  }
  return missing;
}

/** Exponential, capped, with full jitter: INC-111 was a retry without either. */
export function retryDelay(failures: number, random: () => number): number {
  const ceiling = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.max(0, failures - 1));
  return Math.round(random() * ceiling);
}

/**
 * Sends what is missing and completes the upload.
 *
 * `complete` may be repeated: when its answer is lost, the next run finds no
 * missing part and simply asks again. Depot gives the same answer for as long
 * as the upload id lives, seven days.
 */
export async function resume(
  entry: QueueEntry,
  file: Blob,
  depot: Depot,
  store: Store,
  digest: (bytes: Blob) => Promise<string>,
): Promise<void> {
  const waiting = missingParts(entry);
  const worker = async (): Promise<void> => {
    for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
      const start = (part - 1) * PART_BYTES;
      const bytes = file.slice(start, Math.min(start + PART_BYTES, entry.size));
      await depot.putPart(entry.uploadId, part, bytes, await digest(bytes));
      entry.acknowledged.add(part);
      await store.save(entry);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_PARTS }, worker));
  await depot.complete(entry.uploadId, entry.sha256);
  await store.remove(entry);
}
