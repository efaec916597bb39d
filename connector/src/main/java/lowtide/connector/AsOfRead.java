package lowtide.connector;

import java.io.IOException;
import java.util.concurrent.TimeUnit;

/**
 * The read of one table at one read point, for as long as its DataFrame is referenced and however often that is used:
 * the read point, the hold and the HBase snapshot are those of the first use.
 */
final class AsOfRead {
    private static final long RENEWED_AFTER_NANOS =
            TimeUnit.SECONDS.toNanos(TemporaryHBaseSnapshot.LASTING_SECONDS / 2);

    private final Options options;
    private AsOf asOf;
    private RestoredFiles files;
    private long made;

    AsOfRead(Options options) {
        this.options = options;
    }

    /** What is read, and what is known of the commits; an error says why it cannot be read (any more). */
    synchronized AsOf asOf() throws IOException {
        if (asOf == null) {
            AsOf found = AsOf.of(options);
            if (options.hold) {
                Hold.take(options, found, this);
            }
            asOf = found;
        } else if (!options.readsFiles) {
            asOf.checkMark(options, AsOf.OVERTAKEN); // at once, rather than when all was read
        }
        return asOf;
    }

    /**
     * The files to read it from, made after what is known of the commits was read; anew where those of before might go
     * while they are read. An error says that history GC was there in between.
     */
    synchronized RestoredFiles files() throws IOException {
        if (files == null || System.nanoTime() - made > RENEWED_AFTER_NANOS) {
            files = TemporaryHBaseSnapshot.take(options, asOf(), this);
            made = System.nanoTime();
        }
        return files;
    }
}
