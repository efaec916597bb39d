package lowtide.connector;

import java.io.IOException;

/**
 * Keeps one task to its part of a rate, by passing the run's {@link Gate} before it asks HBase for anything.
 *
 * <p>A task that reads cannot know how many cells an answer has. So before it asks it has a whole portion paid for, pays
 * again for what came before it asks once more, and gives back at its end what was not used.
 */
final class Pacer {
    /** A portion is what the rate allows in this part of a second: little, so that others are served in between. */
    private static final long PORTIONS = 20;
    /** A KeyValue has hardly fewer bytes. */
    private static final long LEAST_CELL = 40;
    /** Well within a scanner's lease, be it a short one. */
    private static final long ALIVE_NANOS = 5_000_000_000L;
    private static final double SECOND = 1e9;

    /** Tells HBase that all scanners of a task are still wanted: one may wait for another to be read. */
    @FunctionalInterface
    interface Alive {
        void tell() throws IOException;
    }

    /** The way to the gate: in how many ns a request may begin that takes it for so many. */
    @FunctionalInterface
    interface Way {
        long pass(long nanos) throws IOException;
    }

    private final Way gate;
    private final long perSecond;
    /** Cells that were paid for and not read; below 0: read and not paid for. */
    private long balance;
    private long told = System.nanoTime();

    /** Of a read or a write with these options. */
    Pacer(Options options) {
        this(options.perSecond, nanos -> Gates.pass(options.gate, nanos));
    }

    /** @param perSecond cells or mutations of all tasks that pass this gate; 0: as fast as it goes */
    Pacer(long perSecond, Way gate) {
        this.perSecond = perSecond;
        this.gate = gate;
    }

    boolean limits() {
        return perSecond > 0;
    }

    /** So many cells or mutations are asked for at a time, at most. */
    int portion(int wanted) {
        return limits() ? (int) Math.max(1, Math.min(wanted, perSecond / PORTIONS)) : wanted;
    }

    /** In so many bytes there are hardly more cells than that. */
    long bytes(long wanted) {
        return limits() ? Math.min(wanted, portion(Integer.MAX_VALUE) * LEAST_CELL) : wanted;
    }

    /** Before cells are asked for: waits until some may be read. */
    void beforeRead(Alive scanners) throws IOException {
        long pay = limits() ? portion(Integer.MAX_VALUE) - balance : 0;
        if (pay <= 0) {
            return;
        }
        balance += pay;
        long until = gate.pass(nanos(pay)) + System.nanoTime();
        for (long now = System.nanoTime(); now < until; now = System.nanoTime()) {
            Gates.sleep(Math.min(until - now, Math.max(0, told + ALIVE_NANOS - now)));
            if (System.nanoTime() - told >= ALIVE_NANOS) {
                scanners.tell();
                told = System.nanoTime();
            }
        }
    }

    /** So many cells came. */
    void read(long cells) {
        balance -= cells;
        told = System.nanoTime(); // whoever asks for cells is alive, as far as HBase knows
    }

    /** The task reads no more: the next one has what it did not use, or waits for what it used beyond. */
    void end() {
        long owed = -balance;
        balance = 0;
        try {
            if (limits() && owed != 0) {
                gate.pass(nanos(owed));
            }
        } catch (IOException e) {
            // A task that was ended cannot ask. One portion more or less: nobody waits for it twice.
        }
    }

    /** Before so many mutations are sent: waits until they may be; for how many ns. */
    long beforeWrite(long mutations) throws IOException {
        long wait = limits() ? gate.pass(nanos(mutations)) : 0;
        Gates.sleep(wait);
        return wait;
    }

    private long nanos(long count) {
        return Math.round(count * SECOND / perSecond);
    }
}
