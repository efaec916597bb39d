package lowtide.connector;

import java.io.InterruptedIOException;
import java.util.concurrent.TimeUnit;

/** Keeps one task's reading at or below so many bytes a second, by waiting after what came too fast. */
final class Pacer {
    /** A server sends at most this much at a time, so that waits are short: no scanner's lease runs out meanwhile. */
    private static final long LEAST_CHUNK = 16L << 10;

    private final long bytesPerSecond;
    private final long begin = System.nanoTime();
    private long bytes;

    /** @param bytesPerSecond 0: as fast as it goes */
    Pacer(long bytesPerSecond) {
        this.bytesPerSecond = bytesPerSecond;
    }

    boolean limits() {
        return bytesPerSecond > 0;
    }

    /** How many bytes to ask for at a time: no more than a second's worth, where there is a limit. */
    long chunk(long wanted) {
        return limits() ? Math.min(wanted, Math.max(LEAST_CHUNK, bytesPerSecond)) : wanted;
    }

    /** Waits until it was right to have read *more* bytes by now. */
    void took(long more) throws InterruptedIOException {
        bytes += more;
        long due = begin + (long) (bytes * 1e9 / bytesPerSecond);
        try {
            TimeUnit.NANOSECONDS.sleep(due - System.nanoTime());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted while keeping to " + bytesPerSecond + " bytes a second");
        }
    }
}
