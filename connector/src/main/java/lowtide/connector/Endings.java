package lowtide.connector;

import java.lang.ref.Cleaner;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What ends with a read: it is done once, when nothing refers to the read any more, or else when the driver ends. A
 * driver that is killed does it never, so whatever was made for a read has to expire by itself too.
 */
final class Endings {
    private static final Cleaner UNREFERENCED = Cleaner.create();
    /** So long the end of the driver may take. */
    private static final long LAST_MILLIS = 10_000;
    private static final Set<Cleaner.Cleanable> WAITING = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(Endings::all, "lowtide-endings"));
    }

    private Endings() {
    }

    /** Where HBase is gone the driver does not wait for it: what was made expires. */
    private static void all() {
        Thread work = new Thread(() -> WAITING.forEach(Cleaner.Cleanable::clean));
        work.setDaemon(true);
        work.start();
        try {
            work.join(LAST_MILLIS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Runs {@code end} with the end of {@code read}, to which it must not refer; if it fails the others run all the
     * same.
     */
    static void with(Object read, Runnable end) {
        Cleaner.Cleanable[] own = new Cleaner.Cleanable[1];
        own[0] = UNREFERENCED.register(read, () -> {
            WAITING.remove(own[0]);
            try {
                end.run();
            } catch (RuntimeException e) {
                // It expires by itself.
            }
        });
        WAITING.add(own[0]);
    }
}
