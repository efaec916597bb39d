package lowtide.connector;

/**
 * The number of what this jar and who calls it have agreed on: options, views and columns, what Python calls, and what
 * the driver sends its executors. Lowtide's Python knows the same one ({@code lowtide_spark.frames.jars}) and refuses
 * jars of another, before anything is read: to a jar of another version a claim or an option that it does not know would
 * be none at all.
 *
 * <p>It stands in contract/vectors.json with a digest of what it is of; {@code ContractTest} fails where that changes
 * and the number does not.
 */
public final class Contract {
    /** Java refuses an object of another one, so that an executor that comes late is asked, too. */
    static final int NUMBER = 3;

    private Contract() {
    }

    /** That number, of the jar of whichever JVM is asked. */
    public static int number() {
        return NUMBER;
    }
}
