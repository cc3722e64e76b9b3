/**
 * Fairness among equals, by virtual token counters ("Fairness in Serving Large Language Models", Sheng et al., 2024): of
 * two clients at the same level, the one that has been served fewer tokens goes first. A client is a request, or
 * the requests of one folder, so that its twelve files do not push out the one summary that came after them. The counter of a new client is
 * lifted to the least of those of its class that are present: who was away has saved nothing up, who comes late has nothing to catch
 * up with, and what a lower class has been kept waiting for is no measure of it.
 */

/** A generated token takes about as much of a step as two of a prompt. */
const GENERATED_WEIGHT = 2;
/** A prompt that has been started goes on until it has had so many tokens more than others: changing over is not free. */
const HEAD_START = 1024;

interface Client {
  served: number;
  /** Place of its class (see rank). */
  rank: number;
  numSequences: number;
}

export class VirtualTokens {
  readonly #clients = new Map<string, Client>();

  /** A sequence of this client, of a class of this rank, has come. */
  arrive(clientId: string, rank: number): void {
    const client = this.#clients.get(clientId);
    if (client) client.numSequences++;
    else this.#clients.set(clientId, { served: this.#least(rank), rank, numSequences: 1 });
  }

  /** It is of another class from now on, where it comes late. */
  move(clientId: string, rank: number): void {
    const client = this.#clients.get(clientId);
    if (!client || client.rank === rank) return;
    client.served = Math.max(client.served, this.#least(rank));
    client.rank = rank;
  }

  /** A sequence of this client has ended. */
  leave(clientId: string): void {
    const client = this.#clients.get(clientId);
    if (client && --client.numSequences === 0) this.#clients.delete(clientId);
  }

  serve(clientId: string, numPromptTokens: number, numGenerated: number): void {
    const client = this.#clients.get(clientId);
    if (client) client.served += numPromptTokens + GENERATED_WEIGHT * numGenerated;
  }

  /** The lower goes first. */
  counter(clientId: string, isStarted: boolean): number {
    return (this.#clients.get(clientId)?.served ?? 0) - (isStarted ? HEAD_START : 0);
  }

  #least(ofRank: number): number {
    let least = Number.POSITIVE_INFINITY;
    for (const { served, rank } of this.#clients.values()) if (rank === ofRank) least = Math.min(least, served);
    return least === Number.POSITIVE_INFINITY ? 0 : least;
  }
}
