package lowtide.connector;

import org.apache.spark.sql.api.java.UDF2;

/** {@link ShadowStarts#hasAny} as a function of Spark's, of the columns {@code shadow_starts} and the starts sought. */
public final class HasAnyStart implements UDF2<byte[], byte[], Boolean> {
    private static final long serialVersionUID = 1;

    @Override
    public Boolean call(byte[] kept, byte[] sought) {
        return ShadowStarts.hasAny(kept, sought);
    }
}
