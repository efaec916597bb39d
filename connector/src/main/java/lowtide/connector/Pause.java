package lowtide.connector;

import java.io.InterruptedIOException;

/** A wait that ends with the task it belongs to. */
final class Pause {
    private Pause() {
    }

    /**
     * Waits so long.
     *
     * @throws InterruptedIOException where the thread is interrupted meanwhile, or was before: while *doing* that
     */
    static void millis(long millis, String doing) throws InterruptedIOException {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw (InterruptedIOException) new InterruptedIOException("Interrupted while " + doing).initCause(e);
        }
    }
}
